/** Bytes of the protocols that the port speaks besides HTTP/1.1, as hostile clients send them. */
import { randomBytes, randomUUID } from "node:crypto";
import { connect as connectHttp2 } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";

/** @typedef {import("./service.mjs").Service} Service */
/** @typedef {import("./service.mjs").Answer} Answer */

const ANSWER_MS = 120_000;

/**
 * Sends bytes and reads until the service closes the connection, or until the time is over.
 *
 * @param {Service} service
 * @param {readonly Buffer[]} parts
 * @param {number} [forMs]
 * @returns {Promise<Buffer>}
 */
export async function talk(service, parts, forMs = 2_000) {
  const socket = await service.socket();
  /** @type {Buffer[]} */
  const chunks = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  const closed = new Promise((done) => socket.on("close", done));
  socket.on("error", () => {});
  for (const part of parts) {
    if (socket.destroyed) break;
    if (!socket.write(part)) await Promise.race([new Promise((done) => socket.once("drain", done)), closed]);
  }
  await Promise.race([closed, sleep(forMs)]);
  socket.destroy();
  return Buffer.concat(chunks);
}

/** The request that begins a connection of WebSocket. @param {Service} service */
export function upgrade(service) {
  return Buffer.from(
    `GET /gremlin HTTP/1.1\r\nhost: 127.0.0.1:${service.port}\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
      `sec-websocket-version: 13\r\nsec-websocket-key: ${randomBytes(16).toString("base64")}\r\n\r\n`,
  );
}

export const TEXT = 1;
export const BINARY = 2;

/**
 * A frame of WebSocket. The mask is 0, so the payload is as it is.
 *
 * @param {number} kind
 * @param {Buffer} payload
 * @param {{ claims?: number, isLast?: boolean }} [options]
 */
export function wsFrame(kind, payload, { claims = payload.length, isLast = true } = {}) {
  const head = Buffer.alloc(14);
  head[0] = (isLast ? 0x80 : 0) | kind;
  head[1] = 0x80 | 127;
  head.writeBigUInt64BE(BigInt(claims), 2);
  return Buffer.concat([head, payload]);
}

/** A script in GraphSON. @param {string} gremlin @param {object} [more] */
export function script(gremlin, more = {}) {
  return JSON.stringify({ requestId: randomUUID(), op: "eval", processor: "", args: { gremlin }, ...more });
}

/**
 * A request of GraphBinary whose argument `gremlin` has these bytes.
 *
 * @param {string} op
 * @param {Buffer} value
 */
export function graphBinary(op, value) {
  const name = "application/vnd.graphbinary-v1.0";
  const text = (/** @type {string} */ words) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(words.length);
    return Buffer.concat([length, Buffer.from(words)]);
  };
  const count = Buffer.from([0, 0, 0, 1]);
  const key = Buffer.concat([Buffer.from([3, 0]), text("gremlin")]);
  const head = Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([0x81])]);
  return Buffer.concat([head, Buffer.alloc(16), text(op), text(""), count, key, value]);
}

/** The codes of the messages and of the end that a server of WebSocket sent; 0 if it sent none. @param {Buffer} bytes */
export function wsAnswers(bytes) {
  const head = bytes.indexOf("\r\n\r\n");
  /** @type {Answer[]} */
  const answers = [];
  for (let at = head < 0 ? bytes.length : head + 4; at + 2 <= bytes.length; ) {
    const kind = (bytes[at] ?? 0) & 0x0f;
    let length = (bytes[at + 1] ?? 0) & 0x7f;
    at += 2;
    if (length === 126) {
      length = bytes.readUInt16BE(at);
      at += 2;
    } else if (length === 127) {
      length = Number(bytes.readBigUInt64BE(at));
      at += 8;
    }
    const payload = bytes.subarray(at, at + length);
    at += length;
    const text = payload.toString("utf8");
    if (kind === 8) answers.push({ status: length >= 2 ? payload.readUInt16BE(0) : 1005, text });
    if (kind === TEXT) answers.push({ status: Number(/"code":(\d+)/.exec(text)?.[1] ?? 0), text });
    // A version, a flag and an id come before the code.
    if (kind === BINARY)
      answers.push({ status: payload.readUInt32BE((payload[1] ?? 1) === 0 ? 18 : 2), text });
  }
  return answers.length > 0 ? answers : [{ status: 0, text: bytes.toString("latin1") }];
}

/** The first bytes of a client of Bolt 5.8. */
export const BOLT = Buffer.from([0x60, 0x60, 0xb0, 0x17, 0, 0, 8, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
const EMPTY_MAP = 0xa0;

/** A message of Bolt, in one chunk. @param {readonly (number | Buffer)[]} parts */
export function bolt(...parts) {
  const body = Buffer.concat(parts.map((part) => (typeof part === "number" ? Buffer.from([part]) : part)));
  const chunks = [];
  for (let at = 0; at < body.length; at += 0xffff) {
    const chunk = body.subarray(at, at + 0xffff);
    chunks.push(Buffer.from([chunk.length >> 8, chunk.length & 0xff]), chunk);
  }
  return Buffer.concat([...chunks, Buffer.from([0, 0])]);
}

/** A text of PackStream. @param {string} words */
export function packed(words) {
  const bytes = Buffer.from(words);
  const head = Buffer.alloc(5);
  head[0] = 0xd2;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** What lets a client of Bolt in. */
export const BOLT_IN = Buffer.concat([
  BOLT,
  bolt(0xb1, 0x01, EMPTY_MAP),
  bolt(0xb1, 0x6a, 0xa1, packed("scheme"), packed("none")),
]);
/** RUN of a query without parameters. @param {string} query */
export const boltRun = (query) => bolt(0xb3, 0x10, packed(query), EMPTY_MAP, EMPTY_MAP);
/** PULL of all rows. */
export const BOLT_PULL = bolt(0xb1, 0x3f, 0xa1, packed("n"), 0xff);
/** BEGIN. */
export const BOLT_BEGIN = bolt(0xb1, 0x11, EMPTY_MAP);

/** The outcomes that a server of Bolt sent after its version: 200 and 400; 0 if it sent none. @param {Buffer} bytes */
export function boltAnswers(bytes) {
  /** @type {Answer[]} */
  const answers = [];
  for (let at = 4; at + 4 <= bytes.length; ) {
    const chunks = [];
    for (let length = bytes.readUInt16BE(at); length > 0; ) {
      chunks.push(bytes.subarray(at + 2, at + 2 + length));
      at += 2 + length;
      length = at + 2 <= bytes.length ? bytes.readUInt16BE(at) : 0;
    }
    at += 2;
    const message = Buffer.concat(chunks);
    const status = { 112: 200, 127: 400 }[message[1] ?? 0];
    if (status !== undefined) answers.push({ status, text: message.toString("latin1") });
  }
  return answers.length > 0 ? answers : [{ status: 0, text: bytes.toString("latin1") }];
}

/** The preface of HTTP/2 and settings that allow the server nothing, or any amount. @param {number} window */
export function http2Begin(window) {
  const setting = Buffer.alloc(6);
  setting.writeUInt16BE(4, 0);
  setting.writeUInt32BE(window, 2);
  return Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), http2Frame(4, 0, 0, setting)]);
}

/** @param {number} kind @param {number} flags @param {number} stream @param {Buffer} payload */
export function http2Frame(kind, flags, stream, payload) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = kind;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** The head of `POST /openCypher` with a JSON body. @param {Service} service */
export function http2Head(service) {
  const literal = (/** @type {readonly number[]} */ name, /** @type {string} */ value) =>
    Buffer.concat([Buffer.from([...name, value.length]), Buffer.from(value)]);
  return Buffer.concat([
    Buffer.from([0x83, 0x86]),
    literal([0x04], "/openCypher"),
    literal([0x01], `127.0.0.1:${service.port}`),
    literal([0x0f, 0x10], "application/json"),
  ]);
}

/**
 * Sends queries beside each other on one connection of HTTP/2.
 *
 * @param {Service} service
 * @param {readonly string[]} queries
 * @returns {Promise<Answer[]>}
 */
export async function overHttp2(service, queries) {
  const session = connectHttp2(`http://127.0.0.1:${service.port}`);
  session.on("error", () => {});
  session.setTimeout(ANSWER_MS, () => session.destroy());
  const answers = queries.map(
    (query) =>
      /** @type {Promise<Answer>} */
      (
        new Promise((done) => {
          const request = session.request({
            ":method": "POST",
            ":path": "/openCypher",
            "content-type": "application/json",
          });
          let [status, text] = [0, ""];
          request.setEncoding("utf8");
          request.on("response", (headers) => {
            status = Number(headers[":status"]);
          });
          request.on("data", (chunk) => {
            text = (text + chunk).slice(0, 1_000);
          });
          request.on("error", () => {});
          request.on("close", () => done({ status, text }));
          request.end(JSON.stringify({ query }));
        })
      ),
  );
  const all = await Promise.all(answers);
  session.destroy();
  return all;
}

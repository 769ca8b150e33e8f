/**
 * What hostile clients of WebSocket, Bolt and HTTP/2 try. A status is the code of Gremlin Server's protocol or the code with
 * which a connection of WebSocket ends; for Bolt, 200 is success and 400 is failure.
 */
import { hold, LIMITED, times } from "./clients.mjs";
import {
  BINARY,
  BOLT,
  BOLT_BEGIN,
  BOLT_IN,
  BOLT_PULL,
  bolt,
  boltAnswers,
  boltRun,
  graphBinary,
  http2Begin,
  http2Frame,
  http2Head,
  overHttp2,
  packed,
  script,
  TEXT,
  talk,
  upgrade,
  wsAnswers,
  wsFrame,
} from "./wire.mjs";

/** @typedef {import("./service.mjs").Service} Service */
/** @typedef {import("./abuses.mjs").Abuse} Abuse */

const MIB = 1 << 20;
const MANY_ROWS = "UNWIND range(1, 3000000) AS i RETURN i, 'a text for each of them' AS t";
const HEAVY = "MATCH (a), (b), (c) WHERE a.k + b.k = c.k * 2 RETURN count(*)";

/** What a client of WebSocket gets for frames. @param {Service} service @param {readonly Buffer[]} frames */
async function overWebSocket(service, frames) {
  return wsAnswers(await talk(service, [upgrade(service), ...frames]));
}

/** What a client of Bolt gets for messages. @param {Service} service @param {readonly Buffer[]} messages */
async function overBolt(service, messages) {
  return boltAnswers(await talk(service, messages));
}

/** @param {string} words */
const text = (words) => wsFrame(TEXT, Buffer.from(words));

/** A list in a list in a list, in GraphBinary. @param {number} depth */
const nested = (depth) =>
  Buffer.concat([
    ...Array.from({ length: depth }, () => Buffer.from([9, 0, 0, 0, 0, 1])),
    Buffer.from([0xfe, 1]),
  ]);

/** Bytecode of one step without arguments. @param {string} step */
function bytecode(step) {
  const name = Buffer.from(step);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(name.length);
  const none = Buffer.alloc(4);
  return Buffer.concat([Buffer.from([0x15, 0, 0, 0, 0, 1]), length, name, none, none]);
}

/** @type {readonly Abuse[]} */
export const PROTOCOLS = [
  {
    name: "websocket-messages",
    what: "values 10,000 deep, lengths that lie, steps, types, operations and formats that there are not, Groovy",
    expect: [498, 499, 597, 1002, 1007],
    run: async (service) => {
      const binary = (/** @type {Buffer} */ bytes) => wsFrame(BINARY, bytes);
      const cases = [
        binary(graphBinary("eval", nested(10_000))),
        binary(graphBinary("eval", Buffer.from([3, 0, 0x7f, 0xff, 0xff, 0xff, 0x41]))),
        binary(graphBinary("eval", Buffer.from([9, 0, 0x7f, 0xff, 0xff, 0xff]))),
        binary(graphBinary("eval", Buffer.from([0x77, 0]))),
        binary(graphBinary("eval", Buffer.from([3, 0, 0, 0, 0, 2, 0xff, 0xfe]))),
        binary(graphBinary("bytecode", bytecode("noSuchStep"))),
        binary(graphBinary("bytecode", bytecode("V().drop()"))),
        binary(graphBinary("eval", Buffer.alloc(0))),
        binary(Buffer.from([200, 1, 2])),
        binary(Buffer.from("\u{10}application/yaml")),
        text(script("g.V().map{ it.get() }")),
        text(script("System.exit(1)")),
        text(script("new File('/etc/passwd').text")),
        text(script("g.V()", { op: "brew" })),
        text(script("g.V()", { processor: "brewery" })),
        text(`{"requestId": ${"[".repeat(10_000)}`),
        text("[]"),
        wsFrame(TEXT, Buffer.from([0xff, 0xfe, 0x7b])),
        wsFrame(5, Buffer.from("x")),
      ];
      const answers = [];
      for (const frame of cases) answers.push(...(await overWebSocket(service, [frame])));
      return answers;
    },
  },
  {
    name: "websocket-long",
    what: "a frame that claims 100 MB, parts that never end, a frame that claims more bytes than there are numbers for",
    expect: [0, 1002, 1009, 1013],
    run: (service) => {
      const part = Buffer.alloc(MIB, "x");
      const parts = Array.from({ length: 100 }, (_, index) =>
        wsFrame(index === 0 ? TEXT : 0, part, { isLast: false }),
      );
      return times(4, async () => [
        ...(await overWebSocket(service, [
          wsFrame(TEXT, part, { claims: 100 * MIB }),
          ...Array(20).fill(part),
        ])),
        ...(await overWebSocket(service, parts)),
        ...(await overWebSocket(service, [wsFrame(TEXT, part, { claims: Number.MAX_SAFE_INTEGER })])),
      ]);
    },
  },
  {
    name: "websocket-never-read",
    what: "24 clients that ask for large answers and read none of it",
    expect: [],
    run: (service) => {
      const ask = text(script("g.inject(1).repeat(union(identity(), identity())).times(20)"));
      return hold(service, 24, Buffer.concat([upgrade(service), ask]), 12_000);
    },
  },
  {
    name: "websocket-idle",
    what: "600 connections that are open and ask nothing, 200 with half a message",
    expect: [],
    run: async (service) => [
      ...(await hold(service, 600, upgrade(service), 3_000)),
      ...(await hold(
        service,
        200,
        Buffer.concat([upgrade(service), wsFrame(TEXT, Buffer.alloc(10), { claims: 1_000 })]),
        5_000,
      )),
    ],
  },
  {
    name: "websocket-open",
    what: "100 transactions of sessions that are left open",
    expect: [200, 204, 503, 596],
    run: (service) =>
      times(100, (index) => {
        const args = { gremlin: "g.addV('Left')", session: `s${index}` };
        const begins = text(script("", { processor: "session", args }));
        return talk(service, [upgrade(service), begins], 5_000).then(wsAnswers);
      }),
  },
  {
    name: "bolt-messages",
    what: "versions that there are not, lengths that lie, values 10,000 deep, invalid UTF-8, messages out of turn",
    expect: [0, 200, 400],
    run: async (service) => {
      const wrong = [
        bolt(0xb3, 0x10, Buffer.alloc(10_000, 0x91), 0xa0, 0xa0),
        bolt(0xb3, 0x10, Buffer.from([0xd2, 0x7f, 0xff, 0xff, 0xff, 0x41])),
        bolt(0xb3, 0x10, Buffer.from([0x82, 0xff, 0xfe]), 0xa0, 0xa0),
        bolt(0xb3, 0x10, packed("RETURN 1"), 0xda, 0xff),
        bolt(0xb1, 0x77, 0xa0),
        bolt(0xb0, 0x12),
        bolt(),
        boltRun("RETURN"),
        boltRun("x".repeat(200_000)),
      ];
      const answers = [];
      for (const message of wrong) answers.push(...(await overBolt(service, [BOLT_IN, message])));
      const greetings = [
        Buffer.concat([BOLT.subarray(0, 4), Buffer.alloc(16, 0xff)]),
        Buffer.concat([BOLT.subarray(0, 4), Buffer.from([0, 0, 0, 1]), Buffer.alloc(12)]),
        Buffer.concat([BOLT.subarray(0, 1), Buffer.alloc(19)]),
        Buffer.concat([BOLT, bolt(0xb1, 0x01, packed("not a map"))]),
        Buffer.concat([BOLT, Buffer.from([0xff, 0xff]), Buffer.alloc(0xffff)]),
      ];
      for (const bytes of greetings) answers.push(...(await overBolt(service, [bytes])));
      return answers;
    },
  },
  {
    name: "bolt-long",
    what: "messages of 100 MB, in chunks that never end",
    expect: [0, 200, 400],
    run: (service) => {
      const chunk = Buffer.concat([Buffer.from([0xff, 0xff]), Buffer.alloc(0xffff, "x")]);
      return times(4, () => overBolt(service, [BOLT_IN, ...Array(1_600).fill(chunk)]));
    },
  },
  {
    name: "bolt-never-read",
    what: "24 clients that ask for large answers and read none of it",
    expect: [],
    run: (service) => hold(service, 24, Buffer.concat([BOLT_IN, boltRun(MANY_ROWS), BOLT_PULL]), 12_000),
  },
  {
    name: "bolt-idle",
    what: "600 connections with half a greeting, and 600 that are in and ask nothing",
    expect: [],
    run: async (service) => [
      ...(await hold(service, 600, BOLT.subarray(0, 10), 3_000)),
      ...(await hold(service, 600, BOLT_IN, 3_000)),
    ],
  },
  {
    name: "bolt-open",
    what: "100 transactions and 100 answers that are left open",
    expect: [200, 400],
    run: (service) =>
      times(100, async () => [
        ...boltAnswers(await talk(service, [BOLT_IN, BOLT_BEGIN, boltRun("CREATE (:Left)")], 5_000)),
        ...boltAnswers(
          await talk(service, [BOLT_IN, boltRun("UNWIND range(1, 10000) AS i RETURN i")], 5_000),
        ),
      ]),
  },
  {
    name: "http2-resets",
    what: "20 clients that reset 5,000 requests each as soon as they have sent them",
    expect: [0],
    run: (service) => {
      const head = http2Head(service);
      const flood = Array.from({ length: 5_000 }, (_, index) =>
        Buffer.concat([
          http2Frame(1, 0x05, 2 * index + 1, head),
          http2Frame(3, 0, 2 * index + 1, Buffer.from([0, 0, 0, 8])),
        ]),
      );
      return times(20, async () => {
        const bytes = await talk(service, [http2Begin(65_535), Buffer.concat(flood)], 5_000);
        return { status: 0, text: bytes.toString("latin1") };
      });
    },
  },
  {
    name: "http2-frames",
    what: "heads that never end, floods of settings and pings, frames of 16 MB, half of a preface",
    expect: [0],
    run: async (service) => {
      const begin = http2Begin(65_535);
      const head = http2Frame(1, 0x01, 1, http2Head(service));
      const more = http2Frame(9, 0, 1, Buffer.alloc(16 << 10));
      const floods = [
        [begin, head, ...Array(1_000).fill(more)],
        [begin, Buffer.concat(Array(100_000).fill(http2Frame(4, 0, 0, Buffer.alloc(0))))],
        [begin, Buffer.concat(Array(100_000).fill(http2Frame(6, 0, 0, Buffer.alloc(8))))],
        [begin, http2Frame(0, 0, 1, Buffer.alloc(16 * MIB - 1))],
        [begin.subarray(0, 12)],
      ];
      const answers = [];
      for (const parts of floods) {
        const bytes = await talk(service, parts, 3_000);
        answers.push({ status: 0, text: bytes.toString("latin1") });
      }
      return answers;
    },
  },
  {
    name: "http2-never-read",
    what: "24 clients with 50 requests each for large answers, and no room for them",
    expect: [],
    run: (service) => {
      const body = Buffer.from(JSON.stringify({ query: MANY_ROWS.replace("3000000", "200000") }));
      const requests = Array.from({ length: 50 }, (_, index) =>
        Buffer.concat([
          http2Frame(1, 0x04, 2 * index + 1, http2Head(service)),
          http2Frame(0, 0x01, 2 * index + 1, body),
        ]),
      );
      return hold(service, 24, Buffer.concat([http2Begin(0), ...requests]), 12_000);
    },
  },
  {
    name: "http2-half-bodies",
    what: "100 connections with 90 half bodies each",
    expect: [],
    run: (service) => {
      const requests = Array.from({ length: 90 }, (_, index) =>
        Buffer.concat([
          http2Frame(1, 0x04, 2 * index + 1, http2Head(service)),
          http2Frame(0, 0, 2 * index + 1, Buffer.from('{"query')),
        ]),
      );
      return hold(service, 100, Buffer.concat([http2Begin(65_535), ...requests]), 5_000);
    },
  },
  {
    name: "http2-heavy",
    what: "2 connections with 100 heavy queries each, beside each other",
    expect: LIMITED,
    run: (service) => times(2, () => overHttp2(service, Array(100).fill(HEAVY))),
  },
];

/** The service under abuse: its process, what it uses, and clients that send exactly the bytes that they are told. */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const START_MS = 120_000;
const END_MS = 60_000;
const ANSWER_MS = 120_000;
/** Most bytes of an answer that are read. */
const MOST_BYTES = 64 << 20;

/** @typedef {{ status: number, text: string }} Answer a status of 0: the connection closed without an answer */

export class Service {
  /**
   * Starts the service on a free port, with a graph in a temporary folder.
   *
   * @param {string} binary
   * @param {readonly string[]} flags
   */
  static async start(binary, flags) {
    const home = mkdtempSync(join(tmpdir(), "tidegraph-abuse-"));
    const allowed = join(home, "allowed");
    mkdirSync(allowed);
    const places = ["--data", join(home, "data"), "--load-from", allowed];
    const child = spawn(binary, ["serve", "--port", "0", ...places, ...flags], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const service = new Service(child, home, allowed);
    const end = Date.now() + START_MS;
    for (;;) {
      const found = /answers at http:\/\/127\.0\.0\.1:(\d+)|127\.0\.0\.1:(\d+)/.exec(service.output);
      if (found) {
        service.port = Number(found[1] ?? found[2]);
        return service;
      }
      if (service.ended) throw new Error(`the service ended:\n${service.output}`);
      if (Date.now() > end) throw new Error(`the service did not name its port:\n${service.output}`);
      await sleep(50);
    }
  }

  /**
   * @param {import("node:child_process").ChildProcessByStdio<null, import("node:stream").Readable, import("node:stream").Readable>} child
   * @param {string} home
   * @param {string} allowed the folder that loads may read
   */
  constructor(child, home, allowed) {
    this.child = child;
    this.home = home;
    this.allowed = allowed;
    this.port = 0;
    this.output = "";
    this.ended = false;
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        this.output = (this.output + chunk).slice(-100_000);
      });
    }
    child.on("exit", () => {
      this.ended = true;
    });
    process.on("exit", () => this.child.kill("SIGKILL"));
  }

  /** Returns the resident memory in MiB, and the numbers of open descriptors and of threads. */
  usage() {
    const status = readFileSync(`/proc/${this.child.pid}/status`, "utf8");
    const kib = Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]);
    const threads = Number(/Threads:\s+(\d+)/.exec(status)?.[1]);
    return {
      mib: Math.round(kib / 1024),
      descriptors: readdirSync(`/proc/${this.child.pid}/fd`).length,
      threads,
    };
  }

  /** Returns the MiB of the temporary files of queries, which have no name but that of their descriptor. */
  spilledMib() {
    let bytes = 0;
    for (const one of readdirSync(`/proc/${this.child.pid}/fd`)) {
      const path = `/proc/${this.child.pid}/fd/${one}`;
      try {
        if (readlinkSync(path).includes("tidegraph-query-")) bytes += statSync(path).size;
      } catch {
        // The file was closed meanwhile.
      }
    }
    return Math.round(bytes / (1 << 20));
  }

  /**
   * Sends a request and reads its answer.
   *
   * @param {string} path
   * @param {object} [options]
   * @param {string} [options.method]
   * @param {Record<string, string>} [options.headers]
   * @param {string | Buffer} [options.body]
   * @param {AbortSignal} [options.signal]
   * @returns {Promise<Answer>}
   */
  async ask(path, { method = "POST", headers = {}, body, signal } = {}) {
    const head = { "content-type": "application/json", ...headers };
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const lines = Object.entries({ host: `127.0.0.1:${this.port}`, ...head, ...length, connection: "close" });
    const socket = await this.socket();
    signal?.addEventListener("abort", () => socket.destroy());
    socket.setTimeout(ANSWER_MS, () => socket.destroy());
    socket.write(`${method} ${path} HTTP/1.1\r\n${lines.map(([n, v]) => `${n}: ${v}\r\n`).join("")}\r\n`);
    if (body !== undefined) socket.write(body);
    const chunks = [];
    try {
      let bytes = 0;
      for await (const chunk of socket) {
        bytes += chunk.length;
        // An answer without an end is not read to its end.
        if (bytes > MOST_BYTES) socket.destroy();
        else chunks.push(chunk);
      }
    } catch {
      // What arrived before the connection broke may be an answer.
    }
    const text = Buffer.concat(chunks).toString("utf8");
    return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), text };
  }

  /** @param {string} query @param {object} [parameters] @param {AbortSignal} [signal] */
  cypher(query, parameters = {}, signal) {
    const body = JSON.stringify({ query, parameters: JSON.stringify(parameters) });
    return this.ask("/openCypher", { body, ...(signal && { signal }) });
  }

  /** @param {string} gremlin */
  gremlin(gremlin) {
    return this.ask("/gremlin", { body: JSON.stringify({ gremlin }) });
  }

  /** Opens a connection. It rejects if the service does not accept it. @returns {Promise<import("node:net").Socket>} */
  socket() {
    return new Promise((done, fail) => {
      const socket = connect(this.port, "127.0.0.1", () => done(socket));
      socket.on("error", fail);
    });
  }

  /** Ends the service as an operator does. Returns how long it took in milliseconds, or undefined if it had to be killed. */
  async end() {
    const begun = Date.now();
    this.child.kill("SIGTERM");
    while (!this.ended && Date.now() < begun + END_MS) await sleep(20);
    const took = this.ended ? Date.now() - begun : undefined;
    this.child.kill("SIGKILL");
    rmSync(this.home, { recursive: true, force: true });
    return took;
  }
}

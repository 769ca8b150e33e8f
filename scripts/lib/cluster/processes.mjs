/** Processes of a cluster on this machine. The output of each goes to a file, and all of them end with this process. */
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * @typedef {{
 *   name: string, child: import("node:child_process").ChildProcess, log: string, from: number, ended: boolean
 * }} Process
 */

/**
 * Ports that may be chosen: below those that systems give to outgoing connections. One of these could take a port after it
 * was found free, and before the program that is to listen there has started.
 */
const [FIRST_PORT, PORTS] = [10_240, 22_000];

/** Ports that this process was given: a server takes several before it listens on the first. */
const given = new Set();

/**
 * Returns a port of 127.0.0.1 that is free at the moment, and another one at each call.
 *
 * @returns {Promise<number>}
 */
export async function freePort() {
  for (;;) {
    const port = FIRST_PORT + randomInt(PORTS);
    const server = createServer();
    const free = await new Promise((done, fail) => {
      server.on("error", (error) =>
        /** @type {NodeJS.ErrnoException} */ (error).code === "EADDRINUSE" ? done(false) : fail(error),
      );
      server.listen(port, "127.0.0.1", () => server.close(() => done(true)));
    });
    if (free && !given.has(port)) {
      given.add(port);
      return port;
    }
  }
}

/** Longest wait for one answer of a worker that starts. */
const POLL_MS = 5_000;

/**
 * Asks a worker for its status, and again until an answer will do.
 *
 * @param {string} endpoint
 * @param {string} what What the worker has then.
 * @param {number} withinMs
 * @param {(answer: Response, body: string) => boolean} willDo
 */
async function untilAnswered(endpoint, what, withinMs, willDo) {
  const end = Date.now() + withinMs;
  for (;;) {
    let said;
    try {
      // Without a limit, `fetch` of Node.js 20 may never end if the first connection of the process is closed at once.
      const answer = await fetch(`${endpoint}/status`, { signal: AbortSignal.timeout(POLL_MS) });
      said = await answer.text();
      if (willDo(answer, said)) return;
    } catch (error) {
      said = String(error);
    }
    if (Date.now() > end) throw new Error(`${endpoint} has no ${what} after ${withinMs} ms: ${said}`);
    await sleep(50);
  }
}

/**
 * Waits until a worker has connected to its fleet. Before that it answers every request with 503 and `Retry-After`.
 *
 * @param {string} endpoint
 * @param {number} withinMs
 */
export async function connected(endpoint, withinMs) {
  await untilAnswered(
    endpoint,
    "graph",
    withinMs,
    ({ status, headers }) => status !== 503 || !headers.has("retry-after"),
  );
}

/**
 * Waits until a worker knows a sequencer. A new fleet has none for some moments; a write waits for it, but not for as long
 * as a busy machine may take.
 *
 * @param {string} endpoint
 * @param {number} withinMs
 */
export async function writable(endpoint, withinMs) {
  await untilAnswered(
    endpoint,
    "sequencer",
    withinMs,
    ({ ok }, body) => ok && JSON.parse(body).status === "healthy",
  );
}

export class Processes {
  /** @param {string} dir where their output goes */
  constructor(dir) {
    this.dir = dir;
    /** @type {Map<string, Process>} */
    this.all = new Map();
  }

  /**
   * Starts a process, which replaces one of the same name that has ended.
   *
   * @param {string} name
   * @param {string} program
   * @param {readonly string[]} args
   * @param {Record<string, string>} [env]
   */
  start(name, program, args, env = {}) {
    const log = join(this.dir, `${name}.log`);
    const from = existsSync(log) ? readFileSync(log, "utf8").length : 0;
    const output = openSync(log, "a");
    const child = spawn(program, args, {
      stdio: ["ignore", output, output],
      env: { ...process.env, ...env },
    });
    closeSync(output);
    /** @type {Process} */
    const started = { name, child, log, from, ended: false };
    child.on("error", () => {
      started.ended = true;
    });
    child.on("exit", () => {
      started.ended = true;
    });
    this.all.set(name, started);
    return started;
  }

  /**
   * Waits until the output of a process contains a text, and returns the output. Fails if the process ends first.
   *
   * @param {string} name
   * @param {string | RegExp} text
   * @param {number} withinMs
   */
  async said(name, text, withinMs) {
    const found = this.all.get(name);
    if (!found) throw new Error(`there is no process ${name}`);
    const end = Date.now() + withinMs;
    for (;;) {
      const output = readFileSync(found.log, "utf8").slice(found.from);
      const match = typeof text === "string" ? output.includes(text) : text.exec(output);
      if (match) return { output, match };
      if (found.ended) throw new Error(`${name} ended:\n${output.slice(-4000)}`);
      if (Date.now() > end)
        throw new Error(`${name} did not say ${text} within ${withinMs} ms:\n${output.slice(-4000)}`);
      await sleep(50);
    }
  }

  /**
   * @param {string} name
   * @param {NodeJS.Signals} signal
   */
  signal(name, signal) {
    const found = this.all.get(name);
    if (!found || found.ended) throw new Error(`process ${name} does not run`);
    found.child.kill(signal);
  }

  /**
   * Ends processes in this order, waiting for each; kills those that do not end in time.
   *
   * @param {readonly string[]} names
   * @param {number} withinMs
   */
  async end(names, withinMs) {
    for (const name of names) {
      const found = this.all.get(name);
      if (!found || found.ended) continue;
      found.child.kill("SIGTERM");
      found.child.kill("SIGCONT");
      const end = Date.now() + withinMs;
      while (!found.ended && Date.now() < end) await sleep(50);
      if (!found.ended) found.child.kill("SIGKILL");
      while (!found.ended) await sleep(20);
    }
  }

  /** Kills all processes at once, without waiting: for the end of this process. */
  kill() {
    for (const found of this.all.values()) if (!found.ended) found.child.kill("SIGKILL");
  }
}

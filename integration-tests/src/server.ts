/**
 * Runs the real binary on a free port of 127.0.0.1 with a temporary data directory, and ends it with the test.
 *
 * `TIDEGRAPH_BINARY` names the binary. If the tests run in a fleet (`fleet.ts`), a server is a worker with its own
 * nodes, which keep running when the worker is stopped or killed. The tests send signals only to processes that they
 * started.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../scripts/lib/cluster/processes.mjs";
import { dataPath } from "./data.ts";
import { Nodes, shared } from "./fleet.ts";

/** Longest wait for a condition; generous, since other programs may keep the machine busy. */
export const PATIENCE_MS = 120_000;

/** Returns the path of the binary under test. */
export function binary(): string {
  const path = process.env.TIDEGRAPH_BINARY;
  if (!path) throw new Error("TIDEGRAPH_BINARY must name the tidegraph binary; `npm test` sets it");
  return path;
}

/**
 * Longest wait for one answer of a server that starts. `fetch` of Node.js 20 never ends if the first connection of the
 * process is closed at once, as by a server that is killed: its parser of HTTP is loaded only then, and the end of the
 * connection is missed.
 */
const POLL_MS = 5_000;

/**
 * Whether a server takes requests, by its answer to a request for its status. A worker answers 503 until it knows its
 * graph, and has no sequencer for some moments in a new fleet. With a token, the server refuses such a request.
 */
function isReady(answer: Response, status: string): boolean {
  if (answer.status === 503 && answer.headers.has("retry-after")) return false;
  if (answer.status !== 200 || shared() === undefined) return true;
  return JSON.parse(status).status === "healthy";
}

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** What a test may choose for its server. */
export interface ServerOptions {
  /** Further arguments of `serve`. */
  readonly args?: readonly string[];
  /** Settings of the graph: arguments of `serve`, or of the command that makes a fleet's graph. */
  readonly graph?: readonly string[];
  /** Places that loads may read; the files of tests if it is left out. */
  readonly loadFrom?: readonly string[];
  /** A line of shell to run before the binary, such as a limit of the process. */
  readonly prelude?: string;
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A `tidegraph serve` that can be stopped, killed and started again on the same data. */
export class Server {
  readonly home: string;
  readonly data: string;
  readonly drop: string;
  readonly port: number;
  output = "";
  #child: ChildProcess | undefined;
  #nodes: Nodes | undefined;
  #exit: Promise<Exit> = Promise.resolve({ code: null, signal: null });

  private constructor(home: string, port: number) {
    this.home = home;
    this.port = port;
    this.data = join(home, "data");
    this.drop = join(home, "drop");
  }

  /** Starts a server that is removed with its files when the test ends. */
  static async start(t: TestContext, options: ServerOptions = {}): Promise<Server> {
    const server = new Server(await mkdtemp(join(tmpdir(), "tidegraph-test-")), await freePort());
    t.after(() => server.remove());
    await mkdir(server.drop);
    await server.start(options);
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error("the server does not run");
    return pid;
  }

  /** Starts the server, or starts it again, and waits until it answers. */
  async start(options: ServerOptions = {}): Promise<void> {
    // Tests write files for loads into the folder of the server, and take others from `data/`.
    const loads = (options.loadFrom ?? [this.home, dataPath("")]).flatMap((place) => ["--load-from", place]);
    const args = [...(await this.#mode(options.graph ?? [])), "--port", String(this.port), ...loads];
    const command = [binary(), ...args, ...(options.args ?? [])];
    const [program = "", ...rest] = options.prelude
      ? ["bash", "-c", `${options.prelude}; exec "$@"`, "bash", ...command]
      : command;
    const env = { ...process.env, ...options.env };
    const child = spawn(program, rest, { stdio: ["ignore", "pipe", "pipe"], env });
    const gather = (chunk: Buffer) => {
      this.output += chunk.toString();
    };
    child.stdout.on("data", gather);
    child.stderr.on("data", gather);
    let ended = false;
    this.#exit = new Promise((done) => {
      child.on("exit", (code, signal) => {
        ended = true;
        done({ code, signal });
      });
    });
    this.#child = child;
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const signal = AbortSignal.timeout(POLL_MS);
      const answer = await fetch(`${this.endpoint}/status`, { signal }).catch(() => undefined);
      const status = await answer?.text().catch(() => undefined);
      if (answer !== undefined && status !== undefined && isReady(answer, status)) return;
      if (ended) throw new Error(`the server ended before it answered:\n${this.output}`);
      if (Date.now() > deadline) throw new Error(`the server does not answer:\n${this.output}`);
      await sleep(20);
    }
  }

  /** Returns the flags of the process: one process with its data, or a worker, whose nodes are started first. */
  async #mode(graph: readonly string[]): Promise<string[]> {
    const fleet = shared();
    if (fleet === undefined) return ["serve", "--data", this.data, "--drop", this.drop, ...graph];
    if (this.#nodes === undefined) {
      this.#nodes = new Nodes(fleet, this.home);
      await this.#nodes.start(graph);
    }
    return this.#nodes.worker();
  }

  /** Sends a signal and waits for the end. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<Exit> {
    this.#child?.kill(signal);
    const late = sleep(PATIENCE_MS, undefined, { ref: false });
    const exit = await Promise.race([this.#exit, late]);
    if (exit === undefined) {
      this.#child?.kill("SIGKILL");
      throw new Error(`the server did not end within ${PATIENCE_MS} ms of ${signal}:\n${this.output}`);
    }
    return exit;
  }

  /** kill -9: the process loses what it held in memory. */
  kill(): Promise<Exit> {
    return this.stop("SIGKILL");
  }

  private async remove(): Promise<void> {
    await this.kill();
    this.#nodes?.kill();
    await rm(this.home, { recursive: true, force: true });
  }
}

/** How to run a command. */
export interface RunOptions {
  /** A program other than the binary under test. */
  readonly program?: string;
  readonly timeoutMs?: number;
  /** Text for its standard input. */
  readonly input?: string;
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs the binary to its end. */
export function runBinary(
  args: readonly string[],
  { program = binary(), timeoutMs = PATIENCE_MS, input = "", env = {} }: RunOptions = {},
): Promise<Exit & { stdout: string; stderr: string }> {
  return new Promise((done, fail) => {
    const child = spawn(program, args, { stdio: "pipe", env: { ...process.env, ...env } });
    // A command that ends early does not read its input.
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
    });
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    child.on("error", fail);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      done({ code, signal, stdout, stderr });
    });
  });
}

/** Waits until the condition returns a value; fails with `what` if it never does. */
export async function eventually<T>(
  what: string,
  condition: () => Promise<T | undefined | false>,
  timeoutMs = PATIENCE_MS,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const found = await condition();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`did not happen within ${timeoutMs} ms: ${what}`);
    await sleep(50);
  }
}

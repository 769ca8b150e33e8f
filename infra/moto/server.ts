/**
 * Runs moto's server as a process. `TIDEGRAPH_PYTHON` names a Python that has moto (`npm test -- --moto` creates one).
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

export class Moto {
  readonly endpoint: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, endpoint: string) {
    this.#child = child;
    this.endpoint = endpoint;
  }

  static async start(): Promise<Moto> {
    const { TIDEGRAPH_PYTHON: python } = process.env;
    assert.ok(python, "TIDEGRAPH_PYTHON names no Python; `npm test -- --moto` makes one");
    const child = spawn(python, ["-W", "ignore", join(import.meta.dirname, "server.py")], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    process.on("exit", () => child.kill("SIGKILL"));
    const [endpoint] = await Promise.race([
      once(createInterface({ input: child.stdout }), "line"),
      once(child, "exit").then(([code]) => assert.fail(`moto ended with ${code}`)),
    ]);
    return new Moto(child, endpoint);
  }

  /** Ends the process, and fails if moto itself failed in a request: a test that passes with such an answer shows nothing. */
  async stop(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.stdin?.end();
    const [code] = await ended;
    assert.equal(code, 0, "moto failed in requests: it says in which ones");
  }
}

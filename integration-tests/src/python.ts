/** A Python with third-party clients and tools. A test that needs it fails if it is missing. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";

/** Returns the path of the Python that has the clients. */
export function python(): string {
  const { TIDEGRAPH_PYTHON: program } = process.env;
  assert.ok(program, "TIDEGRAPH_PYTHON names no Python; `npm test` and `npm run aws` make one");
  return program;
}

/** Returns the path of one of our scripts. */
export function script(name: string): string {
  return fileURLToPath(new URL(`../python/${name}`, import.meta.url));
}

/** A server in Python that prints a line once it listens. */
export interface PythonServer {
  /** The line. */
  readonly line: string;
  /** Ends the server; it also ends with the test. */
  stop(): Promise<void>;
}

/** Starts one of our scripts that serves until its input ends. */
export async function servePython(
  t: TestContext,
  name: string,
  ...args: readonly string[]
): Promise<PythonServer> {
  const child = spawn(python(), [script(name), ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  t.after(() => child.kill());
  const [line] = await Promise.race([
    once(createInterface(child.stdout), "line"),
    ended.then(() => Promise.reject(new Error(`${name} did not start`))),
  ]);
  const stop = async () => {
    child.kill();
    await ended;
  };
  return { line, stop };
}

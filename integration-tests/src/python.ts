/** A Python with third-party clients and tools. A test that needs it fails if it is missing. */
import assert from "node:assert/strict";
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

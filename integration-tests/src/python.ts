/** Python, which has clients and tools of others. A test that needs it fails where it is missing. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

/** The Python that has the clients. */
export function python(): string {
  const { TIDEGRAPH_PYTHON: program } = process.env;
  assert.ok(program, "TIDEGRAPH_PYTHON names no Python; `npm test` and `npm run aws` make one");
  return program;
}

/** The path of a script of ours. */
export function script(name: string): string {
  return fileURLToPath(new URL(`../python/${name}`, import.meta.url));
}

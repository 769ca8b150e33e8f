/** All tests in one process: what takes time is not them, it is loading CDK. */
import { readdirSync } from "node:fs";
import { join } from "node:path";

const folder = import.meta.dirname;
for (const name of readdirSync(folder).toSorted()) {
  if (name.endsWith(".test.ts")) await import(join(folder, name));
}

/** Runs all tests in one process, because loading CDK takes more time than the tests. */
import { readdirSync } from "node:fs";
import { join } from "node:path";

const folder = import.meta.dirname;
for (const name of readdirSync(folder).toSorted()) {
  if (name.endsWith(".test.ts")) await import(join(folder, name));
}

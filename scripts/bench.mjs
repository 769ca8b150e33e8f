/** `npm run bench -- NAME [options]`: builds the release binary and runs one workload of it. */
import { buildBinary, run } from "./run.mjs";

try {
  const args = process.argv.slice(2);
  const binary = await buildBinary();
  await run(binary, ["bench", ...args]);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

/** `npm run bench -- NAME [options]`: builds the release binary, installs the peers, and runs one workload. */
import { rmSync } from "node:fs";
import { installPeers, wanted } from "./peers.mjs";
import { buildBinary, run } from "./run.mjs";

try {
  const args = process.argv.slice(2);
  const binary = await buildBinary();
  const peers = await installPeers(wanted(args));
  try {
    await run(binary, ["bench", ...args], { env: { TIDEGRAPH_PEERS: peers } });
  } finally {
    rmSync(peers, { force: true });
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

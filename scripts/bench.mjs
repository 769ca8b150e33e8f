/**
 * `npm run bench -- NAME [options]`: builds the binary as it ships, installs the peers, and runs one workload. `ycsb` and `fleet` get a
 * cluster on this machine, which is gone at their end.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster } from "./cluster/cluster.mjs";
import { installPeers, wanted } from "./peers.mjs";
import { buildBinary, buildFleet, run } from "./run.mjs";

const args = process.argv.slice(2);
const withCluster = args.some((arg) => arg === "ycsb" || arg === "fleet") && !args.includes("--help");

/**
 * Runs the workload beside a cluster.
 *
 * @param {Record<string, string>} env
 */
async function overCluster(env) {
  const { nodeBinary, workerBinary, lambdaBinary } = await buildFleet("dist");
  const home = mkdtempSync(join(tmpdir(), "tidegraph-bench-"));
  const sizes = { nodes: 3, rf: 2, partitions: 16, brokers: 1, port: 0, measured: true };
  const cluster = new Cluster({ home: join(home, "cluster"), nodeBinary, workerBinary, ...sizes });
  process.on("exit", () => cluster.processes.kill());
  try {
    console.error("starting Kafka, DynamoDB Local and three nodes; this takes half a minute");
    await cluster.start();
    const pids = (/** @type {string} */ kind) =>
      [...cluster.processes.all.values()]
        .filter(({ name }) => name.startsWith(kind))
        .map(({ child }) => child.pid);
    const file = join(home, "cluster.json");
    const about = {
      endpoint: cluster.endpoint,
      nodes: pids("node-"),
      worker: pids("worker")[0],
      brokers: pids("kafka-"),
      rf: sizes.rf,
      function: lambdaBinary,
      environment: cluster.workerEnvironment(),
      logLatency: [nodeBinary, "log-latency", ...cluster.logFlags()],
    };
    writeFileSync(file, JSON.stringify(about, null, 2));
    await run(workerBinary, ["bench", ...args], { env: { ...env, TIDEGRAPH_CLUSTER: file } });
  } finally {
    await cluster.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

try {
  const peers = await installPeers(wanted(args));
  try {
    const env = { TIDEGRAPH_PEERS: peers };
    if (withCluster) await overCluster(env);
    else await run(await buildBinary("dist"), ["bench", ...args], { env });
  } finally {
    rmSync(peers, { force: true });
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

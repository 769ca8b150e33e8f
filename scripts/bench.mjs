/**
 * `npm run bench -- NAME [options]`: builds the release binaries, installs the peers, and runs one workload of
 * `tidegraph-bench`. `ycsb` and `fleet` run against a cluster on this machine, which is removed afterwards.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { airRoutes } from "./lib/air-routes.mjs";
import { Cluster } from "./lib/cluster/cluster.mjs";
import { LocalStack } from "./lib/localstack.mjs";
import { buildBench, buildFleet } from "./lib/programs.mjs";
import { run } from "./lib/run.mjs";
import { installPeers, wanted } from "./peers.mjs";

const args = process.argv.slice(2);

/** Measurements and workloads that need a feature of `tidegraph-bench`. */
const FEATURES = { "kafka-rate": "kafka", "map-rate": "dynamodb", rebalance: "s3" };
const withCluster = ["ycsb", "fleet"].includes(args[0] ?? "") && !args.includes("--help");

/**
 * Runs the workload beside a cluster.
 *
 * @param {Record<string, string>} env
 */
async function overCluster(env) {
  const { nodeBinary, workerBinary, lambdaBinary, benchBinary } = await buildFleet("dist", { bench: true });
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
    await run(benchBinary(), args, {
      env: { ...env, TIDEGRAPH_BINARY: workerBinary, TIDEGRAPH_CLUSTER: file },
    });
  } finally {
    await cluster.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

/**
 * Runs the workload beside LocalStack's S3.
 *
 * @param {string} program
 * @param {Record<string, string>} env
 */
async function overBucket(program, env) {
  const home = mkdtempSync(join(tmpdir(), "tidegraph-bench-"));
  const localStack = new LocalStack({ log: join(home, "localstack.log") });
  process.on("exit", () => localStack.kill());
  try {
    console.error("starting LocalStack; this takes half a minute");
    await localStack.start([]);
    const bucket = "tidegraph-bench";
    await localStack.aws(["s3api", "create-bucket", "--bucket", bucket, "--region", "us-east-1"]);
    const all = { ...env, ...localStack.environment, TIDEGRAPH_BENCH_S3: bucket };
    await run(program, args, { env: all });
  } finally {
    await localStack.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

try {
  const peers = await installPeers(wanted(args));
  try {
    const env = { TIDEGRAPH_PEERS: peers };
    if (withCluster) await overCluster(env);
    else {
      const features = Object.entries(FEATURES).filter(
        ([name]) => name === (args[0] === "micro" ? args[1] : args[0]),
      );
      const { binary, benchBinary } = await buildBench(
        "dist",
        features.map(([, feature]) => feature),
      );
      const routes =
        args[0] === "gremlin" ? { TIDEGRAPH_AIR_ROUTES: join(await airRoutes(), "gremlin") } : {};
      const all = { ...env, ...routes, TIDEGRAPH_BINARY: binary };
      if (args[0] === "rebalance" && !args.includes("--help")) await overBucket(benchBinary, all);
      else await run(benchBinary, args, { env: all });
    }
  } finally {
    rmSync(peers, { force: true });
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

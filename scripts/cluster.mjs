/**
 * `npm run cluster -- --nodes 3 --rf 2`: runs a whole fleet on this machine, with real Kafka and DynamoDB Local.
 *
 * It loads a small identity graph through the worker, or the files in the folder of `--load DIR`; `--no-load` leaves
 * the graph empty.
 *
 * Flags: `--nodes`, `--rf`, `--partitions`, `--shards` (of the log), `--brokers`, `--tls` (processes authenticate with
 * certificates), `--port` (8182), `--load`, `--no-load`, `--home` (`.tidegraph/cluster`; its contents are removed
 * first). It runs until Ctrl-C.
 */
import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Cluster } from "./lib/cluster/cluster.mjs";
import { buildCluster } from "./lib/programs.mjs";
import { root, run } from "./lib/run.mjs";

const { values } = parseArgs({
  options: {
    nodes: { type: "string", default: "3" },
    rf: { type: "string", default: "2" },
    partitions: { type: "string", default: "16" },
    shards: { type: "string", default: "1" },
    brokers: { type: "string", default: "1" },
    tls: { type: "boolean", default: false },
    port: { type: "string", default: "8182" },
    load: { type: "string" },
    "no-load": { type: "boolean", default: false },
    home: { type: "string", default: join(root, ".tidegraph", "cluster") },
  },
});

/**
 * @param {"nodes" | "rf" | "partitions" | "shards" | "brokers" | "port"} name
 * @param {number} least
 */
function number(name, least) {
  const value = Number(values[name]);
  if (!Number.isInteger(value) || value < least) {
    console.error(`--${name} ${values[name]}: has to be a whole number of at least ${least}`);
    process.exit(2);
  }
  return value;
}

const sizes = {
  nodes: number("nodes", 1),
  rf: number("rf", 1),
  partitions: number("partitions", 1),
  shards: number("shards", 1),
  brokers: number("brokers", 1),
  port: number("port", 0),
};
if (sizes.rf > sizes.nodes) {
  console.error(`--rf ${sizes.rf}: there are only ${sizes.nodes} nodes`);
  process.exit(2);
}
if (sizes.shards > sizes.partitions) {
  console.error(`--shards ${sizes.shards}: there are only ${sizes.partitions} partitions`);
  process.exit(2);
}
if (values.load !== undefined && !existsSync(values.load)) {
  console.error(`--load ${values.load}: there is no such file or folder`);
  process.exit(2);
}
const { nodeBinary, workerBinary } = await buildCluster("release");
const files = values.load === undefined ? join(resolve(values.home), "sample") : resolve(values.load);
const cluster = new Cluster({
  home: resolve(values.home),
  // The worker may load the folder with the files that are loaded below.
  workerFlags: [
    "--load-from",
    values.load !== undefined && statSync(files).isFile() ? dirname(files) : files,
  ],
  nodeBinary,
  workerBinary,
  tls: values.tls ?? false,
  ...sizes,
});
process.on("exit", () => cluster.processes.kill());
if (values.load === undefined) mkdirSync(files);
/** @type {(signal: string) => void} */
let stop = () => {};
const stopped = new Promise((done) => {
  stop = done;
});
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => stop(signal));

try {
  console.log("starting Kafka, DynamoDB Local and the nodes; this takes half a minute");
  await Promise.race([cluster.start(), stopped]);
  if (cluster.endpoint && !values["no-load"]) await Promise.race([load(), stopped]);
  if (cluster.endpoint) {
    const rows = [...cluster.processes.all.values()].map(
      ({ name, child, log }) => `  ${name.padEnd(10)} pid ${child.pid}, ${log}`,
    );
    console.log(`
A fleet of ${sizes.nodes} nodes with ${sizes.rf} replicas of ${sizes.partitions} partitions answers at ${cluster.endpoint}. Try:

  curl ${cluster.endpoint}/openCypher -d 'query=MATCH (n) RETURN labels(n)[0] AS label, count(*) AS vertices'

  curl ${cluster.endpoint}/openCypher -d 'query=CREATE (a:Person {name: "Ada"})-[:KNOWS]->(b:Person {name: "Grace"}) RETURN a, b'

  ${workerBinary} status --watch --endpoint ${cluster.endpoint}

${rows.join("\n")}

Kill any of them, and start again with what stands in its log. Stop all with Ctrl-C.
`);
    await stopped;
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
await cluster.stop();

/** Loads the files of `--load`, or a small identity graph, through the worker. */
async function load() {
  if (values.load === undefined) {
    const args = ["--scale", "200", "--seed", "7", "--format", "gremlin-csv", "--out", files];
    await run(workerBinary, ["generate", "identity", ...args], { quiet: true });
  }
  console.log(`loading ${files} through the worker`);
  await run(workerBinary, ["load", "--endpoint", cluster.endpoint, files]);
}

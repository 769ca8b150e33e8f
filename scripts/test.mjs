/**
 * `npm test`: every test, on a clean clone too. It installs what it needs (pinned, skipped when it is there), then runs
 * the Rust tests, the tests of the contracts, and the black-box tests against the real binary.
 *
 * `npm test -- --rust`, `--kafka`, `--dynamodb`, `--takeover`, `--fleet`, `--conformance`, `--lambda`, `--aws`, `--contracts`, `--infra`, `--moto` or `--integration` runs one part;
 * `npm test -- --integration --cluster` runs the black-box tests against workers of a fleet, but for those that are about one process.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster } from "./cluster/cluster.mjs";
import { dynamodbClasspath } from "./dynamodb.mjs";
import { kafkaClasspath } from "./kafka.mjs";
import { kits } from "./kits.mjs";
import { pythonWithClients } from "./python.mjs";
import { buildBench, buildFleet, installNodeModules, root, run, runSteps } from "./run.mjs";

const inCluster = process.argv.includes("--cluster");
const only = process.argv
  .slice(2)
  .filter((argument) => argument !== "--cluster")
  .map((argument) => argument.replace(/^--/, ""));
if (inCluster && only.join() !== "integration") {
  console.error("--cluster goes with --integration and nothing else");
  process.exit(2);
}
/** @param {string} part */
const wanted = (part) => only.length === 0 || only.includes(part);
const unknown = only.filter(
  (part) =>
    ![
      "rust",
      "kafka",
      "dynamodb",
      "takeover",
      "fleet",
      "conformance",
      "lambda",
      "aws",
      "contracts",
      "infra",
      "moto",
      "integration",
    ].includes(part),
);
if (unknown.length > 0) {
  console.error(
    `no such part: ${unknown.join(", ")}; there are --rust, --kafka, --dynamodb, --takeover, --fleet, --conformance, --lambda, --aws, --contracts, --infra, --moto and --integration`,
  );
  process.exit(2);
}

/**
 * Tests that hold in a fleet too. The others are about one process: its files and its end (`crash`, `lifecycle`), its drop folder (`drop`), its memory
 * (`memory`), its command line (`cli`); or need what is checked with one process well enough (`python`, `s3`, `token`).
 */
const OF_FLEETS = ["bookmarks", "compressed", "errors", "indexes", "loader", "queries", "shapes"];

let binary = "";
let benchBinary = "";
let python = "";
/** @type {(readonly [string, () => Promise<void>])[]} */
const steps = [["npm packages", installNodeModules]];
if (wanted("rust")) {
  steps.push(["Rust tests", () => run("cargo", ["test", "--locked", "--workspace", "--quiet"])]);
}
if (wanted("conformance")) {
  steps.push([
    "the languages' kits, in one process and in a fleet",
    async () => {
      const suites = ["--test", "tck", "--test", "gremlin_features", "--test", "languages"];
      const packages = ["-p", "tidegraph-engine", "-p", "tidegraph-fleet"];
      await run("cargo", ["test", "--locked", ...packages, ...suites, "--", "--nocapture"], {
        env: await kits(),
      });
    },
  ]);
}
if (wanted("kafka")) {
  // By themselves: the client takes minutes to build, and whoever works on the engine does without.
  steps.push([
    "log in Kafka",
    async () => {
      const env = { TIDEGRAPH_KAFKA_CLASSPATH: await kafkaClasspath() };
      const tests = [
        "test",
        "--locked",
        "--quiet",
        "-p",
        "tidegraph-log",
        "--features",
        "msk-iam",
        "--lib",
        "kafka",
      ];
      await run("cargo", [...tests, "--", "--test-threads=2"], { env });
    },
  ]);
}
if (wanted("dynamodb")) {
  // By themselves, as those of the log: the SDK takes minutes to build.
  steps.push([
    "partition map in DynamoDB",
    async () => {
      const env = { TIDEGRAPH_DYNAMODB_CLASSPATH: await dynamodbClasspath() };
      const tests = ["test", "--locked", "--quiet", "-p", "tidegraph-cluster", "--features", "dynamodb"];
      await run("cargo", [...tests, "--lib", "dynamodb", "--", "--test-threads=2"], { env });
    },
  ]);
}
if (wanted("takeover")) {
  steps.push([
    "take-overs of the sequencer",
    async () => {
      const env = {
        TIDEGRAPH_KAFKA_CLASSPATH: await kafkaClasspath(),
        TIDEGRAPH_DYNAMODB_CLASSPATH: await dynamodbClasspath(),
      };
      const tests = ["test", "--locked", "--quiet", "-p", "tidegraph-fleet", "--features", "takeover"];
      await run("cargo", [...tests, "--test", "takeover", "--", "--test-threads=1"], { env });
    },
  ]);
}
if (wanted("fleet")) {
  // What the libraries' tests are built with: a release build of the SDKs would take many minutes more.
  steps.push([
    "a fleet whose processes are killed",
    // A log of two shards does all that one does, and more.
    () => run("node", [join(root, "scripts", "faults.mjs"), "--quick", "--dev", "--shards", "2", "--tls"]),
  ]);
  steps.push(["replicas that move", () => run("node", [join(root, "scripts", "rebalance.mjs")])]);
  steps.push(["what machines on AWS run", () => run("node", [join(root, "scripts", "machines.mjs")])]);
  // A part of what `--integration --cluster` runs.
  steps.push(["integration tests against a fleet", () => clusterTests(["bookmarks", "loader", "queries"])]);
}
if (wanted("lambda")) {
  steps.push([
    "what functions read and answer",
    () => {
      const crates = ["-p", "tidegraph", "-p", "tidegraph-ingest", "-p", "tidegraph-rebalance"];
      const features = "tidegraph/lambda,tidegraph-ingest/lambda,tidegraph-rebalance/lambda";
      return run("cargo", ["test", "--locked", "--quiet", ...crates, "--features", features, "--lib"]);
    },
  ]);
  steps.push([
    "a worker as a Lambda function",
    () => run("node", [join(root, "scripts", "lambda.mjs"), "--dev"]),
  ]);
}
if (wanted("aws")) {
  steps.push(["a deployment to LocalStack", () => run("node", [join(root, "scripts", "aws.mjs")])]);
}
if (wanted("contracts")) {
  steps.push(["contracts", () => run("npm", ["test", "--silent", "--workspace", "contracts"])]);
}
if (wanted("infra")) {
  steps.push(["templates for AWS", () => run("npm", ["test", "--silent", "--workspace", "infra"])]);
  // What the templates put together from the repository.
  steps.push([
    "functions around loads of dropped files",
    () => run("npm", ["test", "--silent", "--workspace", "services/ingest/control"]),
  ]);
}
if (wanted("moto")) {
  steps.push([
    "brokers, machines and workers of the templates in moto",
    async () => {
      const env = { TIDEGRAPH_PYTHON: await pythonWithClients() };
      await run("npm", ["run", "moto", "--silent", "--workspace", "infra"], { env });
    },
  ]);
}
if (inCluster) {
  steps.push(["integration tests against a fleet", () => clusterTests(OF_FLEETS)]);
} else if (wanted("integration")) {
  steps.push([
    "the binaries tidegraph and tidegraph-bench",
    async () => {
      ({ binary, benchBinary } = await buildBench("release"));
    },
  ]);
  steps.push([
    "Python clients",
    async () => {
      python = await pythonWithClients();
    },
  ]);
  steps.push(["integration tests", integrationTests]);
}
await runSteps("npm test", steps);

async function integrationTests() {
  if (!existsSync(binary)) throw new Error("there is no binary to test");
  if (!existsSync(python)) throw new Error("there is no Python with the clients");
  const env = {
    TIDEGRAPH_BINARY: binary,
    TIDEGRAPH_BENCH_BINARY: benchBinary,
    TIDEGRAPH_PYTHON: python,
  };
  await run("npm", ["test", "--silent"], { cwd: join(root, "integration-tests"), env });
}

/** @param {readonly string[]} files */
async function clusterTests(files) {
  const { nodeBinary, workerBinary } = await buildFleet("dev");
  const home = mkdtempSync(join(tmpdir(), "tidegraph-cluster-tests-"));
  const sizes = { nodes: 0, rf: 1, partitions: 1, brokers: 1, port: 0 };
  const cluster = new Cluster({ home, nodeBinary, workerBinary, ...sizes });
  process.on("exit", () => cluster.processes.kill());
  try {
    // One after the other: the table is made by requests that wait a second each.
    await cluster.startDynamodb();
    await cluster.startKafka();
    // Makes the table; its own graph stays empty.
    const replication = ["--log-replication", "1", "--log-in-sync", "1"];
    await cluster.admin([
      "init",
      ...cluster.mapFlags(),
      ...cluster.logFlags(),
      ...replication,
      "--create-tables",
    ]);
    const shared = {
      nodeBinary,
      brokers: `127.0.0.1:${cluster.brokerPorts[0]}`,
      dynamodb: `http://127.0.0.1:${cluster.dynamodbPort}`,
    };
    const env = { TIDEGRAPH_BINARY: workerBinary, TIDEGRAPH_TEST_CLUSTER: JSON.stringify(shared) };
    const tests = files.map((name) => `test/${name}.test.ts`);
    const flags = ["--test", "--test-concurrency=1", "--test-reporter=spec"];
    await run("npx", ["tsx", ...flags, ...tests], { cwd: join(root, "integration-tests"), env });
  } finally {
    await cluster.stop();
  }
  rmSync(home, { recursive: true, force: true });
}

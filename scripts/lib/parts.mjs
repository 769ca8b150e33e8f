/**
 * The list of the parts of `npm test`. Each has a title, the files that its result depends on, and whether it mostly
 * waits.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildEverything, crates, noteCratesPassed, RUST_INPUTS, runTests } from "./cargo.mjs";
import { cypherShell, drivers } from "./clients.mjs";
import { kits } from "./kits.mjs";
import { program } from "./programs.mjs";
import {
  neptuneClients,
  neptunePackage,
  pythonWithCdk,
  pythonWithClients,
  pythonWithGremlin38,
  pythonWithPolicies,
} from "./python.mjs";
import { installNodeModules, root } from "./run.mjs";
import { Services } from "./services.mjs";

/** Kafka and DynamoDB Local, for every part that can share them. */
export const services = new Services();

const NODE = ["package-lock.json", "scripts/lib", "integration-tests/src", "contracts"];
const PROCESSES = [...RUST_INPUTS, ...NODE];

/**
 * Tests that also apply to a fleet. The others are about one process: its files and its end (`crash`, `lifecycle`), its
 * drop folder (`drop`), its memory (`memory`), its command line (`cli`). Or one process is enough for what they check
 * (`clients`, `gateway`, `python`, `s3`, `token`).
 */
export const OF_FLEETS = [
  "bookmarks",
  "changes",
  "compressed",
  "drivers",
  "errors",
  "indexes",
  "loader",
  "metrics-log",
  "queries",
  "shapes",
];

/**
 * @param {string} file path relative to `integration-tests`
 * @param {readonly string[]} [args]
 */
const acceptance =
  (file, args = []) =>
  /** @param {import("./run.mjs").Run} run */
  async (run) =>
    run("node", [join(root, "integration-tests", file), ...args], { env: await services.environment() });

/** @param {string} workspace @param {string} script */
const npm = (workspace, script) => /** @param {import("./run.mjs").Run} run */ (run) =>
  run("npm", ["run", script, "--silent", "--workspace", workspace]);

/** @type {readonly import("./lanes.mjs").Part[]} */
export const PARTS = [
  {
    name: "rust",
    title: "Rust tests, with the languages' kits, Kafka and DynamoDB Local",
    inputs: [...RUST_INPUTS, "scripts/lib/kits", "scripts/lib/kafka", "scripts/lib/dynamodb"],
    act: async () => runTests({ ...(await services.environment()), ...(await kits()) }),
    passed: () => noteCratesPassed(crates()),
  },
  {
    name: "rust",
    title: "examples in the Rust documentation",
    inputs: RUST_INPUTS,
    act: (run) => run("cargo", ["test", "--locked", "--workspace", "--all-features", "--doc", "--quiet"]),
  },
  {
    name: "integration",
    title: "integration tests",
    inputs: [
      ...PROCESSES,
      "clients",
      "integration-tests",
      "engine-core/engine/tests/gremlin_features/graphs",
    ],
    act: async (run) => {
      const env = {
        TIDEGRAPH_BINARY: program("tidegraph"),
        TIDEGRAPH_BENCH_BINARY: program("tidegraph-bench"),
        TIDEGRAPH_PYTHON: await pythonWithClients(),
        ...(await neptuneClients()),
        ...(await neptunePackage()),
        ...(await pythonWithGremlin38()),
        ...(await cypherShell()),
        ...(await drivers()),
        ...(await kits()),
      };
      await run("npm", ["test", "--silent"], { cwd: join(root, "integration-tests"), env });
    },
  },
  {
    name: "contracts",
    title: "contracts",
    inputs: ["contracts", "package-lock.json"],
    act: npm("contracts", "test"),
  },
  {
    name: "infra",
    title: "templates for AWS",
    // Pages, and checks of a machine, that tests compare with the code.
    inputs: [
      ...["infra", "contracts", "services/ingest/control", "package-lock.json", "package.json"],
      ...["docs", "services/storage/src/doctor"],
      ...["services/query/src/metrics", "engine-core/platform/src/metric.rs"],
    ],
    act: npm("infra", "test"),
  },
  {
    name: "infra",
    title: "IAM policies of the templates, and CloudFormation's linter",
    inputs: ["infra", "contracts", "services/ingest/control", "package-lock.json", "package.json"],
    act: async (run) =>
      run("npm", ["run", "policies", "--silent", "--workspace", "infra"], {
        env: await pythonWithPolicies(),
      }),
  },
  {
    name: "infra",
    title: "the constructs in Python",
    inputs: [
      "infra",
      "services/ingest/control",
      "contracts",
      "package-lock.json",
      "package.json",
      "Cargo.toml",
    ],
    act: async (run) =>
      run("npm", ["run", "python", "--silent", "--workspace", "infra"], { env: await pythonWithCdk() }),
  },
  {
    name: "infra",
    title: "functions around loads of dropped files",
    inputs: ["services/ingest/control", "contracts", "package-lock.json"],
    act: npm("services/ingest/control", "test"),
  },
  {
    name: "aws",
    title: "a deployment to LocalStack",
    waits: true,
    inputs: [
      ...PROCESSES,
      "clients",
      "docs/deploy.md",
      "infra",
      "integration-tests/aws",
      "integration-tests/python",
    ],
    act: acceptance("aws/deploy.mjs", ["--quick"]),
  },
  {
    name: "aws",
    title: "machines in LocalStack's Step Functions, and templates without the CDK",
    waits: true,
    inputs: [
      "infra",
      "contracts",
      "services/ingest/control",
      "scripts/lib/localstack",
      "scripts/lib/localstack.mjs",
      "package-lock.json",
    ],
    act: npm("infra", "localstack"),
  },
  {
    name: "fleet",
    title: "a fleet whose processes are killed",
    waits: true,
    inputs: [...PROCESSES, "integration-tests/fleet"],
    // Two shards cover everything that one shard does, and more.
    act: acceptance("fleet/faults.mjs", ["--quick", "--dev", "--shards", "2", "--tls"]),
  },
  {
    name: "fleet",
    title: "replicas that move",
    waits: true,
    inputs: [...PROCESSES, "integration-tests/fleet"],
    act: acceptance("fleet/rebalance.mjs"),
  },
  {
    name: "fleet",
    title: "partitions that split",
    waits: true,
    inputs: [...PROCESSES, "integration-tests/fleet"],
    act: acceptance("fleet/split.mjs"),
  },
  {
    name: "fleet",
    title: "what machines on AWS run",
    waits: true,
    inputs: [
      ...PROCESSES,
      "integration-tests/fleet",
      "integration-tests/python",
      "infra/node",
      "infra/worker",
      "infra/rotation",
    ],
    act: acceptance("fleet/machines.mjs"),
  },
  {
    name: "fleet",
    title: "the fleet's secret is rotated under load",
    waits: true,
    inputs: [...PROCESSES, "integration-tests/fleet", "infra/rotation"],
    act: acceptance("fleet/rotation.mjs"),
  },
  {
    name: "fleet",
    title: "TLS comes to a fleet, and its certificates and authority are replaced under load",
    waits: true,
    inputs: [...PROCESSES, "integration-tests/fleet", "infra/issuer"],
    act: acceptance("fleet/certificates.mjs"),
  },
  {
    name: "fleet",
    title: "traces from the caller to the nodes",
    waits: true,
    inputs: [...PROCESSES, "integration-tests/fleet", "integration-tests/python"],
    act: acceptance("fleet/traces.mjs"),
  },
  {
    name: "fleet",
    title: "two graphs in one fleet",
    waits: true,
    inputs: [...PROCESSES, "integration-tests/fleet"],
    act: acceptance("fleet/graphs.mjs"),
  },
  {
    name: "fleet",
    title: "a log that the brokers lost",
    waits: true,
    inputs: [...PROCESSES, "integration-tests/fleet"],
    act: acceptance("fleet/lost-log.mjs"),
  },
  {
    name: "fleet",
    title: "a drill: backups, and everything else destroyed",
    waits: true,
    inputs: [...PROCESSES, "integration-tests/fleet"],
    act: acceptance("fleet/backup.mjs"),
  },
  {
    name: "fleet",
    title: "integration tests against a fleet",
    waits: true,
    inputs: [...PROCESSES, "integration-tests"],
    // A subset of what `--integration --cluster` runs.
    act: (run) => testsOfFleets(run, ["bookmarks", "changes", "drivers", "loader", "queries"]),
  },
  {
    name: "lambda",
    title: "a worker as a Lambda function",
    waits: true,
    inputs: [...PROCESSES, "integration-tests/lambda"],
    act: acceptance("lambda/worker.mjs", ["--dev"]),
  },
  {
    name: "moto",
    title: "brokers, machines and workers of the templates in moto, and the doctor",
    waits: true,
    inputs: [
      "infra",
      "contracts",
      "services/ingest/control",
      "integration-tests/python",
      "package-lock.json",
      "package.json",
    ],
    act: async (run) => {
      const env = { TIDEGRAPH_PYTHON: await pythonWithClients() };
      await run("npm", ["run", "moto", "--silent", "--workspace", "infra"], { env });
    },
  },
];

/** The names of the parts, without duplicates. */
export const NAMES = [...new Set(PARTS.map(({ name }) => name))];

/** Installs what the parts need while the programs and tests are built. */
export async function prepare() {
  await installNodeModules();
  const downloads = Promise.all([
    pythonWithClients(),
    neptuneClients(),
    neptunePackage(),
    pythonWithGremlin38(),
    pythonWithPolicies(),
    cypherShell(),
    drivers(),
    kits(),
    services.environment(),
  ]);
  // A failed download is reported after the build, instead of as an unhandled rejection.
  downloads.catch(() => undefined);
  await buildEverything();
  await downloads;
}

/**
 * Runs black-box tests against workers of fleets.
 *
 * @param {import("./run.mjs").Run} run
 * @param {readonly string[]} files
 */
export async function testsOfFleets(run, files) {
  const [nodeBinary, workerBinary] = [program("tidegraph-node"), program("tidegraph")];
  const {
    TIDEGRAPH_TEST_KAFKA: brokers,
    TIDEGRAPH_TEST_DYNAMODB: dynamodb,
    ...env
  } = await services.environment();
  if (!existsSync(nodeBinary)) throw new Error(`there is no ${nodeBinary}`);
  const map = ["--graph", "tables", "--dynamodb-endpoint", `${dynamodb}`, "--dynamodb-local"];
  const log = ["--kafka-brokers", `${brokers}`, "--log-replication", "1", "--log-in-sync", "1"];
  // Creates the table; the graph of this command stays empty.
  await run(nodeBinary, ["init", ...map, ...log, "--create-tables"]);
  const shared = JSON.stringify({ nodeBinary, brokers, dynamodb });
  const tests = files.map((name) => `test/${name}.test.ts`);
  const flags = ["--test", "--test-concurrency=1", "--test-reporter=spec"];
  await run("npx", ["tsx", ...flags, ...tests], {
    cwd: join(root, "integration-tests"),
    env: {
      ...env,
      ...(await drivers()),
      TIDEGRAPH_BINARY: workerBinary,
      TIDEGRAPH_PYTHON: await pythonWithClients(),
      TIDEGRAPH_TEST_CLUSTER: shared,
    },
  });
}

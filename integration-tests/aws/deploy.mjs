/**
 * `npm run aws`: deploys the templates to LocalStack, which stands in for AWS. The CDK's own command line deploys both
 * stacks of the example. Real storage nodes with a real Kafka use the created table and bucket. Signed queries go
 * through the REST API and the query function, which is a process. Finally the service is destroyed, and the test
 * checks that what remains is what docs/deploy.md says.
 *
 * 1. LocalStack and Kafka start; meanwhile the templates are synthesized.
 * 2. `cdk bootstrap`, `cdk deploy State`, `cdk deploy Service`, with two graphs.
 * 3. Three nodes start from the deployed user data (`aws/machines.mjs`).
 * 4. `integration-tests/aws/*.test.ts`; with `--quick`, also `integration-tests/aws/certificates/*.test.ts`.
 * 5. `integration-tests/aws/drops/*.test.ts`: files dropped in S3, loaded by the state machine and its functions; and
 *    `integration-tests/aws/graphs/*.test.ts`: each graph has its own data.
 * 6. A node is killed under load (`integration-tests/aws/lost/*.test.ts`): the rule that runs every minute starts its
 *    heal, for each graph. Another node joins (`added/`). The sequencer's machine is terminated: the rule for that event
 *    drains it of both graphs first (`drained/`).
 * 7. `cdk destroy Service`, and `integration-tests/aws/destroyed/*.test.ts`.
 * 8. `cdk deploy Service` again, the nodes with the new secret, and `integration-tests/aws/again/*.test.ts`: the graphs
 *    are still there. Then `cdk destroy Service`.
 * 9. Both stacks are deployed without the second graph, which its state machine removes while nodes still serve it
 *    (`removed/`). The nodes start again without it (`left/`). LocalStack updates no stage of an API, so the service is
 *    destroyed before and after.
 * 10. Everything is deleted, as docs/deploy.md says, and `integration-tests/aws/nothing/*.test.ts`.
 *
 * `--quick`, as `npm test` runs it, skips 6, 8 and 9, which mostly wait, and deploys with `encryption`; `npm run test:long`
 * does everything, without `encryption`. `--one-graph` deploys one graph: its state machines are others. `--keep` leaves
 * everything running after 3, prints how to send requests, and ends at Ctrl-C.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { airRoutes } from "../../scripts/lib/air-routes.mjs";
import { Deployment } from "../../scripts/lib/aws/deployment.mjs";
import { Machines } from "../../scripts/lib/aws/machines.mjs";
import { Cluster } from "../../scripts/lib/cluster/cluster.mjs";
import { LocalStack } from "../../scripts/lib/localstack.mjs";
import { buildFleet } from "../../scripts/lib/programs.mjs";
import { neptunePackage, pythonWithClients } from "../../scripts/lib/python.mjs";
import { installNodeModules, root, run } from "../../scripts/lib/run.mjs";

const { values } = parseArgs({
  options: {
    keep: { type: "boolean", default: false },
    "one-graph": { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
  },
});
await installNodeModules();
const python = await pythonWithClients();
const { TIDEGRAPH_NEPTUNE_PACKAGE } = await neptunePackage();
const routes = await airRoutes();
const programs = await buildFleet("dev");
const { nodeBinary, workerBinary } = programs;
const home = mkdtempSync(join(tmpdir(), "tidegraph-aws-"));
const sizes = { nodes: 0, rf: 1, partitions: 1, brokers: 1, port: 0 };
const cluster = new Cluster({ home: join(home, "cluster"), nodeBinary, workerBinary, ...sizes });
const localstack = new LocalStack({ log: join(home, "localstack.log") });
process.on("exit", () => {
  cluster.processes.kill();
  localstack.kill();
  rmSync(localstack.home, { recursive: true, force: true });
});
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => process.exit(130));

/** @type {string[]} */
const figures = [];

/**
 * Runs a step and records how long it took.
 *
 * @param {string} what
 * @param {() => Promise<void>} step
 */
async function timed(what, step) {
  console.log(`\n── ${what}`);
  const begin = performance.now();
  await step();
  figures.push(`${((performance.now() - begin) / 1000).toFixed(1).padStart(7)} s  ${what}`);
}

let failed = true;
try {
  await timed("LocalStack and Kafka start", async () => {
    await Promise.all([
      localstack.start(["cloudformation", "dynamodb", "lambda", "apigateway", "s3", "stepfunctions"]),
      cluster.startKafka(),
    ]);
  });
  const brokers = `127.0.0.1:${cluster.brokerPorts[0]}`;
  const deployment = new Deployment({
    home,
    localstack,
    programs,
    brokers,
    graphs: values["one-graph"] ? [] : ["orders"],
    encrypts: values.quick,
  });
  await timed("cdk synth", () => deployment.synth());
  await timed("cdk bootstrap", () => deployment.bootstrap());
  await timed("cdk deploy State", () => deployment.deploy("State"));
  await timed("cdk deploy Service", () => deployment.deploy("Service"));
  if (deployment.encrypts) await timed("certificates are issued", () => deployment.issueCertificates());
  const machines = new Machines({ home, deployment, processes: cluster.processes, nodeBinary });
  await timed("three nodes start, all partitions are placed and serve", () => machines.start());
  if (values.keep) await keep(deployment);
  await timed("queries through the API", () => tests("aws", deployment, machines));
  figures.push(...coldStarts());
  await timed("files are dropped, loaded and counted", () => tests("aws/drops", deployment, machines));
  if (deployment.graphs.length)
    await timed("two graphs, each with its own data", () => tests("aws/graphs", deployment, machines));
  if (deployment.encrypts)
    await timed("connections are encrypted", () => tests("aws/certificates", deployment, machines));
  if (!values.quick) {
    await timed("a node is lost, and healed", () => tests("aws/lost", deployment, machines));
    // In the zone of the lost node, where the group would start a new one.
    await timed("a node joins", () => machines.join(["i-5"], 3).then(() => undefined));
    await timed("it gets its share", () => tests("aws/added", deployment, machines));
    await timed("a machine is taken away, and drained before", () =>
      tests("aws/drained", deployment, machines),
    );
  }
  await timed("cdk destroy Service", () => deployment.destroy("Service"));
  await timed("what remains", () => tests("aws/destroyed", deployment, machines));
  if (!values.quick) {
    await timed("cdk deploy Service, again", () => deployment.deploy("Service"));
    await machines.stop();
    await timed("the two nodes that are left start again, and their replicas serve", () => machines.start());
    await timed("the graphs are found", () => tests("aws/again", deployment, machines));
    await timed("cdk destroy Service, again", () => deployment.destroy("Service"));
    if (deployment.graphs.length) await removeGraph(deployment, machines);
  }
  await machines.stop();
  await timed("everything is deleted", () => deployment.deleteAll());
  await timed("nothing remains", () => tests("aws/nothing", deployment, machines));
  failed = false;
} catch (error) {
  console.error(error instanceof Error ? error.stack : error);
}
await cluster.stop();
await localstack.stop();
console.log(`\nnpm run aws (builds of the profile dev)\n${figures.join("\n")}`);
if (!failed) rmSync(home, { recursive: true, force: true });
else console.error(`what the processes said is in ${home}`);
process.exit(failed ? 1 : 0);

/**
 * Takes the second graph out of the deployment, removes it, and starts the nodes again without it, as an upgrade would.
 *
 * @param {Deployment} deployment
 * @param {Machines} machines
 */
async function removeGraph(deployment, machines) {
  await timed("both stacks are deployed without the second graph", async () => {
    await deployment.takeOut();
    await deployment.deploy("State");
    await deployment.deploy("Service");
  });
  await timed("it is removed", () => tests("aws/removed", deployment, machines));
  await machines.stop();
  await timed("the nodes start without it", () => machines.start());
  await timed("the other graph is left", () => tests("aws/left", deployment, machines));
  await timed("cdk destroy Service, the last time", () => deployment.destroy("Service"));
}

/**
 * Runs the tests of a folder, one file after another.
 *
 * @param {string} folder
 * @param {Deployment} deployment
 * @param {Machines} machines
 */
async function tests(folder, deployment, machines) {
  const env = {
    TIDEGRAPH_PYTHON: python,
    TIDEGRAPH_NEPTUNE_PACKAGE,
    TIDEGRAPH_AWS: JSON.stringify({
      api: deployment.api,
      endpoint: localstack.endpoint,
      airRoutes: routes,
      drop: deployment.output("service", "ServiceDropBucket"),
      table: deployment.table,
      graphs: ["default", ...deployment.graphs],
      taken: deployment.taken,
      topics: join(home, "cluster", "kafka-0", "data"),
      ...(deployment.encrypts && { certificates: deployment.certificates }),
      functionLogs: localstack.functionLogs,
      machines: {
        heal: deployment.machine("ServiceRebalanceHeal"),
        scaleOut: deployment.machine("ServiceRebalanceScaleOut"),
        drain: deployment.machine("ServiceRebalanceDrain"),
        ingest: deployment.machine("ServiceIngestMachine"),
        settle: deployment.machine("ServiceIngestSettle"),
        ...(!values["one-graph"] && { removal: deployment.machine("ServiceRemovalMachine") }),
      },
      templates: deployment.assembly,
      secrets: [machines.secret],
      nodes: [...machines.started].map(([name, { FLEET_PORT, METRICS_PORT, TIDEGRAPH_TLS_SECRET }]) => ({
        name,
        pid: cluster.processes.all.get(name)?.child.pid,
        fleetPort: Number(FLEET_PORT),
        metricsPort: Number(METRICS_PORT),
        certificates: TIDEGRAPH_TLS_SECRET,
      })),
    }),
  };
  const cwd = join(root, "integration-tests");
  const files = readdirSync(join(cwd, folder)).filter((name) => name.endsWith(".test.ts"));
  const flags = ["--test", "--test-concurrency=1", "--test-reporter=spec"];
  await run("npx", ["tsx", ...flags, ...files.map((name) => join(folder, name))], { cwd, env });
}

/**
 * Returns what each environment of the query function printed about its start: the time from exec to its first request
 * for an event.
 */
function coldStarts() {
  return readdirSync(localstack.functionLogs).flatMap((name) => {
    const log = readFileSync(join(localstack.functionLogs, name), "utf8");
    const init = /^INIT_REPORT Init Duration: ([\d.]+) ms$/m.exec(log)?.[1];
    const first = /^REPORT .*Duration: ([\d.]+) ms$/m.exec(log)?.[1];
    if (init === undefined || first === undefined) return [];
    return [`${init.padStart(7)} ms  the query function starts; its first answer takes ${first} ms more`];
  });
}

/** Prints how to send requests to the deployment, and waits for the end. @param {Deployment} deployment */
async function keep(deployment) {
  console.log(`
The API is at ${deployment.api}, where LocalStack asks for no signature:
  curl ${deployment.api}/openCypher -d 'query=RETURN 1 AS one'
AWS's SDKs and command line ask LocalStack with
${Object.entries(localstack.environment)
  .map(([name, value]) => (value === undefined ? `  unset ${name}` : `  export ${name}=${value}`))
  .join("\n")}
Logs are in ${home} and ${localstack.functionLogs}. Ctrl-C ends everything.`);
  await new Promise(() => setInterval(() => {}, 60_000));
}

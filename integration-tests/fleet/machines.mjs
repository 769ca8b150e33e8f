/**
 * A part of `npm test -- --fleet`: runs what machines on AWS run. The commands come from the unit of storage nodes
 * (`infra/node/`), and the scripts are those that user data writes. Kafka and DynamoDB Local are real, and moto's Secrets
 * Manager has the secret of the fleet. The test starts a worker as its container does, which answers 503 until there is a
 * graph. It creates the graph, which the function that moves replicas places. Clients of Neptune ask a worker with access
 * keys as they are. `tidegraph-node doctor` looks at machines. A node is lost and replaced, and its replicas are restored; one node is added, and one is drained.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Cluster } from "../../scripts/lib/cluster/cluster.mjs";
import { connected, freePort } from "../../scripts/lib/cluster/processes.mjs";
import { commandOf, words } from "../../scripts/lib/cluster/unit.mjs";
import { execute as carryOut, rebalanceFunction } from "../../scripts/lib/lambda/steps.mjs";
import { buildFleet } from "../../scripts/lib/programs.mjs";
import { pythonWithClients } from "../../scripts/lib/python.mjs";
import { root } from "../../scripts/lib/run.mjs";
import { Secrets } from "../../scripts/lib/secrets.mjs";

const PATIENCE_MS = 180_000;
const FLEET = "a-secret-of-the-fleet-0123456789";
const CLIENT = "a-secret-of-clients-0123456789";
const PARTITIONS = 8;
const SHARDS = 2;
const infra = join(root, "infra");
const execute = promisify(execFile);

const { nodeBinary, workerBinary, rebalanceBinary } = await buildFleet("dev");
const python = await pythonWithClients();
const home = mkdtempSync(join(tmpdir(), "tidegraph-machines-"));
const sizes = { nodes: 0, rf: 2, partitions: PARTITIONS, brokers: 1, port: 0 };
const secrets = await Secrets.start(FLEET);
const cluster = new Cluster({ home: join(home, "cluster"), nodeBinary, workerBinary, ...sizes });
process.on("exit", () => cluster.processes.kill());
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => process.exit(130));

const unit = readFileSync(join(infra, "node", "tidegraph-node.service"), "utf8");

/** Returns the variables of every process: those of `fleet.env`, except for those that exist only on AWS. */
function fleetEnvironment() {
  return {
    ...secrets.environment,
    TIDEGRAPH_DYNAMODB_ENDPOINT: `http://127.0.0.1:${cluster.dynamodbPort}`,
    TIDEGRAPH_DYNAMODB_LOCAL: "true",
    TIDEGRAPH_OBJECTS: join(home, "cluster", "objects"),
    TIDEGRAPH_KAFKA_BROKERS: `127.0.0.1:${cluster.brokerPorts[0]}`,
    PARTITIONS: String(PARTITIONS),
    SHARDS: String(SHARDS),
    REPLICATION: "2",
    NODES: "3",
    LOG_REPLICATION: "1",
    LOG_IN_SYNC: "1",
  };
}

/** @type {(() => Promise<void>)[]} */
const stops = [];
/** The variables of each machine. @type {Map<string, Record<string, string>>} */
const machines = new Map();

/**
 * Starts a machine: the unit's commands before the daemon, then the daemon.
 *
 * @param {string} name
 * @param {string} zone
 */
async function startMachine(name, zone) {
  const run = join(home, name);
  mkdirSync(join(run, "spill"), { recursive: true });
  /** @type {Record<string, string>} */
  const environment = {
    ...fleetEnvironment(),
    TIDEGRAPH_NODE: name,
    TIDEGRAPH_ZONE: zone,
    ADDRESS: "127.0.0.1",
    MEMORY_BUDGET: String(256 << 20),
    FLEET_PORT: String(await freePort()),
    METRICS_PORT: String(await freePort()),
    TIDEGRAPH_RUN: run,
    TIDEGRAPH_NODE_PROGRAM: nodeBinary,
  };
  machines.set(name, environment);
  const here = { program: nodeBinary, run, environment };
  const [program = "", ...flags] = words(commandOf(unit, "ExecStartPre", " init "), here);
  await execute(program, flags, { env: { ...process.env, ...environment } });
  const [daemon = "", ...how] = words(commandOf(unit, "ExecStart", " serve "), here);
  cluster.processes.start(name, daemon, how, environment);
  await cluster.processes.said(name, "listens on", PATIENCE_MS);
}

/**
 * Runs `tidegraph-node doctor` on a machine, and returns its exit code and what each check says. Disk and clock are those
 * of the machine that runs this test.
 *
 * @param {string} name
 */
async function doctor(name) {
  const environment = machines.get(name) ?? {};
  const metrics = ["--metrics", `127.0.0.1:${environment.METRICS_PORT}`];
  const flags = ["doctor", "--json", "--data", join(home, name, "spill"), ...metrics];
  const ended = await execute(nodeBinary, flags, { env: { ...process.env, ...environment } }).then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout }) => ({ code, stdout }),
  );
  /** @type {{ checks: { id: string, status: string, seen: string, remedy?: string }[] }} */
  const { checks } = JSON.parse(ended.stdout);
  return { code: ended.code, of: new Map(checks.map((check) => [check.id, check])), checks };
}

/** Checks what the doctor says of a machine that serves, and of one whose daemon was killed. */
async function doctors() {
  const well = await doctor("i-1");
  const said = JSON.stringify(well.checks, null, 1);
  assert.equal(well.of.get("machine.daemon")?.status, "ok", said);
  assert.equal(well.of.get("machine.member")?.status, "ok", said);
  assert.match(
    well.of.get("machine.member")?.seen ?? "",
    /^i-1 is up in the map of default, with \d+ replicas$/,
  );
  assert.match(well.of.get("machine.files")?.seen ?? "", /^process \d+ may open \d+ files, \d+ are open$/);
  assert.match(well.of.get("machine.disk")?.seen ?? "", /of [0-9.]+ GiB are free$/);
  const failures = well.checks.filter(({ status }) => status === "failed");
  assert.equal(well.code, failures.length === 0 ? 0 : 1, said);
  const dead = await doctor("i-2");
  assert.equal(dead.code, 1);
  for (const id of ["machine.daemon", "machine.member"]) {
    assert.equal(dead.of.get(id)?.status, "failed", id);
    assert.match(dead.of.get(id)?.remedy ?? "", /tidegraph-node/);
  }
  assert.equal(dead.of.get("machine.files")?.status, "unknown");
  await assert.rejects(execute(nodeBinary, ["doctor", "--metrics", "nowhere"]), { code: 2 });
}

/** Returns the map as the daemon prints it. */
async function map() {
  const { stdout } = await execute(nodeBinary, ["map"], { env: { ...process.env, ...fleetEnvironment() } });
  return /** @type {{ nodes: { id: string, state: string }[], partitions: { replicas: { node: string, state: string }[] }[] }} */ (
    JSON.parse(stdout)
  );
}

/** @typedef {Awaited<ReturnType<typeof map>>} PartitionMap */

/** @param {string} what @param {(map: PartitionMap) => boolean} isSo */
async function until(what, isSo) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const now = await map();
    if (isSo(now)) return;
    if (Date.now() > end)
      throw new Error(`after ${PATIENCE_MS} ms ${what} is not so: ${JSON.stringify(now)}`);
    await sleep(500);
  }
}

/** @param {string} state */
const nodesThatAre =
  (state) =>
  (/** @type {PartitionMap} */ { nodes }) =>
    nodes.filter((node) => node.state === state).map((node) => node.id);

/** Starts the function that moves replicas, with the variables of its template. */
async function rebalancer() {
  const { TIDEGRAPH_DYNAMODB_ENDPOINT, TIDEGRAPH_DYNAMODB_LOCAL, NODES } = fleetEnvironment();
  return await rebalanceFunction(rebalanceBinary, join(home, "rebalance.log"), {
    TIDEGRAPH_DYNAMODB_ENDPOINT,
    TIDEGRAPH_DYNAMODB_LOCAL,
    TIDEGRAPH_NODES: NODES,
  });
}

/** @param {string} endpoint @param {string} query @param {string} secret */
async function ask(endpoint, query, secret) {
  const headers = { authorization: `Bearer ${secret}` };
  const response = await fetch(`${endpoint}/openCypher`, {
    method: "POST",
    body: new URLSearchParams({ query }),
    headers,
  });
  return { status: response.status, body: await response.json() };
}

/**
 * Starts a worker with access keys in place of the clients' secret, and lets clients of Neptune ask it as they are.
 *
 * @param {string} query
 * @param {number} n What it returns.
 */
async function clientsOfNeptune(query, n) {
  const [port, region, folder] = [await freePort(), "eu-central-1", join(home, "signed")];
  mkdirSync(folder);
  const key = { accessKeyId: "AKIDANALYST", secretAccessKey: "a-secret-of-the-analyst", roles: ["read"] };
  const flags = ["--host", "127.0.0.1", "--port", String(port), "--sigv4-region", region];
  const objects = ["--objects", join(home, "cluster", "objects")];
  const script = join(infra, "worker", "start-worker.sh");
  cluster.processes.start("signed", "sh", [script, ...flags, ...objects], {
    ...fleetEnvironment(),
    ACCESS_KEYS: JSON.stringify({ credentials: [key] }),
    TIDEGRAPH_PROGRAM: workerBinary,
    TIDEGRAPH_SECRETS: folder,
  });
  await cluster.processes.said("signed", "Tidegraph listens on", PATIENCE_MS);
  await connected(`http://127.0.0.1:${port}`, PATIENCE_MS);
  const client = join(root, "integration-tests", "python", "neptune_worker.py");
  const { stdout } = await execute(python, [client, String(port), region, query], { timeout: PATIENCE_MS });
  assert.deepEqual(JSON.parse(stdout), {
    boto3: [{ n }],
    gremlin: [1],
    bolt: [{ n }],
    "read only": "AccessDeniedException",
    "wrong secret": "AccessDeniedException",
  });
  await cluster.processes.end(["signed"], PATIENCE_MS);
}

try {
  await cluster.startDynamodb();
  await cluster.startKafka();
  const port = await freePort();
  const flags = [
    "--host",
    "127.0.0.1",
    "--port",
    String(port),
    "--objects",
    join(home, "cluster", "objects"),
  ];
  cluster.processes.start("worker", "sh", [join(infra, "worker", "start-worker.sh"), ...flags], {
    ...fleetEnvironment(),
    CLIENT_TOKEN: CLIENT,
    TIDEGRAPH_PROGRAM: workerBinary,
    TIDEGRAPH_SECRETS: home,
  });
  await cluster.processes.said("worker", "Tidegraph listens on", PATIENCE_MS);
  const endpoint = `http://127.0.0.1:${port}`;
  // On AWS workers may start before the first machine has made the graph.
  for (const path of ["/status", "/openCypher?query=RETURN%201", "/gremlin", "/no-such-path"]) {
    const early = await fetch(`${endpoint}${path}`);
    const { code } = /** @type {{ code: string }} */ (await early.json());
    assert.deepEqual(
      [early.status, early.headers.get("retry-after"), code],
      [503, "5", "ServiceUnavailableException"],
    );
  }
  // On AWS the template creates the table.
  const replication = ["--log-replication", "1", "--log-in-sync", "1"];
  const made = [
    "--partitions",
    String(PARTITIONS),
    "--shards",
    String(SHARDS),
    "--replication",
    "2",
    ...replication,
  ];
  await cluster.admin(["init", ...cluster.mapFlags(), ...cluster.logFlags(), ...made, "--create-tables"]);
  const steps = await rebalancer();
  stops.push(() => steps.stop());
  const needed = async () => {
    const { needed, node, lost } = await steps.step({ step: "detect" });
    return { needed, node, lost };
  };
  await startMachine("i-0", "a");
  await startMachine("i-1", "b");
  await until("that two nodes are up", (now) => nodesThatAre("up")(now).length === 2);
  assert.deepEqual(
    await needed(),
    { needed: "nothing", node: undefined, lost: [] },
    "a third one is to come",
  );
  await startMachine("i-2", "c");
  await until("that three nodes are up", (now) => nodesThatAre("up")(now).length === 3);
  assert.equal((await needed()).needed, "heal");
  const placed = await carryOut(steps, { holder: "first", goal: "repair" });
  assert.deepEqual([placed.moves, placed.verified.whole], [16, true], JSON.stringify(placed.verified));
  assert.equal((await needed()).needed, "nothing");

  await connected(endpoint, PATIENCE_MS);
  assert.equal((await ask(endpoint, "RETURN 1 AS one", "another secret")).status, 403);
  const write = await ask(
    endpoint,
    "UNWIND range(1, 100) AS n CREATE (p:Person {n: n}) RETURN count(p) AS n",
    CLIENT,
  );
  assert.deepEqual(write, { status: 200, body: { results: [{ n: 100 }] } });
  await clientsOfNeptune("MATCH (p:Person) RETURN count(p) AS n", 100);

  cluster.processes.signal("i-2", "SIGKILL");
  const count = "MATCH (p:Person) RETURN count(p) AS n";
  assert.deepEqual(await ask(endpoint, count, CLIENT), write, "reads go on");
  await doctors();
  await startMachine("i-3", "c");
  await until("that the lost node is gone and its successor up", (now) => {
    const up = nodesThatAre("up")(now);
    return up.length === 3 && up.includes("i-3") && nodesThatAre("gone")(now).includes("i-2");
  });
  assert.equal((await needed()).needed, "heal");
  const healed = await carryOut(steps, { holder: "second", goal: "repair" });
  assert.ok(healed.moves > 0 && healed.verified.whole, JSON.stringify(healed));
  await until("that each partition has two replicas that serve", (now) => {
    const up = nodesThatAre("up")(now);
    return now.partitions.every(
      ({ replicas }) =>
        replicas.filter(({ node, state }) => up.includes(node) && state === "serving").length >= 2,
    );
  });
  assert.equal((await needed()).needed, "nothing");
  assert.deepEqual(await ask(endpoint, count, CLIENT), write);

  // A node is added and gets its share; then one is terminated.
  await startMachine("i-4", "a");
  await until("that there are four nodes", (now) => nodesThatAre("up")(now).length === 4);
  assert.equal((await needed()).needed, "scale-out");
  const scaled = await carryOut(steps, { holder: "third", goal: "balance" });
  assert.deepEqual([scaled.moves, scaled.verified.whole], [4, true], JSON.stringify(scaled));
  const drained = await carryOut(steps, { holder: "fourth", goal: "repair", drain: "i-1" });
  assert.deepEqual([drained.moves, drained.verified.whole], [4, true], JSON.stringify(drained));
  assert.ok((await map()).partitions.every(({ replicas }) => replicas.every(({ node }) => node !== "i-1")));
  assert.deepEqual(await ask(endpoint, count, CLIENT), write);
  console.log(
    "machines of the template: a graph was made, placed, asked, had its replicas again after a node was lost, and was scaled out and drained",
  );
} finally {
  for (const stop of stops) await stop();
  await cluster.stop();
  secrets.stop();
}
rmSync(home, { recursive: true, force: true });

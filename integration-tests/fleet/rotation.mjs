/**
 * A part of `npm test -- --fleet`: rotates the fleet's secret under load. Nodes, workers and functions read it from
 * Secrets Manager (moto), and the function of the deployment (`infra/rotation/`) rotates it. Between rotations a worker,
 * a function and a node start, each of which knows a newer secret than the others; one rotation dies half-way and is
 * repeated. No request may fail.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "../../scripts/lib/cluster/cluster.mjs";
import { LambdaFunction, restEvent } from "../../scripts/lib/lambda/runtime.mjs";
import { buildFleet } from "../../scripts/lib/programs.mjs";
import { Secrets } from "../../scripts/lib/secrets.mjs";

const FIRST = "the-first-secret-of-the-fleet-0123456789";
const NODES = 3;
const PATIENCE_MS = 120_000;
/** Longest wait for an answer, so that a request that is never answered is told by its text. */
const ANSWER_MS = 60_000;

const { nodeBinary, workerBinary, lambdaBinary } = await buildFleet("dev");
const home = mkdtempSync(join(tmpdir(), "tidegraph-rotation-"));
const secrets = await Secrets.start(FIRST);
const cluster = new Cluster({
  home: join(home, "cluster"),
  nodeBinary,
  workerBinary,
  ...{ nodes: NODES, rf: 2, partitions: 8, brokers: 1, port: 0 },
  secret: secrets.environment,
});
process.on("exit", () => cluster.processes.kill());
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => process.exit(130));

/** The newest version that a worker has answered with: another worker may be some milliseconds behind it. */
let newest = 0n;

/** A header with which a worker or function waits for the newest version before it answers. */
const bookmark = () => ({ "Tidegraph-Version": String(newest) });

/** @param {string} endpoint @param {string} query @param {Record<string, string>} [headers] */
async function ask(endpoint, query, headers = {}) {
  const body = new URLSearchParams({ query });
  const signal = AbortSignal.timeout(ANSWER_MS);
  const response = await fetch(`${endpoint}/openCypher`, { method: "POST", headers, body, signal });
  const version = BigInt(response.headers.get("tidegraph-version") ?? 0);
  if (version > newest) newest = version;
  return { status: response.status, body: await response.json() };
}

/** Endpoints that clients ask, and what came of their requests. */
const endpoints = /** @type {string[]} */ ([]);
const answered = { reads: 0, writes: 0 };
const failed = /** @type {string[]} */ ([]);
let stopping = false;

/** Asks all workers in turn, reading and writing. @param {number} client */
async function load(client) {
  for (let number = 0; !stopping; number += 1) {
    const endpoint = endpoints[number % endpoints.length] ?? "";
    const writes = number % 4 === 0;
    const query = writes
      ? `CREATE (:Made {client: ${client}, number: ${number}}) RETURN 1 AS n`
      : "MATCH (s:Start) RETURN count(s) AS n";
    const answer = await ask(endpoint, query).catch((error) => ({ status: 0, body: String(error) }));
    if (answer.status !== 200) failed.push(`${query}: ${JSON.stringify(answer)}`);
    else if (writes) answered.writes += 1;
    else answered.reads += 1;
  }
}

/** Stops a node in order, starts it again, and waits until all replicas serve. @param {number} number */
async function restart(number) {
  const name = `node-${number}`;
  await cluster.processes.end([name], 30_000);
  cluster.startNode(number);
  await cluster.processes.said(name, "listens on", PATIENCE_MS);
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const { nodes, partitions } = await cluster.map();
    const isUp = nodes.every((/** @type {{ state: string }} */ { state }) => state === "up");
    const serve = partitions.every((/** @type {{ replicas: { state: string }[] }} */ { replicas }) =>
      replicas.every(({ state }) => state === "serving"),
    );
    if (isUp && serve) return;
    if (Date.now() > end) throw new Error(`${name} does not serve again: ${JSON.stringify(partitions)}`);
    await sleep(200);
  }
}

/** Starts a worker, which begins with the newest secret. @param {string} name */
async function addWorker(name) {
  const endpoint = await cluster.startWorker(name, 0);
  const answer = await ask(endpoint, "MATCH (s:Start) RETURN count(s) AS n", bookmark());
  assert.deepEqual(answer, { status: 200, body: { results: [{ n: 100 }] } }, name);
  endpoints.push(endpoint);
}

/** The query function, in its own processes. @type {LambdaFunction[]} */
const functions = [];
process.on("exit", () => {
  for (const one of functions) one.signal("SIGKILL");
});

/** Starts the query function, which begins with the newest secret, and asks all that run. */
async function askFunctions() {
  // Only the place of the secret differs from what the other tests give it.
  const environment = {
    ...cluster.workerEnvironment(),
    ...secrets.environment,
    TIDEGRAPH_FLEET_TOKEN_FILE: "",
  };
  const one = new LambdaFunction(lambdaBinary, join(home, `function-${functions.length}.log`), environment);
  functions.push(one);
  await one.start();
  for (const [number, each] of functions.entries()) {
    const query = { query: "MATCH (s:Start) RETURN count(s) AS n" };
    const { status, body } = await each.invoke(
      restEvent("GET", "/openCypher", { query, headers: bookmark() }),
    );
    assert.deepEqual(
      [status, JSON.parse(body.toString())],
      [200, { results: [{ n: 100 }] }],
      `function ${number}`,
    );
  }
}

try {
  await cluster.start();
  const made = await ask(cluster.endpoint, "UNWIND range(1, 100) AS n CREATE (:Start {n: n})");
  assert.equal(made.status, 200, JSON.stringify(made));
  endpoints.push(cluster.endpoint);
  const clients = [load(0), load(1), load(2)];
  await askFunctions();

  // The nodes know the first secret only, and the new worker shows the second.
  await secrets.rotate();
  await addWorker("worker-1");
  await askFunctions();
  // A node that knows the second and the third, and the first worker, which knows the first only.
  await secrets.rotate();
  await restart(0);
  await addWorker("worker-2");
  await askFunctions();
  // A rotation that dies after its first steps changes nothing, and is repeated, first with its own id.
  const version = randomUUID();
  await secrets.rotate({ version, until: "testSecret" });
  await restart(1);
  await secrets.rotate({ version });
  await addWorker("worker-3");
  await askFunctions();
  // And one that is repeated with another id.
  await secrets.rotate({ until: "finishSecret" });
  await secrets.rotate();
  await restart(2);
  await addWorker("worker-4");
  await askFunctions();

  stopping = true;
  await Promise.all(clients);
  assert.deepEqual(failed, []);
  assert.ok(answered.reads > 100 && answered.writes > 30, JSON.stringify(answered));
  const [endpoint = ""] = endpoints;
  const count = await ask(endpoint, "MATCH (m:Made) RETURN count(m) AS n", bookmark());
  assert.deepEqual(count.body, { results: [{ n: answered.writes }] });

  // Who has only the first secret is refused now.
  cluster.options.secret = undefined;
  writeFileSync(join(home, "cluster", "fleet-token"), `${FIRST}\n`, { mode: 0o600 });
  const stranger = await cluster.startWorker("stranger", 0);
  const refused = await ask(stranger, "MATCH (s:Start) RETURN count(s) AS n");
  assert.notEqual(refused.status, 200, JSON.stringify(refused));
  console.log(
    `the secret was rotated 4 times under load: ${answered.reads} reads and ${answered.writes} writes were answered, none failed`,
  );
} finally {
  stopping = true;
  for (const one of functions) await one.stop();
  await cluster.stop();
  secrets.stop();
}
rmSync(home, { recursive: true, force: true });

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
import { Cluster } from "../../scripts/lib/cluster/cluster.mjs";
import { READ, SteadyLoad } from "../../scripts/lib/cluster/steady-load.mjs";
import { LambdaFunction, restEvent } from "../../scripts/lib/lambda/runtime.mjs";
import { buildFleet } from "../../scripts/lib/programs.mjs";
import { Secrets } from "../../scripts/lib/secrets.mjs";

const FIRST = "the-first-secret-of-the-fleet-0123456789";
const NODES = 3;
const PATIENCE_MS = 120_000;

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

const load = new SteadyLoad();

/** Starts a worker, which begins with the newest secret. @param {string} name */
async function addWorker(name) {
  const endpoint = await cluster.startWorker(name, 0);
  const answer = await load.ask(endpoint, READ, load.bookmark());
  assert.deepEqual(answer, { status: 200, body: { results: [{ n: 100 }] } }, name);
  load.endpoints.push(endpoint);
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
    const query = { query: READ };
    const { status, body } = await each.invoke(
      restEvent("GET", "/openCypher", { query, headers: load.bookmark() }),
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
  const made = await load.ask(cluster.endpoint, "UNWIND range(1, 100) AS n CREATE (:Start {n: n})");
  assert.equal(made.status, 200, JSON.stringify(made));
  load.endpoints.push(cluster.endpoint);
  load.start(3);
  await askFunctions();

  // The nodes know the first secret only, and the new worker shows the second.
  await secrets.rotate();
  await addWorker("worker-1");
  await askFunctions();
  // A node that knows the second and the third, and the first worker, which knows the first only.
  await secrets.rotate();
  await cluster.restartNode(0, PATIENCE_MS);
  await addWorker("worker-2");
  await askFunctions();
  // A rotation that dies after its first steps changes nothing, and is repeated, first with its own id.
  const version = randomUUID();
  await secrets.rotate({ version, until: "testSecret" });
  await cluster.restartNode(1, PATIENCE_MS);
  await secrets.rotate({ version });
  await addWorker("worker-3");
  await askFunctions();
  // And one that is repeated with another id.
  await secrets.rotate({ until: "finishSecret" });
  await secrets.rotate();
  await cluster.restartNode(2, PATIENCE_MS);
  await addWorker("worker-4");
  await askFunctions();

  await load.stop();
  assert.deepEqual(load.failed, []);
  assert.ok(load.answered.reads > 100 && load.answered.writes > 30, JSON.stringify(load.answered));
  const [endpoint = ""] = load.endpoints;
  const count = await load.ask(endpoint, "MATCH (m:Made) RETURN count(m) AS n", load.bookmark());
  assert.deepEqual(count.body, { results: [{ n: load.answered.writes }] });

  // Who has only the first secret is refused now.
  cluster.options.secret = undefined;
  writeFileSync(join(home, "cluster", "fleet-token"), `${FIRST}\n`, { mode: 0o600 });
  const stranger = await cluster.startWorker("stranger", 0);
  const refused = await load.ask(stranger, READ);
  assert.notEqual(refused.status, 200, JSON.stringify(refused));
  console.log(
    `the secret was rotated 4 times under load: ${load.answered.reads} reads and ${load.answered.writes} writes were answered, none failed`,
  );
} finally {
  load.stopping = true;
  for (const one of functions) await one.stop();
  await cluster.stop();
  secrets.stop();
}
rmSync(home, { recursive: true, force: true });

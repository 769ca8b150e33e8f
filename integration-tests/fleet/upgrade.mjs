/**
 * A part of `npm run test:long`: upgrades a fleet under constant load, from programs of the previous release
 * (`scripts/lib/previous.mjs`) to those of this one, by the function's steps in the order of the state machine
 * (`infra/lib/state-machines/upgrade.ts`). This file stands in for the Auto Scaling group and for Step Functions; the
 * daemons, Kafka and DynamoDB Local are real.
 *
 * Nodes of both releases are in one fleet: the new ones restore checkpoints, segments and the log that the old ones
 * wrote, the old worker asks the new nodes, and the new worker is added at the end. The upgrade is stopped once in the
 * middle and resumed by another execution, which replaces two nodes at once after its first one; a second execution at
 * once is refused. Fails if a read fails, an acknowledged write is lost, a write is refused otherwise than docs/upgrade.md
 * says, or a partition has fewer answering replicas than it should when a machine ends. Prints the longest pause of writes
 * and how many were refused: both depend on the machine. `--rows N` loads N vertices first.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { bulkLoad } from "../../scripts/lib/cluster/bulk-load.mjs";
import { Cluster } from "../../scripts/lib/cluster/cluster.mjs";
import { Load } from "../../scripts/lib/cluster/load.mjs";
import { execute, rebalanceFunction } from "../../scripts/lib/lambda/steps.mjs";
import { previousPrograms } from "../../scripts/lib/previous.mjs";
import { buildFleet } from "../../scripts/lib/programs.mjs";

const NODES = 4;
/** Nodes that are replaced at once, after the first one of each execution. */
const AT_ONCE = 2;
const PARTITIONS = 8;
const PATIENCE_MS = 180_000;
const { values } = parseArgs({ options: { rows: { type: "string", default: "5000" } } });
const vertices = Number(values.rows);
if (!Number.isInteger(vertices) || vertices < 1) {
  console.error(`--rows ${values.rows}: has to be a whole number above 0`);
  process.exit(2);
}

const previous = await previousPrograms();
const { nodeBinary, workerBinary, rebalanceBinary } = await buildFleet("dev");
const home = mkdtempSync(join(tmpdir(), "tidegraph-upgrade-"));
const cluster = new Cluster({
  home: join(home, "cluster"),
  nodeBinary: previous.nodeBinary,
  workerBinary: previous.workerBinary,
  ...{ nodes: NODES, rf: 2, partitions: PARTITIONS, shards: 2, brokers: 1, port: 0, shares: true },
  nodeFlags: ["--checkpoint-versions", "200", "--checkpoint-after-ms", "2000", "--map-poll-ms", "300"],
  workerFlags: ["--map-poll-ms", "300", "--write-patience-ms", "20000", "--load-from", home],
});
process.on("exit", () => cluster.processes.kill());
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => process.exit(130));

/** The group: the machines that it has, and how many it should have. */
const group = {
  machines: Array.from({ length: NODES }, (_, n) => `node-${n}`),
  desired: NODES,
  started: NODES,
};

/** @typedef {{ id: string, state: string }} MapNode */
/** @typedef {{ replicas: { node: string, state: string }[] }} MapPartition */

/** @returns {Promise<{ nodes: MapNode[], partitions: MapPartition[] }>} */
const readMap = () => cluster.map();

/** @param {string} what @param {() => Promise<boolean>} isSo */
async function until(what, isSo) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(200)) if (await isSo()) return;
  throw new Error(`after ${PATIENCE_MS} ms ${what} is not so`);
}

/** Starts machines until the group has as many as it should, with the programs of this release. */
async function fill() {
  while (group.machines.length < group.desired) {
    const number = group.started++;
    cluster.startNode(number);
    await cluster.processes.said(`node-${number}`, "listens on", PATIENCE_MS);
    group.machines.push(`node-${number}`);
  }
}

/**
 * Ends a machine as the group does, and checks that no partition misses it (UPG-2).
 *
 * @param {string} name
 * @param {boolean} isLast whether the group has one machine fewer from then on
 */
async function endMachine(name, isLast) {
  const { partitions } = await readMap();
  for (const [partition, { replicas }] of partitions.entries()) {
    assert.ok(
      replicas.every(({ node }) => node !== name) &&
        replicas.filter(({ state }) => state === "serving").length >= 2,
      `${name} ends, and partition ${partition} has ${JSON.stringify(replicas)}`,
    );
  }
  await cluster.processes.end([name], 30_000);
  group.machines = group.machines.filter((one) => one !== name);
  if (isLast) group.desired -= 1;
  await fill();
}

/**
 * Runs an execution of the machine.
 *
 * @param {Awaited<ReturnType<typeof rebalanceFunction>>} steps
 * @param {string} holder
 * @param {number} [most] replacements after which it stops
 */
async function upgrade(steps, holder, most = Number.POSITIVE_INFINITY) {
  const { desired } = group;
  const begin = { step: "upgrade-begin", holder, release, desired, least: NODES, atOnce: AT_ONCE };
  const begun = await steps.step(begin);
  assert.deepEqual([begun.ours, begun.capacity], [true, NODES], JSON.stringify(begun));
  const done = /** @type {string[]} */ ([]);
  let served = false;
  for (const end = Date.now() + 3 * PATIENCE_MS; Date.now() < end; ) {
    const instances = group.machines.map((InstanceId) => ({ InstanceId, LifecycleState: "InService" }));
    const ofGroup = { desired: group.desired, instances };
    const event = { step: "upgrade-next", holder, ...ofGroup, atOnce: AT_ONCE, served };
    const next = await steps.step(event);
    assert.ok(group.desired <= NODES + AT_ONCE && group.machines.length <= NODES + AT_ONCE, String(done));
    if (next.action !== "wait") done.push([next.action, next.node].filter(Boolean).join(" "));
    if (next.action === "done") return done;
    if (next.action === "launch") {
      group.desired = next.capacity;
      await fill();
    } else if (next.action === "drain") {
      const { verified } = await execute(steps, {
        holder: `${holder}-drain`,
        goal: "repair",
        drain: next.node,
      });
      assert.ok(verified.whole, JSON.stringify(verified));
    } else if (next.action === "end") {
      assert.equal(next.isCanary, !served, "the first one of an execution is the canary");
      served = true;
      await endMachine(next.node, next.isLast);
      if (done.filter((one) => one.startsWith("end")).length >= most) return done;
    } else await sleep(500);
  }
  throw new Error(`the upgrade does not end: ${done.join(", ")}`);
}

/** @param {Promise<unknown>} step */
const refusal = (step) =>
  step.then(
    (answer) => `it was accepted: ${JSON.stringify(answer)}`,
    (error) => String(error),
  );

/** The release of the programs, which one of them says. */
let release = "";
/** @type {Awaited<ReturnType<typeof rebalanceFunction>> | undefined} */
let steps;
const load = new Load("");
const begun = performance.now();
try {
  await cluster.start();
  load.endpoint = cluster.endpoint;
  await load.ask("CREATE INDEX txns FOR (n:Tx) ON (n.txn)");
  // The log then has a record with segments of the previous release.
  await bulkLoad(cluster.endpoint, join(home, "files"), vertices);
  steps = await rebalanceFunction(rebalanceBinary, join(home, "rebalance.log"), {
    TIDEGRAPH_GRAPH: cluster.graph,
    TIDEGRAPH_DYNAMODB_ENDPOINT: `http://127.0.0.1:${cluster.dynamodbPort}`,
    TIDEGRAPH_DYNAMODB_LOCAL: "true",
    TIDEGRAPH_NODES: String(NODES),
  });
  load.start(2, 3);
  await until("that the old release wrote some", async () => load.acknowledged.size > 100);

  // What a refusal names is what the deployed programs are.
  const wrong = { step: "upgrade-begin", holder: "wrong", release: "999.0.0", desired: NODES };
  const named = /release (\d+\.\d+\.\d+): deploy/.exec(await refusal(steps.step(wrong)));
  release = named?.[1] ?? "";
  assert.match(release, /^\d/, "the refusal of another release");

  cluster.options.nodeBinary = nodeBinary;
  const upgradeBegun = performance.now();
  const first = await upgrade(steps, "first", 1);
  const second = await steps.step({
    step: "upgrade-begin",
    holder: "second",
    release,
    desired: group.desired,
  });
  assert.deepEqual([second.ours, second.holder], [false, "first"], "a second upgrade at once");
  await steps.step({ step: "upgrade-end", holder: "first", stopped: "this test stops it" });
  // Nodes of both releases serve, and write checkpoints and the log.
  const mixed = load.acknowledged.size;
  await until("that writes go on with both releases", async () => load.acknowledged.size > mixed + 200);
  const rest = await upgrade(steps, "second");
  assert.deepEqual(
    [...first, ...rest].map((one) => one.split(" ")[0]),
    [
      ...["launch", "drain", "end"],
      // One more execution, and one more canary; then the other two nodes at once.
      ...["drain", "end", "launch", "drain", "end", "end", "done"],
    ],
  );
  assert.match(await refusal(steps.step({ step: "upgrade-end", holder: "first" })), /NotOurs/);
  const nodesUpgraded = performance.now();

  // The worker of this release starts, takes the requests, and the one before ends.
  cluster.options.workerBinary = workerBinary;
  const old = cluster.endpoint;
  load.endpoint = await cluster.startWorker("worker-new", 0);
  assert.notEqual(load.endpoint, old);
  await sleep(2_000);
  await cluster.processes.end(["worker"], 30_000);
  const ended = await steps.step({ step: "upgrade-end", holder: "second" });
  assert.equal(ended.state, "finished");
  const upgraded = performance.now();
  const before = load.acknowledged.size;
  await until("that writes go on", async () => load.acknowledged.size > before + 100);
  await load.stop();

  const { lost, half, foreign } = await load.verify();
  assert.deepEqual({ lost, half, foreign, wrong: load.wrong }, { lost: 0, half: 0, foreign: 0, wrong: [] });
  assert.deepEqual(load.readErrors, []);
  // A write that waits for the next sequencer for longer than a worker's patience; no 500, and no broken connection.
  const otherwise = load.writeErrors.filter((error) => !/^Error: (503|520) /.test(error));
  assert.deepEqual(otherwise, [], "writes refused otherwise than with 503 or 520");
  const [found] = await load.ask("MATCH (b:Bulk) RETURN count(b) AS n, sum(b.n) AS sum");
  assert.deepEqual(found, { n: vertices, sum: (vertices * (vertices - 1)) / 2 });
  const { nodes } = await readMap();
  const up = nodes.filter(({ state }) => state === "up").map(({ id }) => id);
  assert.deepEqual(up.toSorted(), group.machines.toSorted());
  assert.ok(
    up.every((id) => Number(id.split("-")[1]) >= NODES),
    `machines of both releases: ${up}`,
  );
  const { p50, p99 } = load.readLatency(upgradeBegun, upgraded);
  const seconds = (/** @type {number} */ from, /** @type {number} */ to) => Math.round((to - from) / 1000);
  console.log(
    `upgraded from ${previous.name} to ${release} under load: ${NODES} nodes in ${seconds(upgradeBegun, nodesUpgraded)} s, ` +
      `worker after ${seconds(nodesUpgraded, upgraded)} s; ${load.reads.length} reads (p50 ${p50} ms, p99 ${p99} ms), 0 failed; ` +
      `${load.acknowledged.size} writes acknowledged, 0 lost, ${load.writeErrors.length} refused; ` +
      `longest pause of writes ${load.pause(upgradeBegun)} ms; ${seconds(begun, performance.now())} s in all`,
  );
} catch (error) {
  console.error(`logs of all processes are in ${home}`);
  throw error;
} finally {
  load.running = false;
  await steps?.stop();
  await cluster.stop();
}
rmSync(home, { recursive: true, force: true });

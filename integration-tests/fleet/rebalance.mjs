/**
 * A part of `npm test -- --fleet`: moves of replicas in a fleet of real processes, with Kafka and DynamoDB Local, under
 * constant load. `tidegraph fleet` carries out the plans. A storage node is killed and healed, a killed command is
 * followed by another, a node comes back, one is added, and one is drained.
 *
 * Prints a row for each, with the moved data beside the possible minimum. Fails if a read fails, an acknowledged write
 * is lost, or more moves happen than necessary. `--rows N` loads N vertices first; `--release` uses release builds;
 * `--json FILE` writes the report.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs, promisify, stripVTControlCharacters } from "node:util";
import { bulkLoad } from "../../scripts/lib/cluster/bulk-load.mjs";
import { Cluster } from "../../scripts/lib/cluster/cluster.mjs";
import { Load } from "../../scripts/lib/cluster/load.mjs";
import { buildFleet } from "../../scripts/lib/programs.mjs";

const PARTITIONS = 16;
const REPLICAS = 2 * PARTITIONS;
const PATIENCE_MS = 120_000;
/** Time without a heartbeat after which `heal` takes a node for lost: longer than a busy machine holds one up. */
const SILENCE_MS = "10000";
const execute = promisify(execFile);
const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "20000" },
    release: { type: "boolean", default: false },
    json: { type: "string" },
  },
});
const vertices = Number(values.rows);
if (!Number.isInteger(vertices) || vertices < 1) {
  console.error(`--rows ${values.rows}: has to be a whole number above 0`);
  process.exit(2);
}
const { nodeBinary, workerBinary } = await buildFleet(values.release ? "release" : "dev");
const home = mkdtempSync(join(tmpdir(), "tidegraph-rebalance-"));
const cluster = new Cluster({
  home,
  nodeBinary,
  workerBinary,
  nodes: 3,
  rf: 2,
  partitions: PARTITIONS,
  shards: 2,
  brokers: 1,
  shares: true,
  port: 0,
  nodeFlags: [
    "--checkpoint-versions",
    "400",
    "--checkpoint-after-ms",
    "2000",
    "--lost-after-ms",
    "60000",
    "--map-poll-ms",
    "300",
  ],
  workerFlags: ["--map-poll-ms", "300", "--write-patience-ms", "20000", "--load-from", home],
});
process.on("exit", () => cluster.processes.kill());
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => process.exit(130));

/** @type {Record<string, unknown>[]} */
const rows = [];
/** @type {string[]} */
const failures = [];
/** @param {boolean} isSo @param {string} message */
const expect = (isSo, message) => {
  if (isSo) return;
  failures.push(message);
  console.error(`FAILED: ${message}`);
};

/**
 * @typedef {{
 *   restored: number, planned: number, bytes: number, idealBytes: number, dropped: number, seconds: number,
 *   whole: number
 * }} Done
 */

/** @param {readonly string[]} args a command of `tidegraph fleet` */
function fleet(args) {
  const all = ["fleet", ...args, ...cluster.mapFlags()];
  return execute(workerBinary, all, { timeout: 240_000 });
}

/**
 * Runs a command that must succeed, and returns its result.
 *
 * @param {readonly string[]} args
 * @returns {Promise<Done>}
 */
async function done(args) {
  const { stdout } = await fleet([...args, "--json", "--look-ms", "300", "--timeout-s", "200"]);
  return JSON.parse(stdout);
}

/** Returns the number of serving replicas of each node. */
async function serving() {
  const { partitions } = await cluster.map();
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { replicas } of partitions)
    for (const { node, state } of replicas)
      if (state === "serving") counts.set(node, (counts.get(node) ?? 0) + 1);
  return counts;
}

/** Returns how many replicas the map assigns to a node, in any state. @param {string} name */
async function held(name) {
  const { partitions } = await cluster.map();
  return partitions.filter((/** @type {any} */ { replicas }) =>
    replicas.some((/** @type {any} */ { node }) => node === name),
  ).length;
}

/** @param {string} name @param {string} state */
async function until(name, state) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(200)) {
    const { nodes } = await cluster.map();
    if (nodes.some((/** @type {any} */ node) => node.id === name && node.state === state)) return;
  }
  throw new Error(`node ${name} is not ${state} after ${PATIENCE_MS} ms`);
}

/** Returns the process that may move replicas at the moment, or "" if there is none. */
async function mover() {
  const Key = { graph: { S: cluster.graph }, item: { S: "lease#rebalancer" } };
  const scope = "AKIDEXAMPLE/20260101/eu-west-3/dynamodb/aws4_request";
  const answer = await fetch(`http://127.0.0.1:${cluster.dynamodbPort}`, {
    method: "POST",
    headers: {
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": "DynamoDB_20120810.GetItem",
      // DynamoDB Local does not verify it.
      authorization: `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host, Signature=0`,
    },
    body: JSON.stringify({ TableName: "tidegraph-map", Key, ConsistentRead: true }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`the lease of rebalancing: ${answer.status} ${text}`);
  return JSON.parse(text).Item?.holder?.S ?? "";
}

/**
 * Waits for a condition that a command brings about. Fails if the command ends first.
 *
 * @param {string} what
 * @param {import("node:child_process").ChildProcess} command
 * @param {() => Promise<boolean>} isSo
 */
async function broughtAbout(what, command, isSo) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(100)) {
    const hasEnded = command.exitCode !== null || command.signalCode !== null;
    if (await isSo()) return;
    if (hasEnded) throw new Error(`the command ended before ${what}`);
  }
  throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
}

/** Returns the node with the sequencer's lease: the one that last reported taking over. */
function sequencer() {
  const epoch = (/** @type {string} */ log) => {
    const text = stripVTControlCharacters(readFileSync(log, "utf8"));
    return Number([...text.matchAll(/took over as the sequencer.*?epoch=(\d+)/g)].at(-1)?.[1] ?? -1);
  };
  const nodes = [...cluster.processes.all].filter(([name, { ended }]) => name.startsWith("node-") && !ended);
  const found = nodes.map(([name, { log }]) => ({ name, at: epoch(log) })).sort((a, b) => b.at - a.at);
  return found[0]?.name ?? "";
}

/** Returns a node that is not the sequencer, so that writes continue and the test observes only replicas. */
function follower() {
  const leader = sequencer();
  const nodes = [...cluster.processes.all].filter(([name, { ended }]) => name.startsWith("node-") && !ended);
  return nodes.map(([name]) => name).find((name) => name !== leader) ?? "";
}

/**
 * Runs an action under load.
 *
 * @param {string} name
 * @param {() => Promise<Record<string, unknown>>} act returns the results to report
 */
async function under(name, act) {
  const load = new Load(cluster.endpoint);
  load.next = 1 + rows.length * 1_000_000;
  load.start(2, 3);
  await sleep(1_500);
  const begun = performance.now();
  const told = await act();
  const ended = performance.now();
  await sleep(1_500);
  await load.stop();
  const { lost, half } = await load.verify();
  const row = {
    name,
    ...told,
    acknowledged: load.acknowledged.size,
    lost,
    half,
    reads: load.reads.length,
    readErrors: load.readErrors.length,
    readP99Ms: load.readLatency(begun, ended).p99,
  };
  rows.push(row);
  console.log(JSON.stringify(row));
  expect(lost + half + load.wrong.length === 0, `${name}: ${lost} lost, ${half} by half, ${load.wrong[0]}`);
  expect(
    load.readErrors.length === 0,
    `${name}: ${load.readErrors.length} reads failed: ${load.readErrors[0]}`,
  );
  await load.ask("MATCH (n:Tx) DETACH DELETE n");
  const [found] = await load.ask("MATCH (b:Bulk) RETURN count(b) AS n, sum(b.n) AS sum");
  expect(
    found.n === vertices && found.sum === (vertices * (vertices - 1)) / 2,
    `${name}: ${JSON.stringify(found)}`,
  );
}

/** Checks that every partition has exactly two replicas, both serving. @param {string} name */
async function isWhole(name) {
  const { nodes, partitions } = await cluster.map();
  const up = new Set(
    nodes.filter((/** @type {any} */ node) => node.state === "up").map((/** @type {any} */ node) => node.id),
  );
  for (const { partition, replicas } of partitions) {
    const ok =
      replicas.length === 2 &&
      replicas.every((/** @type {any} */ one) => one.state === "serving" && up.has(one.node));
    expect(ok, `${name}: partition ${partition} has ${JSON.stringify(replicas)}`);
  }
}

const begun = performance.now();
try {
  await cluster.start();
  await new Load(cluster.endpoint).ask("CREATE INDEX txns FOR (n:Tx) ON (n.txn)");
  await bulkLoad(cluster.endpoint, join(home, "files"), vertices);

  let victim = "";
  await under("a storage node is killed, and healed", async () => {
    victim = follower();
    const lost = await held(victim);
    const killed = performance.now();
    cluster.processes.signal(victim, "SIGKILL");
    const healed = await done(["heal", "--silence-ms", SILENCE_MS]);
    const wholeMs = Math.round(performance.now() - killed);
    expect(healed.restored === lost, `heal restored ${healed.restored} replicas, the node had ${lost}`);
    await isWhole("heal");
    return { killToWholeMs: wholeMs, ...healed };
  });

  // The node comes back, but its former replicas are no longer needed.
  cluster.startNode(Number(victim.split("-")[1]));
  await until(victim, "up");
  const { stdout } = await fleet(["plan", "--goal", "repair", "--json"]);
  expect(JSON.parse(stdout).moves.length === 0, `a node that came back: ${stdout}`);

  await under("a node is added", async () => {
    const added = await done(["add", victim]);
    const counts = await serving();
    const share = REPLICAS / 3;
    expect(
      Math.abs((counts.get(victim) ?? 0) - share) < 1 && added.restored === counts.get(victim),
      `the node that was added got ${counts.get(victim)} of ${share}, ${added.restored} replicas were restored`,
    );
    await isWhole("add");
    return { ...added };
  });

  cluster.startNode(3);
  await until("node-3", "up");
  await under("another one is added", async () => {
    const added = await done(["add", "node-3"]);
    expect(added.restored === REPLICAS / 4, `${added.restored} restored, ${REPLICAS / 4} are its share`);
    await isWhole("add");
    return { ...added };
  });

  await under("a node is drained, and stopped", async () => {
    const name = follower();
    const had = await held(name);
    const drained = await done(["drain", name]);
    expect((await held(name)) === 0 && drained.restored === had, `drain: ${JSON.stringify(drained)}, ${had}`);
    await cluster.processes.end([name], 20_000);
    return { ...drained };
  });

  await under("a heal is killed, and the next one goes on", async () => {
    const name = follower();
    const lost = await held(name);
    cluster.processes.signal(name, "SIGKILL");
    // It watches heartbeats for so long that the second command comes meanwhile, also on a busy machine.
    const flags = ["--silence-ms", "20000", "--look-ms", "300"];
    const first = execFile(workerBinary, ["fleet", "heal", ...flags, ...cluster.mapFlags()]);
    let said = "";
    first.stdout?.on("data", (chunk) => {
      said += chunk;
    });
    // Two commands at once: the second learns of the first.
    await broughtAbout("it had the lease", first, async () => (await mover()) !== "");
    const second = await fleet(["heal", "--silence-ms", "0"]).then(
      () => "it went on",
      (error) => String(error.stderr),
    );
    expect(/tidegraph-fleet-[0-9a-f]+ is rebalancing this graph/.test(second), `two heals: ${second}`);
    await broughtAbout("it moved replicas", first, async () => said.includes(" moves left"));
    first.kill("SIGKILL");
    const healed = await done(["heal", "--silence-ms", SILENCE_MS]);
    await isWhole("heal");
    return { had: lost, ...healed };
  });
  const empty = await done(["heal", "--silence-ms", "0"]);
  expect(empty.restored === 0 && empty.dropped === 0, `a heal of what is whole: ${JSON.stringify(empty)}`);
  const unknown = await fleet(["drain", "nobody"]).then(
    () => "it went on",
    (error) => String(error.stderr),
  );
  expect(/node nobody/.test(unknown), `a node that there is not: ${unknown}`);
} catch (error) {
  expect(
    false,
    error instanceof Error ? `${error.message} ${/** @type {any} */ (error).stderr ?? ""}` : String(error),
  );
}
await cluster.stop();
const report = { vertices, seconds: Math.round((performance.now() - begun) / 1000), rows, failures };
if (values.json) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
if (failures.length === 0) rmSync(home, { recursive: true, force: true });
else console.error(`logs of all processes are in ${home}`);
const sum = (/** @type {string} */ field) => rows.reduce((all, row) => all + Number(row[field] ?? 0), 0);
console.log(
  `${rows.length} rebalances in ${report.seconds} s: ${sum("bytes")} bytes moved, ${sum("idealBytes")} at least, ` +
    `${sum("acknowledged")} writes acknowledged, ${sum("lost")} lost, ${sum("readErrors")} reads failed; ${failures.length} expectations missed`,
);
process.exit(failures.length === 0 ? 0 : 1);

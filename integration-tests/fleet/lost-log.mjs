/**
 * A part of `npm test -- --fleet`: the brokers lose the log, and a new log is started from checkpoints. Real nodes with a
 * real broker write checkpoints; then the broker's disk is emptied. `init` refuses to make an empty graph of what is left,
 * and `restart-log` continues, also without the table of maps, from the versions that the checkpoints have.
 */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "../../scripts/lib/cluster/cluster.mjs";
import { buildCluster } from "../../scripts/lib/programs.mjs";

const NODES = 2;
const PARTITIONS = 4;
/** Writes after the checkpoint of one partition. */
const TORN = 20;
const PATIENCE_MS = 120_000;

const { nodeBinary, workerBinary } = await buildCluster("dev");
const home = mkdtempSync(join(tmpdir(), "tidegraph-lost-log-"));
const cluster = new Cluster({
  home,
  nodeBinary,
  workerBinary,
  ...{ nodes: NODES, rf: 2, partitions: PARTITIONS, shards: 2, brokers: 1, port: 0 },
  nodeFlags: ["--checkpoint-after-ms", "300"],
});
process.on("exit", () => cluster.processes.kill());
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => process.exit(130));

const files = ["--objects", join(home, "objects")];
const sizes = ["--partitions", String(PARTITIONS), "--shards", "2", "--replication", "2"];
const copies = ["--log-replication", "1", "--log-in-sync", "1"];
const flags = () => [...cluster.mapFlags(), ...cluster.logFlags(), ...sizes, ...copies];

/** @param {string} query @returns {Promise<any>} */
async function ask(query) {
  const body = new URLSearchParams({ query });
  const response = await fetch(`${cluster.endpoint}/openCypher`, { method: "POST", body });
  const text = await response.text();
  assert.equal(response.status, 200, `${query}: ${text}`);
  return JSON.parse(text).results;
}

/** Returns the paths below a folder; none if a folder in it, or itself, went or is not there yet. @param {string} folder */
function paths(folder) {
  try {
    return readdirSync(folder, { recursive: true });
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ENOENT") throw error;
    return [];
  }
}

/** Returns the version in the name of the newest manifest of each partition that has one. */
function checkpointed() {
  const versions = new Map();
  for (const path of paths(join(home, "objects", "checkpoints"))) {
    const found = /^(p\d+)\/.*manifest-(\d+)-\d+$/.exec(String(path));
    if (!found) continue;
    const [, partition, version] = found;
    versions.set(partition, Math.max(versions.get(partition) ?? 0, Number(version)));
  }
  return versions;
}

/** Waits until all partitions have a checkpoint of the newest version. @returns {Promise<number>} */
async function untilCheckpointed() {
  const end = Date.now() + PATIENCE_MS;
  const response = await fetch(`${cluster.endpoint}/openCypher?query=RETURN%201`);
  const newest = Number(response.headers.get("tidegraph-version"));
  assert.ok(newest > 0);
  for (;;) {
    const versions = checkpointed();
    if (versions.size === PARTITIONS && [...versions.values()].every((version) => version >= newest))
      return Math.min(...versions.values());
    if (Date.now() > end) throw new Error(`not checkpointed at ${newest}: ${[...versions]}`);
    await sleep(100);
  }
}

/**
 * Copies a folder of checkpoints. Nodes remove older ones by themselves: it is copied again until none came or went
 * meanwhile.
 *
 * @param {string} from
 * @param {string} to
 */
async function copy(from, to) {
  const end = Date.now() + PATIENCE_MS;
  const listed = () => readdirSync(from, { recursive: true }).map(String).sort().join();
  for (;;) {
    let problem = "files came or went";
    try {
      const before = listed();
      cpSync(from, to, { recursive: true });
      if (listed() === before) return;
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ENOENT") throw error;
      problem = String(error);
    }
    rmSync(to, { recursive: true, force: true });
    if (Date.now() > end) throw new Error(`${from} cannot be copied: ${problem}`);
    await sleep(100);
  }
}

const names = Array.from({ length: NODES }, (_, number) => `node-${number}`);

/** Ends everything that uses the log, and starts a broker that has lost it. */
async function loseLog() {
  await cluster.processes.end(["worker", ...names], 30_000);
  await cluster.processes.end(["kafka-0"], 30_000);
  rmSync(join(home, "kafka-0"), { recursive: true });
  await cluster.startKafka();
}

/** Runs a command that has to fail, and returns what it says. @param {readonly string[]} args */
async function refused(args) {
  const said = await cluster.admin(args).then(
    (output) => `it succeeded: ${output}`,
    (error) => String(error),
  );
  assert.ok(!said.startsWith("it succeeded"), said);
  return said;
}

try {
  await cluster.start();
  await ask("UNWIND range(1, 200) AS n CREATE (:A {n: n})-[:NEXT {n: n}]->(:B {n: n})");
  for (let number = 0; number < 20; number += 1) await ask(`CREATE (:Later {n: ${number}})`);
  const before = await untilCheckpointed();
  const everything = "MATCH (n) RETURN labels(n)[0] AS label, count(n) AS n ORDER BY label";
  const edges = "MATCH (:A)-[r:NEXT]->(b:B) RETURN count(r) AS n, sum(b.n) AS total";
  const found = [await ask(everything), await ask(edges)];

  await loseLog();
  // Also the machine's unit runs this command, before each start of the daemon.
  const init = await refused(["init", ...flags()]);
  for (const part of ["there was a graph", "restart-log", "the map, at version"])
    assert.ok(init.includes(part), init);
  const asked = await refused(["restart-log", ...flags(), ...files]);
  const complete = /--accept-loss (\d+)/.exec(asked)?.[1] ?? "";
  assert.ok(Number(complete) >= before, `${complete} of ${before}: ${asked}`);
  assert.match(await refused(["restart-log", ...flags(), ...files, "--accept-loss", "1"]), /accept-loss/);
  assert.match(await refused(["init", ...flags()]), /restart-log/);
  const done = JSON.parse(
    await cluster.admin(["restart-log", ...flags(), ...files, "--accept-loss", complete]),
  );
  assert.equal(done.complete, Number(complete));
  assert.deepEqual(done.partitionsWithoutCheckpoint, []);
  // The log is not new any more.
  await cluster.admin(["init", ...flags()]);
  assert.match(
    await refused(["restart-log", ...flags(), ...files, "--accept-loss", complete]),
    /has messages/,
  );
  await cluster.startProcesses();
  assert.deepEqual([await ask(everything), await ask(edges)], found);
  await ask("MATCH (a:A {n: 7}) CREATE (a)-[:NEXT {n: 0}]->(:B:Anew {n: 0, neverUsedBefore: true})");
  const [{ n: grown }] = await ask("MATCH (:A)-[r:NEXT]->(:B) RETURN count(r) AS n");
  assert.equal(grown, 201);

  // Lost once more, together with the map, and with an older checkpoint of one partition than of the others.
  const again = await untilCheckpointed();
  assert.ok(again > before);
  const latest = [await ask(everything), await ask(edges)];
  const [one, kept] = [join(home, "objects", "checkpoints", "p00000"), join(home, "kept")];
  await copy(one, kept);
  for (let number = 0; number < TORN; number += 1) await ask(`CREATE (:Torn {n: ${number}})`);
  const newest = await untilCheckpointed();
  assert.ok(newest >= again + TORN);
  await loseLog();
  rmSync(one, { recursive: true });
  cpSync(kept, one, { recursive: true });
  await cluster.processes.end(["dynamodb"], 30_000);
  rmSync(join(home, "dynamodb"), { recursive: true });
  await cluster.startDynamodb();
  const empty = await refused(["init", ...flags(), ...files, "--create-tables"]);
  assert.ok(empty.includes("there was a graph") && empty.includes("checkpoints/p"), empty);
  const other = ["--partitions", "2", "--shards", "1", "--replication", "2"];
  const wrong = [...cluster.mapFlags(), ...cluster.logFlags(), ...other, ...copies, ...files];
  assert.match(await refused(["restart-log", ...wrong]), /the graph has 2 partitions/);
  const torn = await refused(["restart-log", ...flags(), ...files]);
  const second = /--accept-loss (\d+)/.exec(torn)?.[1] ?? "";
  assert.ok(Number(second) >= again && Number(second) < newest, torn);
  await cluster.admin(["restart-log", ...flags(), ...files, "--accept-loss", second]);
  await cluster.startProcesses();
  // What that partition got after its checkpoint is lost there, and nothing else.
  const [{ n: left }] = await ask("MATCH (t:Torn) RETURN count(t) AS n");
  assert.ok(left > 0 && left <= TORN, `${left}`);
  const others = everything.replace("MATCH (n)", "MATCH (n) WHERE NOT n:Torn");
  assert.deepEqual([await ask(others), await ask(edges)], latest);
  await ask("UNWIND range(1, 50) AS n CREATE (:Torn {n: n})");
  assert.deepEqual(await ask("MATCH (t:Torn) RETURN count(t) AS n"), [{ n: left + 50 }]);
  console.log(
    `the log was lost twice: restarted at versions ${done.first} to ${done.last}, where nothing was missing, and at ${second} with ${left} of ${TORN} later writes`,
  );
} finally {
  await cluster.stop();
}
rmSync(home, { recursive: true, force: true });

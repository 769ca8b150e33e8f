/**
 * A part of `npm test -- --fleet`: a drill. A real fleet is backed up and archived while it is written. Then its processes
 * are killed, its table, its topic and its bucket are destroyed at once, and the graph is restored: to the last version that
 * was archived, to the version of a backup, to an earlier version, and as a clone to a time between two backups. Each time,
 * counts and sums have to be those of the writes that were acknowledged at that version.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "../../scripts/lib/cluster/cluster.mjs";
import { buildCluster } from "../../scripts/lib/programs.mjs";

const [NODES, PARTITIONS, SHARDS, WRITERS] = [2, 4, 2, 3];
/** Fewest versions between the newest checkpoint and the end of a backup, so that there is an earlier version. */
const RANGE = 20;
const PATIENCE_MS = 180_000;
/** Time until a write is archived, in seconds. */
const ARCHIVE_EVERY_S = 1;

const { nodeBinary, workerBinary } = await buildCluster("dev");
const home = mkdtempSync(join(tmpdir(), "tidegraph-backup-"));
const [objects, backups] = [join(home, "objects"), join(home, "backups")];
const cluster = new Cluster({
  home,
  nodeBinary,
  workerBinary,
  ...{ nodes: NODES, rf: 2, partitions: PARTITIONS, shards: SHARDS, brokers: 1, port: 0 },
  nodeFlags: [
    ...["--checkpoint-after-ms", "2000"],
    ...["--archive-to", backups, "--archive-every-s", String(ARCHIVE_EVERY_S)],
  ],
});
process.on("exit", () => cluster.processes.kill());
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => process.exit(130));

const names = Array.from({ length: NODES }, (_, number) => `node-${number}`);
const used = () => [...cluster.mapFlags(), ...cluster.logFlags(), "--objects", objects];

/** @param {string} query @returns {Promise<{ rows: any[], version: number }>} */
async function ask(query) {
  const body = new URLSearchParams({ query });
  const response = await fetch(`${cluster.endpoint}/openCypher`, { method: "POST", body });
  const text = await response.text();
  assert.equal(response.status, 200, `${query}: ${text}`);
  return { rows: JSON.parse(text).results, version: Number(response.headers.get("tidegraph-version")) };
}

/**
 * An acknowledged write.
 *
 * @typedef {{ n: number, version: number, begun: number, ended: number }} Write
 */

/** @type {Write[]} */
const writes = [];
let isWriting = true;
let next = 1;

async function write() {
  while (isWriting) {
    const n = next;
    next += 1;
    const begun = Date.now();
    const { version } = await ask(`CREATE (:From {n: ${n}})-[:STEP {n: ${n}}]->(:To {n: ${n}})`);
    writes.push({ n, version, begun, ended: Date.now() });
  }
}

/** Compares the graph with some acknowledged writes. @param {readonly Write[]} there */
async function holds(there) {
  const sum = there.reduce((total, { n }) => total + n, 0);
  const expected = [{ n: there.length, total: there.length === 0 ? 0 : sum }];
  for (const pattern of ["(x:From)", "(x:To)", "(:From)-[x:STEP]->()", "()-[:STEP]->(x:To)"]) {
    const { rows } = await ask(`MATCH ${pattern} RETURN count(x) AS n, sum(x.n) AS total`);
    assert.deepEqual(rows, expected, pattern);
  }
  const edges = "MATCH (:Base)-[r:NEXT]->(b:Base) RETURN count(r) AS n, sum(b.n) AS total";
  const { rows: base } = await ask(edges);
  assert.deepEqual(base, [{ n: 200, total: 20_100 }]);
  // Constraints are there too.
  const body = new URLSearchParams({ query: "CREATE (:Only {n: 1})" });
  const twice = await fetch(`${cluster.endpoint}/openCypher`, { method: "POST", body });
  const said = await twice.text();
  assert.ok(twice.status >= 400 && said.includes("unique"), said);
}

/** @param {readonly string[]} args @returns {Promise<any>} */
async function command(args) {
  return JSON.parse(await cluster.admin(args));
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

async function stopProcesses() {
  await cluster.processes.end(["worker", ...names], 30_000);
}

/** Ends everything, and destroys the table, the topic and the bucket. */
async function destroy() {
  await stopProcesses();
  await cluster.processes.end(["kafka-0", "dynamodb"], 30_000);
  for (const folder of ["kafka-0", "dynamodb", "objects"]) rmSync(join(home, folder), { recursive: true });
  await Promise.all([cluster.startKafka(), cluster.startDynamodb()]);
}

/** Flags of a new graph. */
function created() {
  const sizes = ["--partitions", String(PARTITIONS), "--shards", String(SHARDS), "--replication", "2"];
  return [...used(), ...sizes, "--log-replication", "1", "--log-in-sync", "1", "--create-tables"];
}

/** A command that restores. @param {readonly string[]} more */
function restoring(more) {
  return ["restore", ...created(), "--from", backups, ...more];
}

/** Makes backups until one has enough versions behind its newest checkpoint. */
async function backUp() {
  const end = Date.now() + PATIENCE_MS;
  for (let attempt = 1; ; attempt += 1) {
    const begun = Date.now();
    const backup = await command(["backup", ...used(), "--to", backups, "--keep", "2"]);
    const missed = writes.filter(({ ended, version }) => ended < begun && version > backup.version);
    assert.deepEqual(missed, [], "what was acknowledged before the backup began is in it");
    if (attempt > 1 && backup.version - backup.earliest >= RANGE) return backup;
    if (Date.now() > end) throw new Error(`no backup has ${RANGE} versions: ${JSON.stringify(backup)}`);
    await sleep(1_100);
  }
}

/** Waits until archives have a version, and returns the newest backup of the listing. @param {number} version */
async function archived(version) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const newest = (await command(["backups", "--from", backups])).at(-1);
    if (newest.archivedVersion >= version) return newest;
    if (Date.now() > end) throw new Error(`version ${version} is not archived: ${JSON.stringify(newest)}`);
    await sleep(200);
  }
}

/** @param {string} name */
const folderOf = (name) => join(backups, "default", "data", name);

/** Lists the files of a backup: a folder of files may stay behind empty. @param {string} name */
const filesOf = (name) =>
  readdirSync(folderOf(name), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);

try {
  await cluster.start();
  await ask("CREATE CONSTRAINT only_n FOR (o:Only) REQUIRE o.n IS UNIQUE");
  await ask("CREATE (:Only {n: 1})");
  await ask("UNWIND range(1, 200) AS n CREATE (:Base {n: n})-[:NEXT {n: n}]->(:Base {n: n})");
  const writers = Array.from({ length: WRITERS }, write);
  // A failure of something else ends them, and must be the one that is told.
  for (const writer of writers) writer.catch(() => {});
  const backup = await backUp();
  await archived(backup.version + 1);
  // Beside the sequencer's node: two archivers write one series.
  const byHand = await command(["archive", ...used(), "--to", backups]);
  assert.ok(byHand.gap === null && byHand.version > backup.version, JSON.stringify(byHand));
  cluster.processes.start("archiver", nodeBinary, ["archive", ...used(), "--to", backups, "--every", "1"]);
  // So that the next backup has checkpoints that are newer than this one. Names of backups have the second.
  await sleep(8_000);
  const second = await command(["backup", ...used(), "--to", backups]);
  const time = Math.floor((Date.parse(backup.time) + Date.parse(second.earliestTime)) / 2);
  assert.ok(second.earliest > backup.version && second.name > backup.name);
  assert.ok(time > Date.parse(backup.time) && time < Date.parse(second.earliestTime));
  await cluster.processes.end(["archiver"], 30_000);
  await archived(second.version + RANGE);
  // The disaster: nothing of the processes is in order.
  isWriting = false;
  await Promise.all(writers);
  for (const name of ["worker", ...names]) cluster.processes.signal(name, "SIGKILL");
  const listed = await command(["backups", "--from", backups]);
  assert.deepEqual(
    listed.slice(-2).map((/** @type {any} */ { name }) => name),
    [backup.name, second.name],
  );
  assert.equal(listed.length, 3, "the flag --keep removed older ones");
  const kept = listed.map((/** @type {any} */ { name }) => name);
  for (const name of readdirSync(join(backups, "default", "data")))
    if (!kept.includes(name)) assert.deepEqual(filesOf(name), [], `${name} is no backup`);
  const verified = await command(["verify-backup", "--from", backups, "--backup", backup.name]);
  assert.ok(verified.verified.archives > 0 && verified.verified.bytes > backup.bytes);
  const { archivedVersion } = listed.at(-1);
  const [there, lostWrites] = [
    writes.filter(({ version }) => version <= archivedVersion),
    writes.filter(({ version }) => version > archivedVersion),
  ];
  const last = (/** @type {Write[]} */ some) => Math.max(...some.map(({ ended }) => ended));
  const rpoMs = lostWrites.length === 0 ? 0 : last(lostWrites) - last(there);
  assert.match(await refused(restoring([])), /there is a graph "default" in the map/);

  await destroy();
  // What machines run before each start of the daemon, if they wait for a restore.
  const waits = ["init", ...created(), "--await-restore"];
  assert.match(await refused(waits), /`tidegraph-node restore` has to make it/);
  const lost = join(folderOf(second.name), "log");
  renameSync(lost, `${lost}-away`);
  const lacking = await refused(restoring([]));
  assert.ok(
    lacking.includes(second.name) && lacking.includes("log/") && lacking.includes("is missing"),
    lacking,
  );
  assert.match(await refused(["verify-backup", "--from", backups]), /is missing/);
  renameSync(`${lost}-away`, lost);
  const beyond = await refused(restoring(["--version", String(archivedVersion + 1)]));
  assert.ok(beyond.includes(`has versions ${second.earliest} to ${archivedVersion}`), beyond);
  assert.match(
    await refused(restoring(["--time", "2020-01-01T00:00:00Z"])),
    /no backup .* has the time 2020/,
  );
  const begun = performance.now();
  const restored = await command(restoring([]));
  assert.deepEqual([restored.version, restored.backup], [archivedVersion, second.name]);
  const took = Math.round(performance.now() - begun);
  await cluster.admin(waits);
  await cluster.startProcesses();
  await holds(there);
  await ask("MATCH (b:Base {n: 7}) SET b.neverUsedBefore = true");
  assert.match(await refused(restoring([])), /there is a graph "default" in the map/);

  // The restored graph is archived behind a backup of its own.
  const own = await command(["backup", ...used(), "--to", backups]);
  const { version } = await ask("MATCH (b:Base {n: 8}) SET b.neverUsedBefore = true");
  assert.equal((await archived(version)).name, own.name);

  await destroy();
  const ofBackup = await command(restoring(["--backup", backup.name]));
  assert.deepEqual([ofBackup.version, ofBackup.archives], [backup.version, 0]);
  await cluster.startProcesses();
  await holds(writes.filter(({ version }) => version <= backup.version));

  await destroy();
  const earlier = Math.ceil((backup.earliest + backup.version) / 2);
  const at = await command(restoring(["--backup", backup.name, "--version", String(earlier)]));
  assert.equal(at.version, earlier);
  await cluster.startProcesses();
  const atEarlier = writes.filter(({ version }) => version <= earlier);
  assert.ok(atEarlier.length < writes.filter(({ version }) => version <= backup.version).length);
  await holds(atEarlier);

  // A clone under another name, beside the graph that is there.
  await stopProcesses();
  rmSync(objects, { recursive: true });
  cluster.graph = "clone";
  const when = ["--time", new Date(time).toISOString(), "--backed-up-graph", "default"];
  const clone = await command(restoring(when));
  assert.ok(clone.backup === backup.name && clone.archives > 0, JSON.stringify(clone));
  assert.ok(clone.version > backup.version && clone.version < second.earliest);
  const [before, after] = [
    writes.filter(({ ended }) => ended < time),
    writes.filter(({ begun }) => begun > time),
  ];
  const of = (/** @type {Write} */ write) => JSON.stringify({ ...write, time, clone, backup, second });
  for (const write of before) assert.ok(write.version <= clone.version, of(write));
  for (const write of after) assert.ok(write.version > clone.version, of(write));
  await cluster.startProcesses();
  await holds(writes.filter(({ version }) => version <= clone.version));
  console.log(
    `${writes.length} writes; backup ${backup.earliest} to ${backup.version} of ${backup.objects} objects in ${backup.tookMs} ms beside ${WRITERS} writers; archived every ${ARCHIVE_EVERY_S} s; everything was destroyed three times; restored at ${restored.version} in ${took} ms, ${rpoMs / 1000} s and ${lostWrites.length} writes before the last acknowledged one (measured RPO); at ${backup.version}, at ${earlier}, and as a clone at ${clone.version}`,
  );
} finally {
  await cluster.stop();
}
rmSync(home, { recursive: true, force: true });

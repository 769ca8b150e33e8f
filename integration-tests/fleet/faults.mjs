/**
 * `npm run faults [-- --quick] [--shards N] [--tls]`: runs a cluster on this machine under load and kills its
 * processes, one kind after another.
 *
 * Two bulk loads come first; during each, a process is killed. Prints a row for each fault and, in the last line,
 * losses and errors. Fails if an acknowledged write is lost or incomplete, a read fails while a storage node dies, or
 * writes do not resume. `--json FILE` writes the report. `--shards N` divides the log into N partitions of its topic;
 * with `--tls` nodes and workers authenticate with certificates.
 */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs, promisify, stripVTControlCharacters } from "node:util";
import { Cluster } from "../../scripts/lib/cluster/cluster.mjs";
import { Load } from "../../scripts/lib/cluster/load.mjs";
import { buildCluster } from "../../scripts/lib/programs.mjs";

const execute = promisify(execFile);
const PARTITIONS = 8;
/** Time limit of every wait, on a busy machine. */
const PATIENCE_MS = 120_000;
const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    dev: { type: "boolean", default: false },
    json: { type: "string" },
    shards: { type: "string", default: "1" },
    tls: { type: "boolean", default: false },
  },
});
const shards = Number(values.shards);
if (!Number.isInteger(shards) || shards < 1 || shards > PARTITIONS) {
  console.error(
    `--shards ${values.shards}: has to be a whole number from 1 to ${PARTITIONS}, the partitions`,
  );
  process.exit(2);
}
const quick = values.quick ?? false;
const calmMs = quick ? 3_000 : 10_000;
const { nodeBinary, workerBinary } = await buildCluster(values.dev ? "dev" : "release");
const home = mkdtempSync(join(tmpdir(), "tidegraph-faults-"));

const GIB = 1024 ** 3;
/** Fewest free bytes with which a full disk can be tried. */
const NEEDED = 4.5 * GIB;
if (free() < NEEDED) {
  console.error(`${home} has ${free()} free bytes: a full disk cannot be tried with fewer than ${NEEDED}`);
  process.exit(2);
}
/** The node whose disk becomes full, the file that fills it, and by how many bytes it then has too little room. */
const FULL = { number: 1, name: "node-1", file: join(home, "fills-the-disk"), lacks: GIB };
/** Other programs write to the disk meanwhile: the node leaves only when they have written this much, or we have. */
const leastFree = free() - Math.min(4 * GIB, Math.floor(free() / 3));
const cluster = new Cluster({
  home,
  nodeBinary,
  workerBinary,
  nodes: 3,
  rf: 2,
  partitions: PARTITIONS,
  shards,
  tls: values.tls ?? false,
  brokers: quick ? 1 : 3,
  port: 0,
  nodeFlags: [
    "--checkpoint-versions",
    "400",
    "--checkpoint-after-ms",
    "2000",
    "--lost-after-ms",
    // Beside other tests, a node that is there may be silent for seconds.
    quick ? "10000" : "4000",
    "--map-poll-ms",
    "300",
  ],
  flagsOfNode: (number) =>
    number === FULL.number
      ? ["--spill-dir", join(home, "spill"), "--least-free-bytes", String(leastFree)]
      : [],
  workerFlags: ["--map-poll-ms", "300", "--write-patience-ms", "20000", "--load-from", home],
});
process.on("exit", () => cluster.processes.kill());
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => process.exit(130));

/** @type {Record<string, unknown>[]} */
const rows = [];
/** @type {string[]} */
const failures = [];
/** @param {string} message */
const fail = (message) => {
  failures.push(message);
  console.error(`FAILED: ${message}`);
};

/** Returns the free bytes of the disk. */
function free() {
  const { bavail, bsize } = statfsSync(home);
  return bavail * bsize;
}

/** Fills the disk until the node has too little room, and goes on to fill it until the node has left. */
async function fillTheDisk() {
  const end = Date.now() + PATIENCE_MS;
  for (let bytes = 0; (await stateOf(FULL.name)) !== "gone"; await sleep(200)) {
    if (Date.now() > end) throw new Error(`${FULL.name} stays, with ${free()} free bytes`);
    const excess = free() - leastFree;
    if (excess + FULL.lacks / 2 < 0) continue;
    bytes += excess + FULL.lacks;
    await execute("fallocate", ["-l", String(bytes), FULL.file]);
  }
}

/** Waits until every partition has its full number of serving replicas. */
async function whole() {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const { nodes, partitions } = await cluster.map();
    const up = new Set(
      nodes
        .filter((/** @type {any} */ node) => node.state === "up")
        .map((/** @type {any} */ node) => node.id),
    );
    const serving = (/** @type {any} */ partition) =>
      partition.replicas.filter(
        (/** @type {any} */ replica) => replica.state === "serving" && up.has(replica.node),
      ).length;
    if (partitions.every((/** @type {any} */ partition) => serving(partition) >= 2)) return;
    if (Date.now() > end)
      throw new Error(`the cluster is not whole after ${PATIENCE_MS} ms: ${JSON.stringify(partitions)}`);
    await sleep(200);
  }
}

/** Returns the node with the sequencer's lease: the one that last reported taking over. */
function sequencer() {
  const found = [0, 1, 2]
    .map((number) => `node-${number}`)
    .filter((name) => !cluster.processes.all.get(name)?.ended)
    .map((name) => ({ name, at: tookOver(name) }))
    .sort((a, b) => b.at - a.at);
  const first = found[0];
  if (!first || first.at < 0) throw new Error("no node says that it is the sequencer");
  return first.name;
}

/** @param {string} name the epoch of the last take-over that a node's log tells of, -1 for none */
function tookOver(name) {
  const log = cluster.processes.all.get(name)?.log ?? "";
  const text = readText(log);
  const found = [...text.matchAll(/took over as the sequencer.*?epoch=(\d+)/g)];
  const last = found.at(-1);
  return last ? Number(last[1]) : -1;
}

/** @param {string} path */
function readText(path) {
  return path ? stripVTControlCharacters(readFileSync(path, "utf8")) : "";
}

/**
 * Runs one fault: a calm period, the fault, and the period after it.
 *
 * @param {string} name
 * @param {{ reads: boolean, writesWithinMs: number }} expected whether every read must succeed, and how
 * soon writes must resume
 * @param {(load: Load) => Promise<void>} strike
 */
async function fault(name, expected, strike) {
  await whole();
  const load = new Load(cluster.endpoint);
  load.next = 1 + rows.length * 1_000_000;
  load.start(4, 3);
  const begun = performance.now();
  await sleep(calmMs);
  const struck = performance.now();
  await strike(load);
  load.endpoint = cluster.endpoint;
  const mended = performance.now();
  await sleep(calmMs);
  const last = load.acknowledged.size;
  const end = Date.now() + PATIENCE_MS;
  while (load.acknowledged.size === last && Date.now() < end) await sleep(100);
  if (load.acknowledged.size === last) fail(`${name}: no write is acknowledged after the fault`);
  await load.stop();
  const { lost, half } = await load.verify();
  const calm = load.readLatency(begun, struck);
  const after = load.readLatency(struck, mended + calmMs);
  const row = {
    fault: name,
    acknowledged: load.acknowledged.size,
    lost,
    half,
    wrong: load.wrong.length,
    readErrors: load.readErrors.length,
    writeErrors: load.writeErrors.length,
    writesPausedMs: load.pause(struck),
    readP99CalmMs: calm.p99,
    readP99Ms: after.p99,
    reads: after.reads,
  };
  rows.push(row);
  console.log(JSON.stringify(row));
  if (lost + half + load.wrong.length > 0) {
    fail(
      `${name}: ${lost} lost, ${half} by half, ${load.wrong.length} wrong reads${load.wrong[0] ? ` (${load.wrong[0]})` : ""}`,
    );
  }
  if (expected.reads && load.readErrors.length > 0)
    fail(`${name}: ${load.readErrors.length} reads failed: ${load.readErrors[0]}`);
  if (row.writesPausedMs > expected.writesWithinMs) {
    fail(`${name}: no write for ${row.writesPausedMs} ms, more than ${expected.writesWithinMs}`);
  }
  await forget(load);
}

/**
 * Runs a bulk load while a node or the sequencer dies. The load must complete, and its data must be complete.
 *
 * @param {string} name
 * @param {number} number which load it is
 * @param {() => Promise<void>} strike
 */
async function bulkLoad(name, number, strike) {
  await whole();
  const rows = quick ? 20_000 : 200_000;
  const files = join(home, `files-${number}`);
  mkdirSync(files);
  const ids = Array.from({ length: rows }, (_, n) => n);
  const vertices = ids.map((n) => `b${number}-${n},Bulk,${n},${number}\n`).join("");
  const edges = ids
    .map((n) => `f${number}-${n},b${number}-${n},b${number}-${(n + 1) % rows},NEXT\n`)
    .join("");
  writeFileSync(join(files, "vertices.csv"), `~id,~label,n:Int(single),of:Int(single)\n${vertices}`);
  writeFileSync(join(files, "edges.csv"), `~id,~from,~to,~label\n${edges}`);
  const begun = performance.now();
  const source = `file://${files}`;
  const taken = await fetch(`${cluster.endpoint}/loader`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ source, format: "csv", mode: "NEW", failOnError: "TRUE" }),
  });
  const { payload } = /** @type {any} */ (await taken.json());
  await strike();
  let status = "";
  for (
    const end = Date.now() + 2 * PATIENCE_MS;
    Date.now() < end && !/COMPLETED|FAILED/.test(status);
    await sleep(200)
  ) {
    const told = /** @type {any} */ (
      await (await fetch(`${cluster.endpoint}/loader/${payload.loadId}`)).json()
    );
    status = told.payload.overallStatus.status;
    if (/FAILED/.test(status)) fail(`${name}: ${JSON.stringify(told.payload)}`);
  }
  const seconds = Math.round((performance.now() - begun) / 100) / 10;
  await counted(name, number, rows);
  loaded.set(number, rows);
  console.log(JSON.stringify({ load: name, rows, seconds, status }));
  if (!/COMPLETED/.test(status)) fail(`${name}: the load is ${status} after ${seconds} s`);
}

/**
 * Completed bulk loads, with the number of vertices and edges of each.
 * @type {Map<number, number>}
 */
const loaded = new Map();

/**
 * Compares the data of a bulk load in the graph with its files.
 *
 * @param {string} name
 * @param {number} number
 * @param {number} rows
 */
async function counted(name, number, rows) {
  const client = new Load(cluster.endpoint);
  const [found] = await client.ask("MATCH (b:Bulk {of: $of}) RETURN count(b) AS n, sum(b.n) AS sum", {
    of: number,
  });
  const [steps] = await client.ask("MATCH (b:Bulk {of: $of})-[s:NEXT]->() RETURN count(s) AS n", {
    of: number,
  });
  const sum = (rows * (rows - 1)) / 2;
  if (found.n !== rows || found.sum !== sum || steps.n !== rows)
    fail(`${name}: of ${rows} rows ${found.n} vertices (sum ${found.sum}) and ${steps.n} edges are there`);
}

/** @param {Load} load takes away what a fault wrote, so that the next one begins like this one */
async function forget(load) {
  await load.ask("MATCH (n:Tx) DETACH DELETE n");
}

/**
 * Waits until a node has a state.
 *
 * @param {string} name
 * @param {string} state
 */
async function inState(name, state) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await stateOf(name);
    if (found === state) return;
    if (Date.now() > end) throw new Error(`${name} is ${found} and not ${state} after ${PATIENCE_MS} ms`);
    await sleep(200);
  }
}

/** @param {string} name @returns {Promise<string | undefined>} */
async function stateOf(name) {
  const { nodes } = await cluster.map();
  return nodes.find((/** @type {any} */ node) => node.id === name)?.state;
}

/** @param {string} name */
async function killAndRestart(name) {
  cluster.processes.signal(name, "SIGKILL");
  await sleep(calmMs);
  restart(name);
}

/** @param {string} name */
function restart(name) {
  const number = Number(name.split("-")[1]);
  if (name.startsWith("node-")) cluster.startNode(number);
  else if (name.startsWith("kafka-")) cluster.startBroker(number);
}

// How long writes may pause. The short form runs beside other tests: there it is only asked that they go on.
const SOON = quick ? PATIENCE_MS : 6_000;
const begun = performance.now();
try {
  await cluster.start();
  const first = new Load(cluster.endpoint);
  await first.ask("CREATE INDEX txns FOR (n:Tx) ON (n.txn)");
  await bulkLoad("load while a storage node dies", 1, async () => {
    const leader = sequencer();
    const other = [0, 1, 2].map((number) => `node-${number}`).find((name) => name !== leader) ?? "";
    cluster.processes.signal(other, "SIGKILL");
    await sleep(1_000);
    restart(other);
  });
  await bulkLoad("load while the sequencer dies", 2, () => killAndRestart(sequencer()));
  await fault("storage node", { reads: true, writesWithinMs: SOON }, async () => {
    const leader = sequencer();
    await killAndRestart([0, 1, 2].map((number) => `node-${number}`).find((name) => name !== leader) ?? "");
  });
  await fault("sequencer", { reads: true, writesWithinMs: SOON }, () => killAndRestart(sequencer()));
  await fault("worker", { reads: false, writesWithinMs: 120_000 }, async (load) => {
    cluster.processes.signal("worker", "SIGKILL");
    await sleep(500);
    await cluster.startWorker("worker", 0);
    load.endpoint = cluster.endpoint;
  });
  await fault("disk full", { reads: true, writesWithinMs: SOON }, async () => {
    await fillTheDisk();
    rmSync(FULL.file);
    await inState(FULL.name, "up");
  });
  if (!quick) {
    await fault("broker", { reads: true, writesWithinMs: 30_000 }, () => killAndRestart("kafka-0"));
    await fault("map away for 60 s", { reads: true, writesWithinMs: SOON }, async () => {
      cluster.processes.signal("dynamodb", "SIGSTOP");
      await sleep(60_000);
      cluster.processes.signal("dynamodb", "SIGCONT");
    });
    await fault("log away for 30 s", { reads: true, writesWithinMs: 90_000 }, async () => {
      for (const number of [0, 1, 2]) cluster.processes.signal(`kafka-${number}`, "SIGSTOP");
      await sleep(30_000);
      for (const number of [0, 1, 2]) cluster.processes.signal(`kafka-${number}`, "SIGCONT");
    });
  }
  await fault("everything at once", { reads: false, writesWithinMs: 240_000 }, async (load) => {
    const all = [...cluster.processes.all.keys()].filter((name) => name !== "dynamodb");
    for (const name of all) cluster.processes.signal(name, "SIGKILL");
    await sleep(1_000);
    const brokers = all.filter((name) => name.startsWith("kafka-"));
    brokers.forEach(restart);
    await Promise.all(brokers.map((name) => cluster.brokerListens(Number(name.split("-")[1]))));
    all.filter((name) => name.startsWith("node-")).forEach(restart);
    await cluster.startWorker("worker", 0);
    load.endpoint = cluster.endpoint;
    await whole();
  });
  for (const [number, rows] of loaded) await counted("after everything at once", number, rows);
} catch (error) {
  fail(error instanceof Error ? error.message : String(error));
}
await cluster.stop();
const sum = (/** @type {string} */ field) => rows.reduce((all, row) => all + Number(row[field]), 0);
const report = {
  quick,
  shards,
  seconds: Math.round((performance.now() - begun) / 1000),
  faults: rows,
  failures,
};
if (values.json) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
if (failures.length === 0) rmSync(home, { recursive: true, force: true });
else console.error(`logs of all processes are in ${home}`);
console.log(
  `${rows.length} faults in ${report.seconds} s: ${sum("acknowledged")} writes acknowledged, ${sum("lost")} lost, ${sum("half")} by half, ` +
    `${sum("wrong")} wrong reads, ${sum("readErrors")} reads failed, ${sum("writeErrors")} writes refused; ${failures.length} expectations missed`,
);
process.exit(failures.length === 0 ? 0 : 1);

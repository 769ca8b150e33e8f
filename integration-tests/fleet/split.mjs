/**
 * A part of `npm test -- --fleet`: the number of partitions of a graph is raised from 8 to 32 in a fleet of real processes,
 * with Kafka and DynamoDB Local, under constant reads and writes. The command is killed in the middle, a storage node is
 * killed, another command goes on; a bulk load runs across the change. Then a split into 64 is begun and taken back, and
 * each node is started again, which restores from the copies on its disk.
 *
 * Fails if a read fails, an acknowledged write is lost, counts differ, a split that cannot be is not refused with its
 * reason, or a node makes no copies. `--rows N` loads N vertices first; `--release` uses release builds; `--json FILE` writes the report.
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
import { freePort } from "../../scripts/lib/cluster/processes.mjs";
import { buildFleet } from "../../scripts/lib/programs.mjs";

const NODES = 3;
const BEFORE = 8;
const AFTER = 32;
const PATIENCE_MS = 240_000;
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
const home = mkdtempSync(join(tmpdir(), "tidegraph-split-"));
const metricsPorts = await Promise.all(Array.from({ length: NODES }, freePort));
const cluster = new Cluster({
  home,
  nodeBinary,
  workerBinary,
  nodes: NODES,
  rf: 2,
  partitions: BEFORE,
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
  flagsOfNode: (number) => [
    "--checkpoint-copies",
    join(home, `node-${number}`),
    "--metrics-listen",
    `127.0.0.1:${metricsPorts[number]}`,
  ],
  workerFlags: ["--map-poll-ms", "300", "--write-patience-ms", "20000", "--load-from", home],
});
process.on("exit", () => cluster.processes.kill());
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => process.exit(130));

/** @type {string[]} */
const failures = [];
/** @param {boolean} isSo @param {string} message */
const expect = (isSo, message) => {
  if (isSo) return;
  failures.push(message);
  console.error(`FAILED: ${message}`);
};

/** @param {readonly string[]} args flags of `tidegraph fleet split` */
function split(args) {
  const all = ["fleet", "split", ...args, "--look-ms", "300", ...cluster.mapFlags()];
  return execute(workerBinary, all, { timeout: PATIENCE_MS });
}

/** Expects a split to be refused. @param {readonly string[]} args @param {RegExp} reason */
async function refuses(args, reason) {
  const said = await split(args).then(
    ({ stdout }) => `it went on: ${stdout}`,
    (error) => String(error.stderr),
  );
  expect(reason.test(said), `split ${args.join(" ")}: ${said}`);
}

/** @typedef {{ partition: number, replicas: { node: string, state: string }[] }} Partition */

/** Expects that the graph has its partitions, each with two serving replicas. @param {number} count @param {string} when */
async function isWhole(count, when) {
  /** @type {{ partitions: Partition[] }} */
  const { partitions } = await cluster.map();
  expect(partitions.length === count, `${when}: ${partitions.length} partitions`);
  for (const { partition, replicas } of partitions)
    expect(
      replicas.length === 2 && replicas.every(({ state }) => state === "serving"),
      `${when}: partition ${partition} has ${JSON.stringify(replicas)}`,
    );
}

/** Reads a metric of a node: the sum of its lines that have some labels. @param {number} number @param {string} metric */
async function metricOf(number, metric) {
  const text = await (await fetch(`http://127.0.0.1:${metricsPorts[number]}/metrics`)).text();
  const lines = text.split("\n").filter((line) => line.startsWith(metric));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

/** Waits until a node has copies of checkpoints. @param {number} number */
async function hasCopies(number) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(300))
    if ((await metricOf(number, "tidegraph_checkpoint_copies_bytes")) > 0) return;
  throw new Error(`node-${number} copies nothing`);
}

/** Starts a command, and returns it and what it prints. @param {readonly string[]} args */
function begin(args) {
  const child = execFile(workerBinary, [
    "fleet",
    "split",
    ...args,
    "--look-ms",
    "300",
    ...cluster.mapFlags(),
  ]);
  const said = { text: "" };
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk) => {
      said.text += chunk;
    });
  return { child, said };
}

/** Waits for what a command prints. @param {ReturnType<typeof begin>} command @param {(text: string) => boolean} isSo */
async function until({ child, said }, isSo) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(50)) {
    if (isSo(said.text)) return;
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`it ended: ${said.text}`);
  }
  throw new Error(`not within ${PATIENCE_MS} ms: ${said.text}`);
}

/** Returns a node that is not the sequencer. */
function follower() {
  const epoch = (/** @type {string} */ log) => {
    const text = stripVTControlCharacters(readFileSync(log, "utf8"));
    return Number([...text.matchAll(/took over as the sequencer.*?epoch=(\d+)/g)].at(-1)?.[1] ?? -1);
  };
  const nodes = [...cluster.processes.all].filter(([name, { ended }]) => name.startsWith("node-") && !ended);
  const found = nodes.map(([name, { log }]) => ({ name, at: epoch(log) })).sort((a, b) => a.at - b.at);
  return found[0]?.name ?? "";
}

/** The most replicas of the next partitions that a command reported as serving. @param {string} text */
const servingOf = (text) =>
  Math.max(0, ...[...text.matchAll(/(\d+) of \d+ replicas/g)].map((found) => Number(found[1])));

/** @param {Load} load @param {number} loads */
async function counts(load, loads) {
  const [found] = await load.ask("MATCH (b:Bulk) RETURN count(b) AS n, sum(b.n) AS sum");
  const sum = (vertices * (vertices - 1)) / 2;
  expect(found.n === vertices && found.sum === sum, `${loads} loads: ${JSON.stringify(found)}`);
  const [more] = await load.ask("MATCH (b:More) RETURN count(b) AS n, sum(b.n) AS sum");
  const expected = loads > 1 ? { n: vertices, sum } : { n: 0, sum: 0 };
  expect(more.n === expected.n && more.sum === expected.sum, `${loads} loads: ${JSON.stringify(more)}`);
}

const begun = performance.now();
/** @type {Record<string, unknown>} */
const row = {};
try {
  await cluster.start();
  const load = new Load(cluster.endpoint);
  await load.ask("CREATE INDEX txns FOR (n:Tx) ON (n.txn)");
  await bulkLoad(cluster.endpoint, join(home, "files"), vertices);

  const before = await cluster.map();
  await refuses(["--partitions", "12"], /partition count 12 is not a power of two/);
  await refuses(["--partitions", "65536"], /at most 32768 partitions/);
  await refuses(["--partitions", "4"], /split into 4 partitions/);
  await refuses(["--partitions", "8"], /the graph has 8, and their number can only grow/);
  const shown = await split(["--partitions", String(AFTER), "--dry-run"]);
  expect(/8 partitions would become 32/.test(shown.stdout), `a dry run: ${shown.stdout}`);
  const nothing = await split(["--abort"]);
  expect(/no split runs/.test(nothing.stdout), `nothing to abort: ${nothing.stdout}`);
  expect((await cluster.map()).epoch === before.epoch, "what was refused or only shown changed the map");

  load.start(2, 3);
  await sleep(1_500);
  const started = performance.now();
  const first = begin(["--partitions", String(AFTER), "--restores-per-node", "1", "--readers-s", "5"]);
  await until(first, (text) => / replicas of the 32 partitions/.test(text));
  await refuses(["--partitions", "64"], /a split into 32 partitions is unfinished/);
  await refuses(["--partitions", String(AFTER)], /tidegraph-fleet-[0-9a-f]+ is rebalancing this graph/);
  await until(first, (text) => servingOf(text) >= 4);
  first.child.kill("SIGKILL");
  row.killedAt = servingOf(first.said.text);

  const victim = follower();
  cluster.processes.signal(victim, "SIGKILL");
  const second = begin(["--partitions", String(AFTER), "--readers-s", "5", "--json", "--timeout-s", "220"]);
  await sleep(3_000);
  cluster.startNode(Number(victim.split("-")[1]));
  await bulkLoad(cluster.endpoint, join(home, "more"), vertices, "More");
  await until(second, (text) => /"seconds":/.test(text));
  row.splitSeconds = Math.round((performance.now() - started) / 1000);
  await isWhole(AFTER, "after the split");
  const { splits } = await cluster.map();
  expect(JSON.stringify(splits) === '{"createdWith":8}', `after the split: ${JSON.stringify(splits)}`);
  await sleep(2_000);
  await load.stop();
  const { lost, half } = await load.verify();
  Object.assign(row, {
    acknowledged: load.acknowledged.size,
    lost,
    half,
    reads: load.reads.length,
    readErrors: load.readErrors.length,
    wrong: load.wrong.length,
  });
  console.log(JSON.stringify(row));
  expect(lost + half + load.wrong.length === 0, `${lost} lost, ${half} by half, ${load.wrong[0]}`);
  expect(load.readErrors.length === 0, `${load.readErrors.length} reads failed: ${load.readErrors[0]}`);
  await counts(load, 2);

  // A second split is taken back, and everything is as before.
  const third = begin(["--partitions", "64", "--restores-per-node", "1"]);
  await until(third, (text) => servingOf(text) >= 2);
  third.child.kill("SIGKILL");
  const aborted = await split(["--abort", "--json"]);
  expect(JSON.parse(aborted.stdout).aborted === true, `it is taken back: ${aborted.stdout}`);
  await isWhole(AFTER, "after the abort");
  await counts(load, 2);

  // A restart of every node restores the partitions after the split.
  let fromCopies = 0;
  for (let number = 0; number < NODES; number++) {
    await hasCopies(number);
    await cluster.processes.end([`node-${number}`], 20_000);
    cluster.startNode(number);
    // Until it has registered, the map shows the replicas of its former process.
    await sleep(4_000);
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(300)) {
      const { partitions } = await cluster.map();
      if (
        partitions.every((/** @type {Partition} */ { replicas }) =>
          replicas.every(({ state }) => state === "serving"),
        )
      )
        break;
    }
    // Others may have written newer checkpoints while it was away, so this may be nothing.
    fromCopies += await metricOf(number, 'tidegraph_restored_bytes_total{from="copies"}');
  }
  console.log(JSON.stringify({ fromCopies }));
  await isWhole(AFTER, "after the restart of all nodes");
  await counts(load, 2);
} catch (error) {
  expect(
    false,
    error instanceof Error ? `${error.message} ${/** @type {any} */ (error).stderr ?? ""}` : String(error),
  );
}
await cluster.stop();
const report = { vertices, seconds: Math.round((performance.now() - begun) / 1000), ...row, failures };
if (values.json) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
if (failures.length === 0) rmSync(home, { recursive: true, force: true });
else console.error(`logs of all processes are in ${home}`);
console.log(`a split under load in ${report.seconds} s; ${failures.length} expectations missed`);
process.exit(failures.length === 0 ? 0 : 1);

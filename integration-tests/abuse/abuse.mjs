/**
 * `npm run abuse [-- --dev] [--only NAME] [--json FILE]`: hostile queries, clients and files against one service, while
 * a probe sends a simple query every 10 ms.
 *
 * Prints a row for each abuse: the statuses of its answers, the probe's latency, memory and descriptors of the process.
 * `--json FILE` writes the same as JSON. The command fails if the process ends, if an answer has a status that is not
 * right, if the probe fails, if descriptors stay open, if memory grows beyond its budget, or if SIGTERM does not end the
 * service. Latencies are reported, not judged: they depend on the machine.
 */
import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { buildBinary } from "../../scripts/lib/programs.mjs";
import { ABUSES } from "./abuses.mjs";
import { Service } from "./service.mjs";

/** Memory that queries may use together, and what the process may use besides: the graph, buffers, the allocator's reserve. */
const BUDGET_MIB = 512;
const BESIDES_MIB = 384;
/** Most that queries may have in temporary files together. */
const SPILL_MIB = 1_024;
const VERTICES = 20_000;
const BATCH = 500;
const IDLE_MS = 3_000;
const SETTLE_MS = 120_000;
const FLAGS = [
  ...["--query-timeout-ms", "3000", "--query-memory-bytes", String(256 << 20)],
  ...["--query-memory-total", `${BUDGET_MIB}MiB`, "--query-spill-total", `${SPILL_MIB}MiB`],
  ...["--head-timeout-ms", "2000", "--body-timeout-ms", "3000", "--idle-timeout-ms", "3000"],
  ...["--write-timeout-ms", "3000", "--connections", "512", "--concurrent-queries", "16"],
];

const { values } = parseArgs({
  options: { dev: { type: "boolean", default: false }, only: { type: "string" }, json: { type: "string" } },
});
const chosen = ABUSES.filter(({ name }) => values.only === undefined || name === values.only);
if (chosen.length === 0) {
  console.error(`--only ${values.only}: there are ${ABUSES.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}

/** @param {readonly number[]} sorted @param {number} part */
const quantile = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;

/** The probe's samples between two moments. @param {number} begin @param {number} end */
function latency(begin, end) {
  const of = samples.filter(({ at }) => at >= begin && at <= end);
  const sorted = of.map(({ ms }) => ms).sort((a, b) => a - b);
  const round = (/** @type {number} */ ms) => Math.round(ms * 10) / 10;
  return {
    queries: of.length,
    p50Ms: round(quantile(sorted, 0.5)),
    p99Ms: round(quantile(sorted, 0.99)),
    mostMs: round(sorted.at(-1) ?? 0),
    failures: of.flatMap(({ failure }) => (failure === undefined ? [] : [failure.slice(0, 200)])),
  };
}

const now = () => performance.timeOrigin + performance.now();
const service = await Service.start(await buildBinary(values.dev ? "dev" : "release"), FLAGS);
/** @type {import("./probe.mjs").Sample[]} */
const samples = [];
/** @type {string[]} */
const failures = [];
const rows = [];
const statements = ["CREATE INDEX FOR (p:Probe) ON (p.k)"];
for (let from = 0; from < VERTICES; from += BATCH)
  statements.push(
    `UNWIND range(${from}, ${from + BATCH - 1}) AS i CREATE (:Probe {k: i})-[:NEXT]->(:Next {k: i})`,
  );
for (const statement of statements) {
  const { status, text } = await service.cypher(statement);
  if (status !== 200) throw new Error(`${statement}: ${status} ${text}`);
}
const body = JSON.stringify({ query: "MATCH (p:Probe {k: 7})-->(q) RETURN q.k" });
const probe = new Worker(new URL("./probe.mjs", import.meta.url), {
  workerData: { port: service.port, body },
});
probe.on("message", (/** @type {import("./probe.mjs").Sample} */ sample) => samples.push(sample));

const started = now();
await sleep(IDLE_MS);
const idle = latency(started, now());
const atRest = service.usage();
for (const { name, what, expect, run } of chosen) {
  const before = service.usage();
  let { mib: most, threads } = before;
  let spilled = 0;
  const watch = setInterval(() => {
    if (service.ended) return;
    const now = service.usage();
    most = Math.max(most, now.mib);
    threads = Math.max(threads, now.threads);
    spilled = Math.max(spilled, service.spilledMib());
  }, 50);
  const begin = now();
  const answers = await run(service).catch((error) => [{ status: -1, text: String(error) }]);
  const end = now();
  if (service.ended) {
    clearInterval(watch);
    failures.push(`${name}: the process ended`);
    break;
  }
  // Connections and memory are given back when deadlines have passed.
  let after = service.usage();
  for (let waited = 0; after.descriptors > before.descriptors && waited < SETTLE_MS; waited += 100) {
    await sleep(100);
    after = service.usage();
  }
  clearInterval(watch);
  /** @type {Record<string, number>} */
  const statuses = {};
  for (const { status, text } of answers) {
    statuses[status] = (statuses[status] ?? 0) + 1;
    if (!expect.includes(status)) failures.push(`${name}: ${status} ${text.slice(-300)}`);
  }
  const probed = latency(begin, end);
  for (const failure of probed.failures) failures.push(`${name}: the probe: ${failure}`);
  if (after.descriptors > before.descriptors)
    failures.push(`${name}: ${after.descriptors - before.descriptors} descriptors stay open`);
  if (most > atRest.mib + BUDGET_MIB + BESIDES_MIB)
    failures.push(`${name}: ${most} MiB, at rest ${atRest.mib}`);
  // Each file checks the limit before it writes a block, so all of them together may pass it by a block each.
  if (spilled > SPILL_MIB * 1.1) failures.push(`${name}: ${spilled} MiB in temporary files`);
  if (service.spilledMib() > 0) failures.push(`${name}: temporary files stay open`);
  const seconds = Math.round((end - begin) / 100) / 10;
  rows.push({
    name,
    what,
    seconds,
    statuses,
    probe: probed,
    mib: { before: before.mib, most, after: after.mib },
    threads: { before: before.threads, most: threads },
    spilledMib: spilled,
  });
  const told = Object.entries(statuses).map(([status, count]) => `${status}×${count}`);
  console.log(
    `${name.padEnd(20)} ${String(seconds).padStart(6)} s  probe p50 ${probed.p50Ms} p99 ${probed.p99Ms} most ${probed.mostMs} ms` +
      `  MiB ${before.mib} → ${most} → ${after.mib}  threads ${threads}  files ${spilled} MiB  ${told.join(" ")}`,
  );
}
probe.postMessage("stop");
await new Promise((done) => probe.once("exit", done));
const endMs = service.ended ? undefined : await service.end();
if (endMs === undefined) failures.push("SIGTERM did not end the service");
const report = { processors: cpus().length, flags: FLAGS, idle, atRest, abuses: rows, endMs, failures };
if (values.json) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
console.log(
  `\nidle: probe p50 ${idle.p50Ms} p99 ${idle.p99Ms} ms, ${atRest.mib} MiB, ${atRest.descriptors} descriptors; ended in ${endMs} ms`,
);
for (const failure of failures) console.error(failure);
console.log(failures.length === 0 ? "everything held" : `${failures.length} failures`);
process.exitCode = failures.length === 0 ? 0 : 1;

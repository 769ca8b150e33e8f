/**
 * A part of `npm test -- --fleet`: a fleet whose processes send traces to a collector of OpenTelemetry. One trace goes
 * from the caller's own span through the worker to the nodes; callers who trace nothing leave none; a collector that is
 * gone keeps no request waiting.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "../../scripts/lib/cluster/cluster.mjs";
import { buildFleet } from "../../scripts/lib/programs.mjs";
import { pythonWithClients } from "../../scripts/lib/python.mjs";

const PATIENCE_MS = 120_000;

/**
 * @typedef {{ service: string, name: string, kind: string, trace: string, id: string, parent: string, nanos: number,
 * attributes: Record<string, unknown> }} Span
 */

/** All spans that the collector received. */
const spans = /** @type {Span[]} */ ([]);

async function collector() {
  const program = join(import.meta.dirname, "..", "python", "otlp_collector.py");
  const child = spawn(await pythonWithClients(), [program], { stdio: ["ignore", "pipe", "inherit"] });
  process.on("exit", () => child.kill());
  const lines = createInterface(child.stdout);
  const [first] = await once(lines, "line");
  lines.on("line", (line) => {
    const said = JSON.parse(line);
    assert.equal(said.refused, undefined, "the collector refused what a process sent");
    spans.push(said);
  });
  return { child, port: JSON.parse(first).port };
}

/**
 * Waits until the collector has what `find` looks for.
 *
 * @template T
 * @param {string} what
 * @param {() => T | undefined} find
 */
async function received(what, find) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(100)) {
    const found = find();
    if (found !== undefined) return found;
  }
  throw new Error(`the collector has no ${what}; it has ${JSON.stringify(spans, null, 2)}`);
}

const { nodeBinary, workerBinary } = await buildFleet("dev");
const { child, port } = await collector();
// Only requests whose callers trace them.
process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${port}`;
process.env.OTEL_TRACES_SAMPLER_ARG = "0";
process.env.OTEL_BSP_SCHEDULE_DELAY = "200";

const home = mkdtempSync(join(tmpdir(), "tidegraph-traces-"));
const sizes = { nodes: 2, rf: 1, partitions: 8, brokers: 1, port: 0, shares: true };
const cluster = new Cluster({ home: join(home, "cluster"), nodeBinary, workerBinary, ...sizes });
process.on("exit", () => cluster.processes.kill());
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => process.exit(130));

/**
 * @param {string} query
 * @param {Record<string, string>} [headers]
 * @returns {Promise<{ results: object[] }>}
 */
async function ask(query, headers = {}) {
  const body = new URLSearchParams({ query });
  const response = await fetch(`${cluster.endpoint}/openCypher`, { method: "POST", headers, body });
  assert.equal(response.status, 200, await response.clone().text());
  return /** @type {{ results: object[] }} */ (await response.json());
}

/** @param {string} trace */
const of = (trace) => spans.filter((span) => span.trace === trace);

try {
  await cluster.start();
  await ask("UNWIND range(1, 100) AS n CREATE (:Person {n: n})");

  const trace = "0af7651916cd43dd8448eb211c80319c";
  const parent = "b7ad6b7169203331";
  const counted = "MATCH (p:Person) WHERE p.n > 3 RETURN count(p) AS c";
  const answer = await ask(counted, { traceparent: `00-${trace}-${parent}-01` });
  assert.deepEqual(answer.results, [{ c: 97 }]);
  /** @param {string} name @param {(span: Span) => boolean} [is] */
  const find = (name, is = () => true) => of(trace).find((span) => span.name === name && is(span));
  const request = await received("span of the request", () => find("POST /openCypher"));
  assert.deepEqual([request.service, request.kind, request.parent], ["tidegraph", "server", parent]);
  assert.equal(request.attributes["http.response.status_code"], 200);
  const nodes = new Set();
  await received("spans of both nodes", () => {
    for (const span of of(trace).filter(({ name }) => name === "answer")) {
      const sender = of(trace).find(({ id }) => id === span.parent);
      if (sender) nodes.add(sender.attributes.peer);
    }
    return nodes.size === 2 ? nodes : undefined;
  });
  /** Names of the spans from a node up to that of the request. */
  const path = () => {
    const names = [];
    let span = find("answer");
    for (; span; span = of(trace).find(({ id }) => id === span?.parent))
      names.push(`${span.service} ${span.name}`);
    return names.at(-1) === "tidegraph POST /openCypher" ? names : undefined;
  };
  const names = await received("path from a node to the request", path);
  assert.deepEqual(names.slice(0, 3), ["tidegraph-node answer", "tidegraph message", "tidegraph execute"]);
  assert.ok(names.includes("tidegraph query"), `${names}`);
  assert.ok(!JSON.stringify(of(trace)).includes("p.n > 3"), "no text of a query is in a trace");

  const written = "11111111111111111111111111111111";
  await ask("CREATE (:Person {n: 101})", { traceparent: `00-${written}-${parent}-01` });
  const isCommit = (/** @type {Span} */ of) => of.attributes.call === "commit";
  await received("commit at a node", () =>
    of(written).find((span) => span.service === "tidegraph-node" && isCommit(span)),
  );

  // What AWS's load balancers and API Gateway send.
  await ask(counted, {
    "x-amzn-trace-id": "Root=1-22222222-222222222222222222222222;Parent=53995c3f42cd8ad8;Sampled=1",
  });
  const xray = await received("trace of X-Ray", () =>
    of("2".repeat(32)).find(({ name }) => name === "POST /openCypher"),
  );
  assert.equal(xray.parent, "53995c3f42cd8ad8");

  // Unsampled, malformed, and none: no trace, and the same answers.
  const unsampled = "33333333333333333333333333333333";
  for (const traceparent of [
    `00-${unsampled}-${parent}-00`,
    "00-zz-zz-01",
    `00-${"4".repeat(32)}`,
    "x".repeat(4000),
  ])
    assert.deepEqual((await ask(counted, { traceparent })).results, [{ c: 98 }]);
  await ask(counted);
  const last = "55555555555555555555555555555555";
  await ask(counted, { traceparent: `00-${last}-${parent}-01` });
  await received("the last trace", () => of(last).find(({ name }) => name === "POST /openCypher"));
  const known = [trace, written, "2".repeat(32), last];
  assert.deepEqual(
    spans.filter((span) => !known.includes(span.trace)),
    [],
  );

  child.kill("SIGKILL");
  await once(child, "exit");
  for (let n = 0; n < 20; n++) await ask(counted, { traceparent: `00-${last}-${parent}-01` });
  console.log(
    `traces: ${spans.length} spans of ${known.length} traces, from the caller to ${nodes.size} nodes; 20 requests answered without a collector`,
  );
} finally {
  await cluster.stop();
  rmSync(home, { recursive: true, force: true });
}
process.exit();

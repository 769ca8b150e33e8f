/** Metrics that a process writes into its log, as CloudWatch reads them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { type TestContext, test } from "node:test";
import neo4j from "neo4j-driver";
import { cypher, gremlin, post } from "../src/client.ts";
import { eventually, runBinary, Server } from "../src/server.ts";

const FLAGS = [
  ...["--metrics-log-seconds", "1"],
  ...["--metrics-log-dimension", "Deployment=people", "--metrics-log-dimension", "service=worker"],
];

/** A metric in an event. */
interface Metric {
  readonly name: string;
  /** The value of the dimension that only some metrics have. */
  readonly of: string;
  readonly target: number | { readonly Values: number[]; readonly Counts: number[] };
}

/** Checks a line of the log as CloudWatch's specification says, and returns its metrics. */
function metricsOf(line: string): Metric[] {
  const event = JSON.parse(line);
  assert.ok(Number.isInteger(event._aws.Timestamp), line);
  const [{ Namespace, Dimensions, Metrics }, ...others] = event._aws.CloudWatchMetrics;
  assert.deepEqual([Namespace, Dimensions.length, others], ["Tidegraph", 1, []]);
  const [deployment, service, ...own]: string[] = Dimensions[0];
  assert.deepEqual(
    [deployment, event.Deployment, service, event.service],
    [...["Deployment", "people"], ...["service", "worker"]],
  );
  assert.ok(Metrics.length > 0 && Metrics.length <= 100, line);
  return Metrics.map(({ Name }: { Name: string }) => {
    const target: Metric["target"] = event[Name];
    if (typeof target !== "number") {
      const { Values, Counts } = target;
      assert.ok(Values.length > 0 && Values.length <= 100 && Counts.length === Values.length, line);
    }
    return { name: Name, of: own.map((name) => event[name]).join(), target };
  });
}

/** Starts a server whose standard output is a file, and returns a reader of the metrics in it. */
async function start(t: TestContext, ...args: string[]): Promise<[Server, () => Metric[]]> {
  const folder = await mkdtemp(join(tmpdir(), "tidegraph-metrics-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const LOG = join(folder, "stdout");
  const server = await Server.start(t, { prelude: 'exec >"$LOG"', args: [...FLAGS, ...args], env: { LOG } });
  const read = (): Metric[] => {
    const [first = "", ...lines] = readFileSync(LOG, "utf8").split("\n").slice(0, -1);
    // Scripts wait for this line. All that follows are events.
    assert.match(first, /^Tidegraph listens on http:/);
    return lines.flatMap(metricsOf);
  };
  return [server, read];
}

/** Opens a connection that speaks WebSocket. */
function webSocket({ port }: Server): Promise<Duplex> {
  const headers = {
    ...{ connection: "Upgrade", upgrade: "websocket" },
    ...{ "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" },
  };
  return new Promise((done, fail) => {
    const asked = request({ host: "127.0.0.1", port, path: "/gremlin", headers });
    asked.on("upgrade", (_, socket) => done(socket));
    asked.on("response", ({ statusCode }) => fail(new Error(`status ${statusCode} in place of an upgrade`)));
    asked.on("error", fail);
    asked.end();
  });
}

/** Returns the sum over all events of a counter, or of the counts of a histogram. */
function sum(metrics: readonly Metric[], name: string, of = ""): number {
  const found = metrics.filter((metric) => metric.name === name && metric.of === of);
  const counts = found.flatMap(({ target }) => (typeof target === "number" ? target : target.Counts));
  return counts.reduce((all, count) => all + count, 0);
}

test("events have what happened since the ones before, of all protocols, and the last ones come at the end", async (t) => {
  const [server, read] = await start(t);
  for (let n = 0; n < 5; n++) await cypher(server, "CREATE (:Counted {n: $n})", { n });
  assert.equal((await post(server, "/openCypher", { query: "nonsense" })).status, 400);
  assert.equal((await fetch(`${server.endpoint}/no/such/path`)).status, 404);

  assert.deepEqual(await gremlin(server, "g.V().hasLabel('Counted').count()"), [5]);

  const driver = neo4j.driver(`bolt://127.0.0.1:${server.port}`);
  const socket = await webSocket(server);
  const isOpen = (protocol: string) =>
    read().some(
      ({ name, of, target }) => `${name} ${of}` === `tidegraph_connections ${protocol}` && target !== 0,
    );
  try {
    await driver.executeQuery("MATCH (c:Counted) RETURN count(c)");
    await eventually("an event has the open connections", async () => isOpen("bolt") && isOpen("websocket"));
  } finally {
    socket.destroy();
    await driver.close();
  }

  // One more after an event: it is in the last one, which the end of the process writes.
  await cypher(server, "RETURN 1");
  assert.equal((await server.stop()).code, 0);
  const metrics = read();
  const queries = ["answered", "failed", "refused", "unavailable"].map((outcome) =>
    sum(metrics, "tidegraph_queries_total", outcome),
  );
  assert.deepEqual(queries, [8, 1, 0, 0]);
  assert.equal(sum(metrics, "tidegraph_query_duration_seconds"), 9);
  // An unknown path has no route, and is counted nowhere else either.
  const classes = ["2xx", "4xx"].map((of) => sum(metrics, "tidegraph_http_requests_total", of));
  assert.ok((classes[0] ?? 0) >= 6 && classes[1] === 1, classes.join(" "));
  const limits = metrics.filter(({ name }) => name === "tidegraph_query_memory_limit_bytes");
  assert.ok(limits.length > 0 && limits.every(({ target }) => Number(target) > 0));
  // What clients send is nowhere.
  for (const { name, of } of metrics) assert.doesNotMatch(name + of, /Counted|nonsense|such/);
});

test("queries that are refused for memory are counted as such", async (t) => {
  const [server, read] = await start(
    t,
    "--query-memory-total",
    "16MiB",
    "--query-memory-bytes",
    String(1 << 30),
  );
  const query = "UNWIND range(1, 3000000) AS n RETURN collect(n) AS numbers";
  assert.equal((await post(server, "/openCypher", { query })).status, 503);
  assert.equal((await server.stop()).code, 0);
  const metrics = read();
  assert.equal(sum(metrics, "tidegraph_queries_total", "refused"), 1);
  assert.ok(sum(metrics, "tidegraph_query_memory_refusals_total") >= 1);
  assert.ok(sum(metrics, "tidegraph_http_requests_total", "5xx") >= 1);
});

test("wrong flags are refused with their values", async () => {
  const refused = async (args: readonly string[], message: RegExp) => {
    const { code, stderr } = await runBinary(["serve", "--port", "0", ...args]);
    assert.notEqual(code, 0);
    assert.match(stderr, message);
  };
  const seconds = (value: string) => ["--metrics-log-seconds", value];
  await refused(seconds("0"), /0 is not in 1\.\.=3600/);
  await refused(seconds("often"), /invalid value 'often'/);
  const dimension = (value: string) => [...seconds("60"), "--metrics-log-dimension", value];
  await refused(dimension("people"), /"people" is not a dimension: write it like Deployment=production/);
  await refused(dimension("outcome=good"), /"outcome" cannot be the name of a dimension/);
  await refused(dimension("a=1,a=2"), /the dimension "a" is given twice/);
  await refused(["--metrics-log-dimension", "a=1"], /--metrics-log-seconds/);
});

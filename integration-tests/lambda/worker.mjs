/**
 * `npm test -- --lambda`: the worker as a Lambda function, in its own process behind a Runtime API, on top of a cluster
 * on this machine. Compares its answers to API Gateway events with the answers of `tidegraph worker` to requests.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Cluster } from "../../scripts/lib/cluster/cluster.mjs";
import { freePort } from "../../scripts/lib/cluster/processes.mjs";
import { LambdaFunction, restEvent } from "../../scripts/lib/lambda/runtime.mjs";
import { buildFleet } from "../../scripts/lib/programs.mjs";

const { values } = parseArgs({ options: { dev: { type: "boolean", default: false } } });
const { nodeBinary, workerBinary, lambdaBinary } = await buildFleet(values.dev ? "dev" : "release");
const home = mkdtempSync(join(tmpdir(), "tidegraph-lambda-"));
const sizes = { nodes: 2, rf: 2, partitions: 8, brokers: 1, port: 0 };
const graphs = ["default", "people"];
const cluster = new Cluster({ home: join(home, "cluster"), nodeBinary, workerBinary, graphs, ...sizes });
/** @type {LambdaFunction[]} */
const functions = [];
process.on("exit", () => {
  cluster.processes.kill();
  for (const one of functions) one.signal("SIGKILL");
});
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => process.exit(130));

/** @param {Record<string, string>} [more] */
async function started(more = {}) {
  const environment = { ...cluster.workerEnvironment(), ...more };
  const one = new LambdaFunction(lambdaBinary, join(home, `function-${functions.length}.log`), environment);
  functions.push(one);
  await one.start();
  return one;
}

/**
 * @typedef {{
 *   method: string, path: string, query?: Record<string, string>, headers?: Record<string, string>, body?: string,
 *   base64?: boolean
 * }} Case
 */

/** @param {Case} asked */
async function worker({ method, path, query, headers = {}, body }) {
  const search = query ? `?${new URLSearchParams(query)}` : "";
  const answer = await fetch(`${cluster.endpoint}${path}${search}`, { method, headers, body: body ?? null });
  const type = answer.headers.get("content-type");
  return { status: answer.status, type, body: withoutIds(type, Buffer.from(await answer.arrayBuffer())) };
}

/**
 * Replaces what differs from request to request: the id, which GraphBinary has after a byte of its version and a byte
 * that says that there is an id.
 *
 * @param {string | null | undefined} type
 * @param {Buffer} body
 */
function withoutIds(type, body) {
  if (type === GRAPH_BINARY) {
    assert.deepEqual([...body.subarray(0, 2)], [0x81, 0]);
    return `81 00 … ${body.subarray(18).toString("hex")}`;
  }
  return body.toString().replace(/"requestId":"[^"]+"/g, '"requestId":"…"');
}

const GRAPH_BINARY = "application/vnd.graphbinary-v1.0";
const json = { "content-type": "application/json" };
/** @type {(query: string, parameters?: object) => Case} */
const cypher = (query, parameters = {}) => ({
  method: "POST",
  path: "/openCypher",
  headers: json,
  body: JSON.stringify({ query, parameters }),
});
/** @type {(gremlin: string, headers?: Record<string, string>) => Case} */
const gremlin = (gremlin, headers = {}) => ({
  method: "POST",
  path: "/gremlin",
  headers: { ...json, ...headers },
  body: JSON.stringify({ gremlin }),
});

/** @type {Case[]} */
const compared = [
  cypher("MATCH (a:Person)-[:KNOWS]->(b) RETURN a.name AS a, b.name AS b, b.age AS age ORDER BY a, b"),
  cypher("MATCH (n {`~id`: $id}) RETURN n", { id: "p1" }),
  cypher("MATCH (n:Person) RETURN count(n) AS n"),
  { method: "GET", path: "/openCypher", query: { query: "RETURN 'é & ü' AS s, 1 + 1 AS n" } },
  {
    method: "POST",
    path: "/openCypher",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "query=RETURN%201%20AS%20one",
    base64: true,
  },
  gremlin("g.V().hasLabel('Person').order().by('name').values('name')"),
  gremlin("g.V('p1').out('KNOWS').elementMap()", { accept: "application/vnd.gremlin-v3.0+json" }),
  gremlin("g.V('p2').values('age')", { accept: "application/json;types=false" }),
  { method: "GET", path: "/gremlin", query: { gremlin: "g.V().count()" } },
  gremlin("g.V()", { accept: GRAPH_BINARY }),
  gremlin("g.V().noSuchStep()", { accept: GRAPH_BINARY }),
  // Invalid requests.
  cypher("MATCH (n RETURN n"),
  cypher("CALL nothing.here()"),
  cypher("RETURN $missing AS m"),
  gremlin("g.V().noSuchStep()"),
  { method: "POST", path: "/openCypher", headers: json, body: "{" },
  { method: "POST", path: "/openCypher", headers: json, body: "{}" },
  { method: "POST", path: "/openCypher", headers: { "content-type": "text/csv" }, body: "a,b" },
  { method: "DELETE", path: "/openCypher" },
  { method: "GET", path: "/nowhere" },
  {
    method: "POST",
    path: "/openCypher",
    headers: json,
    body: JSON.stringify({ query: "RETURN 1", queryTimeoutMilliseconds: "soon" }),
  },
];

/** @param {LambdaFunction} one */
async function comparesWithTheWorker(one) {
  for (const asked of compared) {
    const expected = await worker(asked);
    const found = await one.invoke(restEvent(asked.method, asked.path, asked));
    const text = `${asked.method} ${asked.path} ${asked.body ?? JSON.stringify(asked.query ?? {})}`;
    const type = found.headers["content-type"];
    const here = { status: found.status, type, body: withoutIds(type, found.bytes) };
    assert.deepEqual(here, expected, text);
    assert.equal(found.failed, "", text);
    assert.ok(expected.status !== 500, text);
  }
}

/** Returns the addresses to which a process has connections. */
function peers(/** @type {number} */ pid) {
  const inodes = new Set();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`)) ?? [];
      if (inode) inodes.add(inode);
    } catch {
      // The descriptor has been closed meanwhile.
    }
  }
  const rows = readFileSync("/proc/net/tcp", "utf8").trim().split("\n").slice(1);
  const fields = rows.map((row) => row.trim().split(/\s+/));
  return fields
    .filter((field) => inodes.has(field[9]))
    .map((field) => Number.parseInt((field[2] ?? "").split(":")[1] ?? "", 16));
}

/** @type {[string, () => Promise<void>][]} */
const tests = [];
/** @type {(name: string, test: () => Promise<void>) => void} */
const test = (name, body) => {
  tests.push([name, body]);
};
/** @type {LambdaFunction} */
let one;

test("answers as the worker does, in pieces", async () => {
  const write = cypher(
    "CREATE (a:Person {`~id`: 'p1', name: 'Ada', age: 36})-[:KNOWS]->(b:Person {`~id`: 'p2', name: 'Grace', age: 85}) RETURN a.name",
  );
  const made = await one.invoke(restEvent(write.method, write.path, write));
  assert.equal(made.status, 200, made.body);
  assert.ok(made.streamed);
  // The worker sees the write within some milliseconds.
  const end = Date.now() + 120_000;
  while (!(await worker(cypher("MATCH (n:Person) RETURN n.name AS name"))).body.includes("Grace"))
    assert.ok(Date.now() < end, "the worker does not see what the function wrote");
  await comparesWithTheWorker(one);
});

/** Writes at the worker until there is a sequencer that takes it. */
async function untilSequenced() {
  const end = Date.now() + 120_000;
  for (;;) {
    const write = await worker(cypher("CREATE (:Afterwards)"));
    if (write.status === 200) return;
    assert.ok(Date.now() < end, write.body);
  }
}

/** Returns how often nodes have become the sequencer. */
function takeOvers() {
  const logs = [...cluster.processes.all].filter(([name]) => name.startsWith("node-"));
  const said = logs.map(([, { log }]) => readFileSync(log, "utf8"));
  return said.join("").split("took over as the sequencer").length - 1;
}

test("sees what was written while it was stopped", async () => {
  let seen = 0;
  for (let round = 0; seen < 3; round += 1) {
    const before = takeOvers();
    one.signal("SIGSTOP");
    const name = `while stopped ${round}`;
    const write = await worker(cypher("CREATE (:Note {name: $name})", { name }));
    assert.equal(write.status, 200, write.body);
    // In one of the rounds, longer than the silence after which a connection counts as dead.
    await sleep(round === 0 ? 5_000 : 100);
    one.signal("SIGCONT");
    const query = cypher("MATCH (n:Note {name: $name}) RETURN count(n) AS n", { name });
    const found = await one.invoke(restEvent("POST", "/openCypher", query));
    // Without a sequencer, the function reads at the version that it knew. On a busy machine one may lose its lease; there
    // is another one when this write is answered.
    await untilSequenced();
    if (takeOvers() > before && round < 10) continue;
    assert.equal(found.body, '{"results":[{"n":1}]}');
    seen += 1;
  }
});

test("speaks with neither broker nor anybody else", async () => {
  const known = new Set(cluster.processes.all.keys());
  assert.ok(known.has("kafka-0"));
  const found = peers(one.child?.pid ?? 0);
  assert.ok(found.length > 0, "it has connections");
  for (const port of cluster.brokerPorts)
    assert.ok(!found.includes(port), `a connection to Kafka's port ${port}`);
});

test("takes no loads, and says who does", async () => {
  const body = JSON.stringify({ source: "s3://b/x", format: "csv", iamRoleArn: "a", region: "r" });
  const found = await one.invoke(restEvent("POST", "/loader", { headers: json, body }));
  assert.match(found.body, /long-lived worker/);
  assert.equal(JSON.parse(found.body).code, "UnsupportedOperationException");
});

test("answers before its time is over", async () => {
  const long = cypher(
    "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b WITH a + b AS c WHERE c < 0 RETURN count(c)",
  );
  const found = await one.invoke(restEvent(long.method, long.path, long), 2_000);
  assert.equal(JSON.parse(found.body).code, "TimeLimitExceededException", found.body);
  const own = {
    ...long,
    body: JSON.stringify({ ...JSON.parse(long.body ?? ""), queryTimeoutMilliseconds: 100 }),
  };
  const sooner = await one.invoke(restEvent(own.method, own.path, own));
  assert.equal(JSON.parse(sooner.body).code, "TimeLimitExceededException", sooner.body);
});

test("sends more than a buffered answer may hold", async () => {
  const large = cypher("UNWIND range(1, 60000) AS n RETURN n, $text AS text", { text: "x".repeat(120) });
  const expected = await worker(large);
  const found = await one.invoke(restEvent(large.method, large.path, large));
  assert.ok(found.body.length > 6 << 20, `${found.body.length} bytes`);
  assert.equal(withoutIds(found.headers["content-type"], found.bytes), expected.body);
});

test("refuses what is no event, and goes on", async () => {
  for (const event of ["[]", '{"hello": 1}', "null", '{"httpMethod": 7}']) {
    const found = await one.invoke(event);
    assert.ok(found.failed !== "" || found.status >= 400, `${event}: ${JSON.stringify(found)}`);
  }
  const found = await one.invoke(restEvent("GET", "/openCypher", { query: { query: "RETURN 1 AS one" } }));
  assert.equal(found.body, '{"results":[{"one":1}]}');
});

test("answers whole where that is asked for", async () => {
  const whole = await started({ TIDEGRAPH_RESPONSES: "buffer" });
  await comparesWithTheWorker(whole);
  const found = await whole.invoke(restEvent("GET", "/status"));
  assert.equal(found.streamed, false);
  await whole.stop();
});

/** Asks a function about a graph, by its path. @type {(of: LambdaFunction, prefix: string, query: string) => Promise<any>} */
const askedOf = (of, prefix, query) => {
  const { method, path, ...rest } = cypher(query);
  return of.invoke(restEvent(method, prefix + path, rest));
};

/** Asks until an answer has this status. @type {(of: LambdaFunction, prefix: string, status: number) => Promise<any>} */
async function until(of, prefix, status) {
  for (const end = Date.now() + 120_000; ; await sleep(200)) {
    const answer = await askedOf(of, prefix, "MATCH (n:Only) RETURN count(n) AS n");
    if (answer.status === status) return answer;
    assert.ok(Date.now() < end, `${prefix} does not answer ${status}, but ${answer.status}: ${answer.body}`);
  }
}

test("serves several graphs by their paths, made and dropped while it runs", async () => {
  const both = await started({ TIDEGRAPH_GRAPH: graphs.join() });
  const early = await askedOf(both, "/graph/people", "RETURN 1");
  assert.equal(early.status, 503, early.body);
  assert.match(early.body, /the fleet cannot be reached.*people/);
  // The first graph does not wait for the other one.
  assert.equal((await askedOf(both, "", "RETURN 1 AS one")).body, '{"results":[{"one":1}]}');
  await cluster.makeGraph("people", ["--partitions", "4", "--replication", "2"]);
  await until(both, "/graph/people", 200);
  const write = await askedOf(both, "/graph/people", "CREATE (n:Only {name: 'Ada'}) RETURN n.name AS name");
  assert.equal(write.body, '{"results":[{"name":"Ada"}]}');
  const count = "MATCH (n:Only) RETURN count(n) AS n";
  assert.equal((await askedOf(both, "/graph/people", count)).body, '{"results":[{"n":1}]}');
  for (const prefix of ["", "/graph/default"])
    assert.equal((await askedOf(both, prefix, count)).body, '{"results":[{"n":0}]}', prefix);
  /** @type {Case[]} */
  const cases = [
    {
      method: "GET",
      path: "/graph/people/openCypher",
      query: { query: "MATCH (n:Only) RETURN n.name AS name" },
    },
    { method: "GET", path: "/graph/people/gremlin", query: { gremlin: "g.V().hasLabel('Only').count()" } },
    { method: "GET", path: "/graph/people/nowhere" },
    { method: "GET", path: "/graph/people" },
    { method: "GET", path: "/graph/nobody/openCypher", query: { query: "RETURN 1" } },
    { method: "GET", path: "/graph/.hidden/openCypher", query: { query: "RETURN 1" } },
  ];
  for (const asked of cases) {
    // The worker may not know the write yet.
    const end = Date.now() + 120_000;
    let expected = await worker(asked);
    const { path, ...more } = asked;
    const found = await both.invoke(restEvent(asked.method, path, more));
    const here = {
      status: found.status,
      type: found.headers["content-type"],
      body: withoutIds(found.headers["content-type"], found.bytes),
    };
    while (expected.body !== here.body && Date.now() < end) {
      await sleep(100);
      expected = await worker(asked);
    }
    assert.deepEqual(here, expected, path);
  }
  const load = await both.invoke(restEvent("POST", "/graph/people/loader", { headers: json, body: "{}" }));
  assert.match(load.body, /long-lived worker/);
  // A function of one graph has it by its name too, and no other one.
  assert.equal((await askedOf(one, "/graph/default", "RETURN 1 AS one")).body, '{"results":[{"one":1}]}');
  assert.equal((await askedOf(one, "/graph/people", "RETURN 1 AS one")).status, 404);
  await cluster.admin([
    ...["drop-graph", "people", "--confirm", "people", "--objects", join(home, "cluster", "objects")],
    ...cluster.tableFlags(),
    ...cluster.logFlags(),
  ]);
  const gone = await until(both, "/graph/people", 404);
  assert.match(gone.body, /there is no graph.*people/);
  assert.equal((await askedOf(both, "", "RETURN 1 AS one")).body, '{"results":[{"one":1}]}');

  // Lambda freezes the process, and meanwhile the graph is dropped and made again: it sees nothing of the drop.
  await cluster.makeGraph("people", ["--partitions", "4", "--replication", "2"]);
  await until(both, "/graph/people", 200);
  await askedOf(both, "/graph/people", "CREATE (:Person {name: 'Ada'})-[:KNOWS]->(:Person {name: 'Bob'})");
  const labels = "MATCH (n) UNWIND labels(n) AS label RETURN DISTINCT label ORDER BY label";
  const known = await askedOf(both, "/graph/people", labels);
  assert.equal(known.body, '{"results":[{"label":"Person"}]}');
  both.child?.kill("SIGSTOP");
  await cluster.admin([
    ...["drop-graph", "people", "--confirm", "people", "--objects", join(home, "cluster", "objects")],
    ...cluster.tableFlags(),
    ...cluster.logFlags(),
  ]);
  await cluster.makeGraph("people", ["--partitions", "4", "--replication", "2"]);
  const order = {
    ...cypher("CREATE (:Order {number: 1})-[:ITEM]->(:Part)"),
    path: "/graph/people/openCypher",
  };
  for (const end = Date.now() + 120_000; (await worker(order)).status !== 200; await sleep(200))
    assert.ok(Date.now() < end, "the graph that was made again takes no write");
  both.child?.kill("SIGCONT");
  const next = await askedOf(both, "/graph/people", labels);
  assert.equal(next.body, '{"results":[{"label":"Order"},{"label":"Part"}]}');
  await both.stop();
});

test("says what is wrong with its variables", async () => {
  /** @type {[Record<string, string>, RegExp][]} */
  const wrong = [
    [{ TIDEGRAPH_QUERY_TIMEOUT_MS: "soon" }, /TIDEGRAPH_QUERY_TIMEOUT_MS is "soon"/],
    [{ TIDEGRAPH_GRAPH: "default,default" }, /TIDEGRAPH_GRAPH is "default,default".*each given once/],
    [{ TIDEGRAPH_GRAHP: "g" }, /TIDEGRAPH_GRAHP is not one of Tidegraph's/],
    [{ TIDEGRAPH_FLEET_TOKEN_FILE: "/nowhere" }, /\/nowhere/],
  ];
  for (const [variables, said] of wrong) {
    const ended = await started(variables);
    assert.equal(await ended.exit, 1);
    assert.match(ended.said(), said);
  }
});

test("says that the fleet cannot be reached, and reaches it later", async () => {
  const nowhere = await started({ TIDEGRAPH_DYNAMODB_ENDPOINT: `http://127.0.0.1:${await freePort()}` });
  const found = await nowhere.invoke(restEvent("GET", "/openCypher", { query: { query: "RETURN 1" } }));
  assert.equal(found.status, 503, found.body);
  assert.match(JSON.parse(found.body).detailedMessage, /the fleet cannot be reached/);
  await nowhere.stop();
  const stranger = await started({
    TIDEGRAPH_FLEET_TOKEN_FILE: "",
    TIDEGRAPH_FLEET_TOKEN: "0123456789abcdef",
  });
  const refused = await stranger.invoke(
    restEvent("GET", "/openCypher", { query: { query: "MATCH (n) RETURN count(n)" } }),
  );
  assert.equal(refused.status, 503, refused.body);
  await stranger.stop();
  const nobody = await started({ TIDEGRAPH_GRAPH: "nobody" });
  const unknown = await nobody.invoke(restEvent("GET", "/openCypher", { query: { query: "RETURN 1" } }));
  assert.equal(unknown.status, 503, unknown.body);
  assert.match(unknown.body, /nobody/);
  await nobody.stop();
});

let failed = 0;
try {
  console.log("starting Kafka, DynamoDB Local and the nodes; this takes half a minute");
  await cluster.start();
  one = await started();
  for (const [name, body] of tests) {
    try {
      await body();
      console.log(`ok      ${name}`);
    } catch (error) {
      failed += 1;
      console.error(`FAILED  ${name}\n${error instanceof Error ? error.stack : error}`);
    }
  }
  console.log(`${tests.length - failed} of ${tests.length} passed`);
} catch (error) {
  failed += 1;
  console.error(error instanceof Error ? error.stack : error);
}
for (const each of functions) await each.stop();
await cluster.stop();
if (failed === 0) rmSync(home, { recursive: true, force: true });
else console.error(`what the processes said is in ${home}`);
process.exit(failed === 0 ? 0 : 1);

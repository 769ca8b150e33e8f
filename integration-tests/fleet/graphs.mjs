/**
 * A part of `npm test -- --fleet`: two graphs in one fleet of real processes, which share nodes, brokers, the table of maps,
 * the object store and a worker. The second graph is made while the first is used; both are loaded and queried apart. A node
 * is killed and comes back for both. The second graph is dropped, by a command that is killed in the middle and repeated, and
 * made again with other partitions; a daemon that serves only this graph ends meanwhile. No request to the first graph may fail meanwhile.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { bulkLoad } from "../../scripts/lib/cluster/bulk-load.mjs";
import { Cluster } from "../../scripts/lib/cluster/cluster.mjs";
import { buildFleet } from "../../scripts/lib/programs.mjs";

const NODES = 3;
const PATIENCE_MS = 120_000;
/** Longest wait for an answer, so that a request that is never answered is told by its text. */
const ANSWER_MS = 60_000;
const PASSWORD = "a password of a test";

const { nodeBinary, workerBinary } = await buildFleet("dev");
const home = mkdtempSync(join(tmpdir(), "tidegraph-graphs-"));
const cluster = new Cluster({
  home: join(home, "cluster"),
  nodeBinary,
  workerBinary,
  ...{ nodes: NODES, rf: 2, partitions: 8, brokers: 1, port: 0 },
  graphs: ["orders", "people"],
  nodeFlags: ["--memory-budget-bytes", String(512 << 20), "--graph-share", "orders=3"],
  workerFlags: ["--load-from", home],
});
process.on("exit", () => cluster.processes.kill());
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.on(signal, () => process.exit(130));

/** @param {string} endpoint @param {string} query @param {string} [user] */
async function ask(endpoint, query, user) {
  const authorization = `Basic ${Buffer.from(`${user}:${PASSWORD}`).toString("base64")}`;
  const response = await fetch(`${endpoint}/openCypher`, {
    method: "POST",
    headers: user ? { authorization } : {},
    body: new URLSearchParams({ query }),
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  return { status: response.status, body: /** @type {any} */ (await response.json()) };
}

/** @param {string} endpoint @param {string} label */
async function count(endpoint, label) {
  const { status, body } = await ask(endpoint, `MATCH (n:${label}) RETURN count(n) AS n`);
  assert.equal(status, 200, JSON.stringify(body));
  return body.results[0].n;
}

/** Repeats a request until its status is the wanted one. @param {string} endpoint @param {number} wanted */
async function untilStatus(endpoint, wanted) {
  for (const end = Date.now() + PATIENCE_MS; ; await sleep(100)) {
    const answer = await ask(endpoint, "MATCH (n) RETURN count(n) AS n");
    if (answer.status === wanted) return answer;
    if (Date.now() > end)
      throw new Error(`${endpoint} does not answer ${wanted}, but ${JSON.stringify(answer)}`);
  }
}

/** Runs a command that has to fail, and returns its error. @param {readonly string[]} args */
async function refusal(args) {
  const result = await cluster.admin(args).then(
    (output) => `it succeeded: ${output}`,
    (/** @type {Error} */ error) => error.message,
  );
  assert.doesNotMatch(result, /^it succeeded/);
  return result;
}

const objects = join(home, "cluster", "objects");

/** The flags of a command that drops a graph. @param {string} name @param {string} [confirm] */
const dropping = (name, confirm = name) => [
  ...["drop-graph", name, "--confirm", confirm, "--objects", objects],
  ...cluster.tableFlags(),
  ...cluster.logFlags(),
];

/** What became of the requests to the first graph. */
const answered = { reads: 0, writes: 0 };
const failed = /** @type {string[]} */ ([]);
let stopping = false;

/** Reads and writes the first graph, by both of its paths. */
async function load() {
  for (let number = 0; !stopping; number += 1) {
    const endpoint = number % 2 ? cluster.endpoint : `${cluster.endpoint}/graph/orders`;
    const writes = number % 4 === 0;
    const query = writes ? "CREATE (:Made) RETURN 1 AS n" : "MATCH (b:Bulk) RETURN count(b) AS n";
    const answer = await ask(endpoint, query).catch((error) => ({ status: 0, body: String(error) }));
    if (answer.status !== 200) failed.push(`${endpoint} ${query}: ${JSON.stringify(answer)}`);
    else if (writes) answered.writes += 1;
    else if (answer.body.results[0].n === 400) answered.reads += 1;
    else failed.push(`${endpoint} ${query}: ${JSON.stringify(answer)}`);
  }
}

/** Waits until all replicas of both graphs serve on nodes that are up. */
async function served() {
  for (const end = Date.now() + PATIENCE_MS; ; await sleep(200)) {
    const maps = await Promise.all(
      ["orders", "people"].map(async (graph) =>
        JSON.parse(await cluster.admin(["map", ...cluster.mapFlags(graph)])),
      ),
    );
    const serve = maps.every(
      ({ nodes, partitions }) =>
        nodes.length === NODES &&
        nodes.every((/** @type {any} */ { state }) => state === "up") &&
        partitions.every((/** @type {any} */ { replicas }) =>
          replicas.every((/** @type {any} */ { state }) => state === "serving"),
        ),
    );
    if (serve) return;
    if (Date.now() > end) throw new Error(`not all replicas serve: ${JSON.stringify(maps)}`);
  }
}

try {
  await cluster.start();
  const { endpoint } = cluster;
  const people = `${endpoint}/graph/people`;

  // The second graph is one of the fleet, and not made yet. Others are none.
  const absent = await fetch(`${people}/status`);
  assert.deepEqual([absent.status, absent.headers.has("retry-after")], [503, true]);
  await bulkLoad(endpoint, join(home, "orders"), 400);
  for (const [name, status] of /** @type {const} */ ([
    ["nobody", 404],
    ["PEOPLE", 404],
    ["a%2Fb", 400],
    ["x".repeat(65), 400],
  ])) {
    const answer = await ask(`${endpoint}/graph/${name}`, "RETURN 1 AS n");
    assert.equal(answer.status, status, JSON.stringify(answer));
    assert.ok(answer.body.detailedMessage.includes(name), JSON.stringify(answer));
  }
  const init = (/** @type {string} */ name, /** @type {string[]} */ ...flags) => [
    ...[
      "init",
      ...cluster.mapFlags(name),
      ...cluster.logFlags(),
      "--log-replication",
      "1",
      "--log-in-sync",
      "1",
    ],
    ...flags,
  ];
  for (const wrong of ["a/b", "..", "größe", "x".repeat(65)])
    assert.ok((await refusal(init(wrong))).includes(wrong));

  // It is made while the first one is used, and loaded.
  const clients = [load(), load()];
  await cluster.makeGraph("people", ["--partitions", "4"]);
  await untilStatus(people, 200);
  await bulkLoad(people, join(home, "people"), 300);
  // The same once more changes nothing; another graph of the name is refused.
  await cluster.admin(init("people", "--partitions", "4"));
  assert.match(await refusal(init("people", "--partitions", "8")), /people/);
  const made = await ask(people, "CREATE (:Person {name: 'Ada'}) RETURN 1 AS n");
  assert.equal(made.status, 200, JSON.stringify(made));
  assert.deepEqual(
    [await count(endpoint, "Bulk"), await count(endpoint, "Person")],
    [400, 0],
    "the first graph",
  );
  assert.deepEqual(
    [await count(people, "Bulk"), await count(people, "Person")],
    [300, 1],
    "the second graph",
  );
  assert.equal(await count(people, "Made"), 0);
  const { payload } = /** @type {any} */ (await (await fetch(`${people}/loader`)).json());
  assert.equal(payload.loadIds.length, 1, JSON.stringify(payload));
  assert.ok(existsSync(join(objects, "graphs", "people", "jobs")), "its objects are in its own folder");
  const metrics = await (await fetch(`${endpoint}/metrics`)).text();
  for (const graph of ["orders", "people"])
    assert.match(metrics, new RegExp(`tidegraph_version\\{graph="${graph}"\\} [1-9]`));

  // Users have roles in one graph, or in all.
  const users = join(home, "users.json");
  for (const [name, ...roles] of [
    ["ada", "orders:admin", "people:read"],
    ["bob", "people:write"],
  ])
    execFileSync(
      workerBinary,
      ["user", "add", `${name}`, "--users", users, ...roles.flatMap((role) => ["--role", role])],
      { input: `${PASSWORD}\n` },
    );
  cluster.options.workerFlags = ["--users", users];
  const guarded = await cluster.startWorker("worker-users", 0);
  await untilStatus(`${guarded}/graph/people`, 401);
  for (const [user, graph, query, status] of /** @type {const} */ ([
    ["ada", "orders", "CREATE (:Tried)", 200],
    ["ada", "people", "MATCH (n:Person) RETURN n.name", 200],
    ["ada", "people", "CREATE (:Tried)", 403],
    ["bob", "people", "CREATE (:Tried)", 200],
    ["bob", "orders", "MATCH (n) RETURN count(n)", 403],
  ])) {
    const answer = await ask(`${guarded}/graph/${graph}`, query, user);
    assert.equal(answer.status, status, `${user} ${graph} ${query}: ${JSON.stringify(answer)}`);
  }

  // A node that is killed comes back for both graphs.
  cluster.processes.signal("node-0", "SIGKILL");
  await cluster.processes.end(["node-0"], 30_000);
  cluster.startNode(0);
  await cluster.processes.said("node-0", "listens on", PATIENCE_MS);
  await served();
  assert.equal(await count(people, "Bulk"), 300);

  // Wrong drops change nothing.
  assert.match(await refusal(dropping("people", "peple")), /peple/);
  assert.match(await refusal(dropping("nobody")), /nobody/);
  assert.match(await refusal(dropping("a/b")), /a\/b/);
  assert.equal(await count(people, "Person"), 1);

  // A daemon that serves only this graph ends with it.
  const alone = cluster.processes.start(
    "alone",
    nodeBinary,
    [
      ...[
        "serve",
        ...cluster.mapFlags("people"),
        ...cluster.logFlags(),
        "--node",
        "alone",
        "--zone",
        "zone-0",
      ],
      ...["--objects", objects, ...cluster.tokenFlags("--token-file"), ...cluster.tlsFlags],
    ],
    { TIDEGRAPH_LOG: "info" },
  );
  await cluster.processes.said("alone", "listens on", PATIENCE_MS);

  // A drop that is killed after its first step is gone on with. Nobody serves the graph meanwhile, nor can it be made.
  // It waits for seconds after its first step, so it is killed as soon as the map shows that step.
  cluster.processes.start("drop", nodeBinary, dropping("people"));
  const map = ["map", ...cluster.mapFlags("people")];
  while (
    await cluster.admin(map).then(
      () => true,
      () => false,
    )
  )
    await sleep(20);
  cluster.processes.signal("drop", "SIGKILL");
  const gone = await untilStatus(people, 404);
  assert.match(gone.body.detailedMessage, /people/);
  assert.match(await refusal(init("people", "--partitions", "4")), /being dropped/);
  assert.match(await refusal(map), /being dropped/);
  const dropped = JSON.parse(await cluster.admin(dropping("people")));
  assert.ok(dropped.dropped === "people" && dropped.objects > 0, JSON.stringify(dropped));
  assert.match(await refusal(dropping("people")), /there is no graph people/);
  for (const end = Date.now() + PATIENCE_MS; !alone.ended; await sleep(100))
    assert.ok(Date.now() < end, "a daemon goes on without its only graph");
  assert.equal(alone.child.exitCode, 1, "its unit starts it again");
  assert.match(readFileSync(alone.log, "utf8"), /its graph was dropped/);
  const rest = existsSync(join(objects, "graphs", "people"))
    ? readdirSync(join(objects, "graphs", "people"), { recursive: true, withFileTypes: true })
    : [];
  assert.deepEqual(
    rest.filter((entry) => entry.isFile()).map(({ name }) => name),
    [],
  );
  assert.ok(existsSync(join(objects, "jobs")), "the objects of the other graph stay");
  assert.equal((await ask(people, "RETURN 1 AS n")).status, 404);

  // The name is free: a graph of other partitions, without the data of the one before.
  await cluster.makeGraph("people", ["--partitions", "2"]);
  await untilStatus(people, 200);
  assert.deepEqual([await count(people, "Bulk"), await count(people, "Person")], [0, 0]);
  await bulkLoad(people, join(home, "people-2"), 200);
  assert.equal(await count(people, "Bulk"), 200);
  await served();

  stopping = true;
  await Promise.all(clients);
  assert.deepEqual(failed, []);
  assert.ok(answered.reads > 100 && answered.writes > 30, JSON.stringify(answered));
  assert.equal(await count(endpoint, "Made"), answered.writes);
  console.log(
    `two graphs in one fleet: ${answered.reads} reads and ${answered.writes} writes of the first were answered, none failed, while the second was made, dropped and made again`,
  );
} finally {
  stopping = true;
  await cluster.stop();
}
rmSync(home, { recursive: true, force: true });

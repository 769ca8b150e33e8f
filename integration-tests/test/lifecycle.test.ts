/** Starting, stopping, clients that disconnect, and disks that fail writes. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseAs } from "@tidegraph/contracts";
import { freePort } from "../../scripts/lib/cluster/processes.mjs";
import { cypher, cypherValue, post, refusal } from "../src/client.ts";
import { eventually, runBinary, Server } from "../src/server.ts";

/** A query whose time is proportional to its parameter, and which needs hardly any memory. */
const COUNTING =
  "UNWIND range(1, $n) AS x UNWIND range(1, 1000) AS y WITH x, y WHERE (x + y) % 2 = 0 RETURN count(*) AS n";

/** Returns the list of running queries. */
async function running(server: Server) {
  const answer = await fetch(`${server.endpoint}/openCypher/status`);
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return parseAs("QueryList", JSON.parse(text)).queries;
}

/** Starts COUNTING and returns while it runs; increases the rounds until the server lists it. */
async function startCounting(server: Server) {
  for (let n = 256; ; n *= 2) {
    let ended = false;
    const counting = cypher(server, COUNTING, { n }).finally(() => {
      ended = true;
    });
    while (!ended) if ((await running(server)).length > 0) return { n, counting };
    await counting;
  }
}

test("a client that goes away stops its query", async (t) => {
  // A query stays on the list and holds its slot until its thread has finished; the next query needs the slot.
  const server = await Server.start(t, { args: ["--concurrent-queries", "1"] });
  const leaving = new AbortController();
  const asked = fetch(`${server.endpoint}/openCypher`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query: COUNTING, parameters: { n: 1_000_000 }, queryId: "left-behind" }),
    signal: leaving.signal,
  });
  asked.catch(() => {});
  const listed = async () => (await running(server)).some((query) => query.queryId === "left-behind");
  await eventually("the query is on the list", listed);
  leaving.abort();
  await assert.rejects(asked, /abort/i);
  await eventually("the query is off the list", async () => !(await listed()));
  assert.equal(await cypherValue(server, "RETURN 1"), 1);
});

test("long queries hold up nobody", async (t) => {
  const server = await Server.start(t);
  // A query with a cached plan is tried on the threads that serve sockets.
  assert.deepEqual(await cypher(server, COUNTING, { n: 2 }), [{ n: 1_000 }]);
  assert.deepEqual(await cypher(server, COUNTING, { n: 2 }), [{ n: 1_000 }]);
  const leaving = new AbortController();
  const asked = Array.from({ length: 8 }, () =>
    fetch(`${server.endpoint}/openCypher`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query: COUNTING, parameters: { n: 1_000_000 } }),
      signal: leaving.signal,
    }).catch((error: Error) => error.name),
  );
  await eventually("all are on the list", async () => (await running(server)).length === asked.length);
  for (let n = 0; n < 20; n++) assert.equal(await cypherValue(server, "RETURN $n", { n }), n);
  assert.equal((await running(server)).length, asked.length, "they still run");
  leaving.abort();
  assert.deepEqual(new Set(await Promise.all(asked)), new Set(["AbortError"]));
  await eventually("the list is empty", async () => (await running(server)).length === 0);
});

test("SIGTERM finishes what runs", async (t) => {
  const server = await Server.start(t, { args: ["--grace-ms", "100000"] });
  const { n, counting } = await startCounting(server);
  const [rows, exit] = await Promise.all([counting, server.stop("SIGTERM")]);
  assert.deepEqual(rows, [{ n: n * 500 }]);
  assert.deepEqual(exit, { code: 0, signal: null });
  await assert.rejects(fetch(`${server.endpoint}/status`));
});

test("what was written is there after a restart", async (t) => {
  const server = await Server.start(t);
  await cypher(server, "UNWIND range(1, 100) AS i CREATE (:Kept {i: i})-[:NEXT {i: i}]->(:Other)");
  const id = await cypherValue(server, "MATCH (k:Kept {i: 42}) RETURN id(k)");
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
  await server.start();
  assert.equal(await cypherValue(server, "MATCH (:Kept)-[r:NEXT]->(:Other) RETURN sum(r.i)"), 5_050);
  assert.equal(await cypherValue(server, "MATCH (k:Kept {i: 42}) RETURN id(k)"), id);
  await cypher(server, "CREATE (:Kept {i: 101})");
  assert.equal(await cypherValue(server, "MATCH (k:Kept) RETURN count(k)"), 101);
});

test("a data directory that cannot be made is a clear error", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tidegraph-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "a-file");
  await writeFile(file, "in the way");
  const data = join(file, "data");
  const ended = await runBinary(["serve", "--port", String(await freePort()), "--data", data]);
  assert.notEqual(ended.code, 0);
  assert.equal(ended.signal, null);
  assert.match(ended.stderr, /a-file/);
  assert.doesNotMatch(ended.stderr, /panicked/);
});

test("one data directory serves one process", async (t) => {
  const server = await Server.start(t);
  const ended = await runBinary(["serve", "--port", String(await freePort()), "--data", server.data]);
  assert.notEqual(ended.code, 0);
  assert.match(ended.stderr, /use|lock/i);
  assert.equal(await cypherValue(server, "RETURN 1"), 1);
});

test("a port that is taken is a clear error", async (t) => {
  const server = await Server.start(t);
  const ended = await runBinary([
    "serve",
    "--port",
    String(server.port),
    "--data",
    join(server.home, "other"),
  ]);
  assert.notEqual(ended.code, 0);
  assert.match(ended.stderr, new RegExp(String(server.port)));
});

test("a full disk stops writes with a clear error and keeps what was committed", async (t) => {
  // A limit on the file size stands in for a full disk: writes beyond it fail in the same place.
  const server = await Server.start(t, { prelude: "trap '' XFSZ; ulimit -f 1024" });
  const filling = "x".repeat(20_000);
  let written = 0;
  let refused: Response | undefined;
  while (refused === undefined && written < 1_000) {
    const answer = await post(server, "/openCypher", {
      query: "CREATE (:Full {i: $i, text: $text})",
      parameters: { i: written, text: filling },
    });
    if (answer.status === 200) {
      await answer.text();
      written += 1;
    } else refused = answer;
  }
  assert.ok(refused !== undefined && written > 0, `written before the limit: ${written}`);
  await refusal(refused, "ServiceUnavailableException");
  const count = "MATCH (n:Full) RETURN count(n)";
  assert.equal(await cypherValue(server, count), written, "reads go on");
  const again = { query: "CREATE (:Full {text: $text})", parameters: { text: filling } };
  await refusal(await post(server, "/openCypher", again), "ServiceUnavailableException");
  await server.kill();
  await server.start();
  assert.equal(await cypherValue(server, count), written, "after a restart with room");
  await cypher(server, "CREATE (:Full)");
});

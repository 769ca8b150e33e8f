/** Bulk loads: both dialects, compression, refused rows, and everything that the loader API promises. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { parseAs } from "@tidegraph/contracts";
import {
  cypher,
  cypherValue,
  finishedLoad,
  gremlin,
  load,
  loadStatus,
  post,
  refusal,
  startLoad,
} from "../src/client.ts";
import { dataPath, dataUri, LIBRARY, manyVertices, writeSource } from "../src/data.ts";
import { eventually, Server } from "../src/server.ts";

async function sizes(server: Server): Promise<{ vertices: unknown; edges: unknown }> {
  return {
    vertices: await cypherValue(server, "MATCH (n) RETURN count(n)"),
    edges: await cypherValue(server, "MATCH ()-[r]->() RETURN count(r)"),
  };
}

const LIBRARIES = [
  { format: "csv", folder: "gremlin" },
  { format: "opencypher", folder: "opencypher" },
] as const;

for (const { format, folder } of LIBRARIES) {
  test(`a folder of ${format} files`, async (t) => {
    const server = await Server.start(t);
    const status = await load(server, { source: dataUri(`${folder}/`), format });
    assert.equal(status.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(status));
    assert.deepEqual(status.feedCount, [{ LOAD_COMPLETED: 2 }]);
    assert.equal(status.overallStatus.parsingErrors, 0);
    assert.equal(status.overallStatus.insertErrors, 0);
    assert.ok(status.overallStatus.totalRecords >= LIBRARY.vertices + LIBRARY.edges, JSON.stringify(status));
    assert.deepEqual(await sizes(server), LIBRARY);
    const [engine] = await cypher(
      server,
      "MATCH (b) WHERE id(b) = 'b7' RETURN b.name AS name, b.rating AS rating",
    );
    assert.deepEqual(engine, { name: 'The "Quiet" Engine', rating: 4.5 });
    assert.equal(await cypherValue(server, "MATCH ()-[r]->() WHERE id(r) = 'w1' RETURN r.year"), 1978);
    assert.deepEqual((await gremlin(server, "g.V('a3').label()")).length, 1);

    // Loading the same files again changes nothing, because the ids are the same.
    await load(server, { source: dataUri(`${folder}/`), format, mode: "NEW" });
    assert.deepEqual(await sizes(server), LIBRARY);
  });
}

test("compressed files", async (t) => {
  const server = await Server.start(t);
  const plain = await readFile(dataPath("gremlin/vertices.csv"));
  const good = await writeSource(server.home, "in/vertices.csv.gz", gzipSync(plain));
  const status = await load(server, { source: good, format: "csv" });
  assert.equal(status.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(status));
  assert.equal(await cypherValue(server, "MATCH (n) RETURN count(n)"), LIBRARY.vertices);

  const whole = gzipSync(manyVertices("cut", 5_000));
  const cut = await writeSource(server.home, "in/cut.csv.gz", whole.subarray(0, whole.length - 200));
  const failed = await load(server, { source: cut, format: "csv" });
  assert.notEqual(failed.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(failed));
  assert.equal(
    await cypherValue(server, "MATCH (n:Row) RETURN count(n)"),
    0,
    "a truncated file leaves nothing",
  );
});

test("bad rows", async (t) => {
  const server = await Server.start(t);
  const source = dataUri("bad/rows.csv");

  await t.test("with failOnError nothing of the load is seen", async () => {
    const status = await load(server, { source, format: "csv", failOnError: "TRUE" });
    assert.notEqual(status.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(status));
    assert.equal(await cypherValue(server, "MATCH (n) RETURN count(n)"), 0);
  });

  await t.test("without it the good rows are loaded and the bad ones reported", async () => {
    const status = await load(server, { source, format: "csv", failOnError: "FALSE", mode: "NEW" });
    const names = await cypher(server, "MATCH (n) RETURN n.name AS name ORDER BY name");
    assert.deepEqual(
      names.map((row) => row.name),
      ["Good One", "Good Three", "Good Two"],
    );
    const logs = status.errors?.errorLogs ?? [];
    assert.deepEqual(logs.map((log) => log.recordNum).sort(), [3, 4, 6], JSON.stringify(logs));
    const at = (line: number) => logs.find((log) => log.recordNum === line);
    for (const log of logs) assert.match(log.fileName, /rows\.csv$/);
    assert.equal(at(3)?.value, "many");
    assert.match(at(3)?.column ?? "", /^pages/);
    assert.match(at(3)?.errorMessage ?? "", /many/);
    assert.equal(at(4)?.value, "2001-02-31");
    assert.match(at(4)?.column ?? "", /^printed/);
    assert.match(at(6)?.errorMessage ?? "", /~id/);
  });

  await t.test("errors come in pages", async () => {
    const id = await startLoad(server, { source, format: "csv", failOnError: "FALSE", mode: "NEW" });
    await finishedLoad(server, id);
    const first = await loadStatus(server, id, "?errors=true&page=1&errorsPerPage=2");
    const second = await loadStatus(server, id, "?errors=true&page=2&errorsPerPage=2");
    assert.equal(first.errors?.errorLogs.length, 2);
    assert.equal(second.errors?.errorLogs.length, 1);
    assert.equal((await loadStatus(server, id, "")).errors?.errorLogs?.length ?? 0, 0);
  });
});

test("files that are wrong as a whole", async (t) => {
  const server = await Server.start(t);
  const cases: [string, RegExp][] = [
    ["bad/missing-id.csv", /~id/],
    ["bad/duplicate-header.csv", /name/],
    ["bad/not-utf8.csv", /UTF-8/i],
  ];
  for (const [file, expected] of cases) {
    const status = await load(server, { source: dataUri(file), format: "csv" });
    assert.notEqual(status.overallStatus.status, "LOAD_COMPLETED", file);
    assert.match(JSON.stringify(status.errors?.errorLogs), expected, file);
  }
  const huge = `~id,~label,text:String\nh1,Row,${"x".repeat(100 << 20)}\n`;
  const source = await writeSource(server.home, "in/huge.csv", huge);
  const status = await load(server, { source, format: "csv" });
  assert.notEqual(status.overallStatus.status, "LOAD_COMPLETED", "a field of 100 MB");
  assert.equal(await cypherValue(server, "MATCH (n) RETURN count(n)"), 0);
});

test("an edge to a vertex that does not exist is refused", async (t) => {
  const server = await Server.start(t);
  const status = await load(server, {
    source: dataUri("bad/dangling-edges.csv"),
    format: "csv",
    failOnError: "FALSE",
  });
  const [log] = status.errors?.errorLogs ?? [];
  assert.equal(log?.errorCode, "FROM_OR_TO_VERTEX_ARE_MISSING", JSON.stringify(status));
  assert.match(log?.errorMessage ?? "", /nobody1|nobody2/);
  assert.deepEqual(await sizes(server), { vertices: 0, edges: 0 });
});

test("a load is seen as a whole or not at all, while it goes on", async (t) => {
  const server = await Server.start(t);
  const rows = 60_000;
  const source = await writeSource(server.home, "in/rows.csv", manyVertices("r", rows));
  const id = await startLoad(server, { source, format: "csv" });
  const seen = new Set<unknown>();
  await eventually("the end of the load", async () => {
    seen.add(await cypherValue(server, "MATCH (n:Row) RETURN count(n)"));
    return (await loadStatus(server, id)).overallStatus.status === "LOAD_COMPLETED";
  });
  seen.add(await cypherValue(server, "MATCH (n:Row) RETURN count(n)"));
  for (const count of seen) assert.ok(count === 0 || count === rows, `half a load was seen: ${count}`);
  assert.ok(seen.has(rows));
});

test("one load at a time, the others wait or are refused", async (t) => {
  const server = await Server.start(t);
  const big = await writeSource(server.home, "in/big.csv", manyVertices("big", 400_000));
  const small = await writeSource(server.home, "in/small.csv", manyVertices("small", 10));
  const other = await writeSource(server.home, "in/other.csv", manyVertices("other", 10));

  const running = await startLoad(server, { source: big, format: "csv" });
  const refused = await post(server, "/loader", { source: small, format: "csv", queueRequest: "FALSE" });
  await refusal(refused, "MaxConcurrentLoadLimitBreachedException");
  const waiting = await startLoad(server, { source: small, format: "csv", queueRequest: "TRUE" });
  const dependent = await startLoad(server, {
    source: other,
    format: "csv",
    queueRequest: true,
    dependencies: [running],
  });
  assert.equal((await loadStatus(server, waiting)).overallStatus.status, "LOAD_IN_QUEUE");

  const list = await fetch(`${server.endpoint}/loader`);
  const { loadIds } = parseAs("LoaderList", await list.json()).payload;
  for (const id of [running, waiting, dependent]) assert.ok(loadIds.includes(id));

  const cancelled = await fetch(`${server.endpoint}/loader/${running}`, { method: "DELETE" });
  assert.equal(cancelled.status, 200, await cancelled.clone().text());
  parseAs("LoaderCancelled", await cancelled.json());
  assert.equal((await finishedLoad(server, running)).overallStatus.status, "LOAD_CANCELLED_BY_USER");
  assert.equal((await finishedLoad(server, waiting)).overallStatus.status, "LOAD_COMPLETED");
  const after = await finishedLoad(server, dependent);
  assert.equal(after.overallStatus.status, "LOAD_FAILED_BECAUSE_DEPENDENCY_NOT_SATISFIED");
  assert.equal(
    await cypherValue(server, "MATCH (n:Row) RETURN count(n)"),
    10,
    "only the load that waited is seen",
  );
});

test("RESUME goes on with a load that failed", async (t) => {
  const server = await Server.start(t);
  const folder = "in/resume";
  const bad = "~id,~label,number:Int\nx1,Row,one\n";
  await writeSource(server.home, `${folder}/a.csv`, manyVertices("a", 100));
  const file = await writeSource(server.home, `${folder}/b.csv`, bad);
  const source = file.replace(/b\.csv$/, "");
  const failed = await load(server, { source, format: "csv", mode: "AUTO" });
  assert.notEqual(failed.overallStatus.status, "LOAD_COMPLETED");
  assert.equal(await cypherValue(server, "MATCH (n:Row) RETURN count(n)"), 0);
  await writeSource(server.home, `${folder}/b.csv`, bad.replace("one", "1"));
  const resumed = await load(server, { source, format: "csv", mode: "RESUME" });
  assert.equal(resumed.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(resumed));
  assert.equal(await cypherValue(server, "MATCH (n:Row) RETURN count(n)"), 101);
});

test("the status of a load can be asked for in both ways", async (t) => {
  const server = await Server.start(t);
  const id = await startLoad(server, { source: dataUri("gremlin/vertices.csv"), format: "csv" });
  await finishedLoad(server, id);
  const byPath = await (await fetch(`${server.endpoint}/loader/${id}`)).json();
  const byQuery = await (await fetch(`${server.endpoint}/loader?loadId=${id}`)).json();
  assert.deepEqual(byQuery, byPath);
});

test("loads read nothing outside of what the service was allowed", async (t) => {
  const server = await Server.start(t);
  const home = await mkdtemp(join(tmpdir(), "tidegraph-test-"));
  t.after(() => rm(home, { recursive: true, force: true }));
  await writeSource(home, "secret.csv", "~id\nsecret\n");
  const inside = fileURLToPath(await writeSource(server.home, "in/a.csv", "~id\na\n"));
  await symlink(join(home, "secret.csv"), join(dirname(inside), "link.csv"));
  await symlink(home, join(dirname(inside), "folder"));
  const ask = (source: string, more = {}) => post(server, "/loader", { source, format: "csv", ...more });

  for (const source of [
    "file:///etc/passwd",
    "file:///proc/self/environ",
    "/etc/",
    `file://${home}/`,
    "s3://bucket/x",
  ]) {
    assert.match(await refusal(await ask(source), "AccessDeniedException"), /--load-from/, source);
  }
  const folder = `file://${dirname(inside)}`;
  for (const path of [
    "/../../secret.csv",
    "/link.csv",
    "/folder/secret.csv",
    "/folder/",
    "/typo.csv",
    "-typo/",
  ]) {
    await refusal(await ask(`${folder}${path}`), "BadRequestException");
  }
  const linked = await load(server, { source: `${folder}/`, format: "csv" });
  assert.equal(linked.overallStatus.status, "LOAD_FAILED", JSON.stringify(linked));
  assert.match(JSON.stringify(linked), /is a link/);
  assert.equal(await cypherValue(server, "MATCH (n) RETURN count(n)"), 0);
});

test("a region or a bucket is never a part of another address", async (t) => {
  const server = await Server.start(t, { loadFrom: ["s3://tidegraph-sources"] });
  const ask = (source: string, region: string) => post(server, "/loader", { source, region, format: "csv" });
  for (const region of ["@127.0.0.1:8390/", "127.0.0.1:8390/?"]) {
    const said = await refusal(await ask("s3://tidegraph-sources/x", region), "InvalidParameterException");
    assert.ok(said.includes(region), said);
  }
  await refusal(await ask("s3://tidegraph-sources@127.0.0.1/x", "eu-central-1"), "AccessDeniedException");
});

test("a load of a folder without end is cancelled, and the next one runs", async (t) => {
  const server = await Server.start(t, { loadFrom: ["/sys", dataPath("")] });
  const endless = await post(server, "/loader", { source: "file:///sys/", format: "csv" });
  const { loadId } = parseAs("LoaderStarted", await endless.json()).payload;
  await fetch(`${server.endpoint}/loader/${loadId}`, { method: "DELETE" });
  assert.notEqual((await finishedLoad(server, loadId)).overallStatus.status, "LOAD_COMPLETED");
  const next = await load(server, { source: dataUri("gremlin/"), format: "csv", queueRequest: true });
  assert.equal(next.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(next));
  assert.equal((await server.stop()).code, 0);
});

test("AUTO loads a file again that has changed, and says what it skipped", async (t) => {
  const server = await Server.start(t);
  const file = await writeSource(server.home, "in/auto/a.csv", manyVertices("a", 10));
  await writeSource(server.home, "in/auto/b.csv", manyVertices("b", 10));
  const source = file.replace(/a\.csv$/, "");
  const auto = () => load(server, { source, format: "csv", mode: "AUTO" });
  await auto();
  await writeSource(server.home, "in/auto/a.csv", manyVertices("a", 15));
  const again = await auto();
  assert.equal(again.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(again));
  assert.equal(await cypherValue(server, "MATCH (n:Row) RETURN count(n)"), 25);
  assert.equal(again.overallStatus.tidegraph?.skippedFiles, 1, JSON.stringify(again));
  assert.match(again.overallStatus.tidegraph?.skipped?.[0] ?? "", /b\.csv$/);
});

test("a number that does not fit, and rows that end with a carriage return, are told by their place", async (t) => {
  const server = await Server.start(t);
  const rows = "~id,~label,n:Double\ra,Row,1\rb,Row,1e400\r";
  const source = await writeSource(server.home, "in/cr.csv", rows);
  const status = await load(server, { source, format: "csv", failOnError: "FALSE" });
  const [log] = status.errors?.errorLogs ?? [];
  assert.deepEqual([log?.recordNum, log?.value], [3, "1e400"], JSON.stringify(status));
  assert.match(log?.errorMessage ?? "", /out of the range of double/);
  assert.equal(await cypherValue(server, "MATCH (n:Row) RETURN count(n)"), 1);
});

test("a query reads the files that loads may read", async (t) => {
  const server = await Server.start(t);
  const lines = Array.from({ length: 2_500 }, (_, number) => `${number},"row ${number}"\r\n`);
  const url = await writeSource(server.home, "in/rows.csv", `number,text\r\n${lines.join("")}`);
  const rows = "LOAD CSV WITH HEADERS FROM $url AS row";
  const text = `${rows} WITH row WHERE row.number = '2499' RETURN row.text + ' in ' + linenumber()`;
  assert.equal(await cypherValue(server, text, { url }), "row 2499 in 2501");
  await cypher(server, `${rows} CALL (row) { CREATE (:Row {n: toInteger(row.number)}) } IN TRANSACTIONS`, {
    url,
  });
  assert.equal(await cypherValue(server, "MATCH (n:Row) RETURN sum(n.n)"), (2_499 * 2_500) / 2);

  const ask = (address: string) =>
    post(server, "/openCypher", { query: `${rows} RETURN row`, parameters: { url: address } });
  assert.match(await refusal(await ask("file:///etc/passwd"), "AccessDeniedException"), /--load-from/);
  for (const address of [`${url}x`, dirname(url), "http://127.0.0.1/rows.csv"]) {
    const message = await refusal(await ask(address), "BadRequestException");
    assert.ok(message.includes(`LOAD CSV: source ${address}: `), message);
  }
  const wrong = await writeSource(server.home, "in/wrong.csv", 'a\n"b\n');
  const message = await refusal(await ask(wrong), "BadRequestException");
  assert.match(message, /wrong\.csv, line 2: the file ends inside a quoted field/);
});

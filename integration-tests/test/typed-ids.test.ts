/** A graph whose ids have types and whose properties are single: drivers, HTTP, openCypher, loads, changes, restarts. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { cypher, cypherValue, gremlin, load, post } from "../src/client.ts";
import { writeSource } from "../src/data.ts";
import { shared } from "../src/fleet.ts";
import { python } from "../src/python.ts";
import { Server } from "../src/server.ts";

const SETTINGS = { graph: ["--ids", "typed", "--default-cardinality", "single"], args: ["--streams"] };
const UUID = "5b30bd14-8ae7-4b5d-9f7a-0123456789ab";

interface Own {
  readonly ids: string;
  readonly defaultCardinality: string;
}

async function settings(server: Server): Promise<Own> {
  const answer = await fetch(`${server.endpoint}/status`);
  const { ids, defaultCardinality } = ((await answer.json()) as { tidegraph: Own }).tidegraph;
  return { ids, defaultCardinality };
}

test("TinkerPop's driver for Python gets ids with their types", async (t) => {
  const server = await Server.start(t, SETTINGS);
  const program = fileURLToPath(new URL("../clients/gremlin_typed_ids.py", import.meta.url));
  const done = spawnSync(python(), [program, `127.0.0.1:${server.port}`], { encoding: "utf8" });
  assert.equal(done.status, 0, `${done.stdout}${done.stderr}`);
});

test("ids over HTTP, in openCypher, in loads and in changes", async (t) => {
  const server = await Server.start(t, SETTINGS);
  const written = `g.addV('t').property(T.id, 1).addV('t').property(T.id, '1').addV('t').property(T.id, UUID('${UUID}'))`;
  await gremlin(server, written);
  const text = await (await post(server, "/gremlin", { gremlin: "g.V(1)" })).text();
  assert.match(text, /"id":\{"@type":"g:Int32","@value":1\}/);
  const plain = await fetch(`${server.endpoint}/gremlin`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/vnd.gremlin-v3.0+json;types=false",
    },
    body: JSON.stringify({ gremlin: "g.V(1, '1').id()" }),
  });
  const { result } = (await plain.json()) as { result: { data: unknown[] } };
  assert.deepEqual(result.data, [1, "1"]);

  // openCypher sees the text of ids: a string that looks like another type has a mark.
  const rows = await cypher(server, "MATCH (n) RETURN id(n) AS id, elementId(n) AS e ORDER BY id");
  assert.deepEqual(
    rows.map((row) => row.id),
    ["1", UUID, "string:1"],
  );
  assert.deepEqual(
    rows.map((row) => row.e),
    ["1", UUID, "string:1"],
  );
  assert.equal(await cypherValue(server, "MATCH (n) WHERE id(n) = 'string:1' RETURN count(n)"), 1);
  await cypher(server, "CREATE (:t {`~id`: '5'})");
  assert.deepEqual((await gremlin(server, "g.V(5).id()")).length, 1);

  // The stream begins behind the newest load.
  const stream = await fetch(`${server.endpoint}/propertygraph/stream?iteratorType=TRIM_HORIZON&limit=100`);
  const { records } = (await stream.json()) as { records: { data: { id: string } }[] };
  assert.deepEqual(new Set(records.map((record) => record.data.id)).has("string:1"), true);

  // Files have the text of ids, too.
  const files = join(server.home, "files");
  await writeSource(files, "vertices.csv", "~id,~label,n:Int\n10,t,1\nstring:10,t,2\nann,t,3\n");
  await writeSource(files, "edges.csv", "~id,~from,~to,~label\n20,10,string:10,e\n");
  const status = await load(server, { source: `file://${files}/`, format: "csv" });
  assert.equal(status.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(status));
  assert.equal((await gremlin(server, "g.V(10).out('e').hasId('10')")).length, 1);
  assert.equal((await gremlin(server, "g.E(20).outV().hasId(10)")).length, 1);
  assert.equal((await gremlin(server, "g.V('ann')")).length, 1);
});

test("a graph keeps its settings and refuses others", async (t) => {
  const server = await Server.start(t, SETTINGS);
  await gremlin(server, "g.addV('t').property(T.id, 1)");
  assert.deepEqual(await settings(server), { ids: "typed", defaultCardinality: "single" });
  await server.stop();
  // Without flags, the graph decides.
  await server.start();
  assert.deepEqual(await settings(server), { ids: "typed", defaultCardinality: "single" });
  assert.equal((await gremlin(server, "g.V(1)")).length, 1);
  assert.equal((await gremlin(server, "g.V('1')")).length, 0);
  if (shared() !== undefined) return;
  await server.stop();
  const refusal = /the graph was made with ids typed and cannot be opened with strings/;
  await assert.rejects(server.start({ args: ["--ids", "strings"] }), refusal);
  const other = /made with the default cardinality single and cannot be opened with set/;
  await assert.rejects(server.start({ args: ["--default-cardinality", "set"] }), other);
});

test("a graph without settings is as Neptune", async (t) => {
  const server = await Server.start(t);
  assert.deepEqual(await settings(server), { ids: "strings", defaultCardinality: "set" });
  await gremlin(server, "g.addV('t').property(T.id, 1).property('k', 1).property('k', 2)");
  assert.deepEqual((await gremlin(server, "g.V('1').values('k')")).length, 2);
});

/**
 * The requests that graph-explorer's proxy sends, with the queries of its templates. The application itself is in no
 * registry, so its requests are written down here.
 */
import assert from "node:assert/strict";

const [plain = ""] = process.argv.slice(2);
const works = [];

/** @param {string} gremlin */
async function traverse(gremlin) {
  const answer = await fetch(`${plain}/gremlin`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/vnd.gremlin-v3.0+json" },
    body: JSON.stringify({ gremlin, queryId: crypto.randomUUID() }),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, `${gremlin}\n${text}`);
  return JSON.parse(text).result.data["@value"];
}

/** @param {string} query */
async function ask(query) {
  const answer = await fetch(`${plain}/openCypher`, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
    body: new URLSearchParams({ query }),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, `${query}\n${text}`);
  return JSON.parse(text).results;
}

/** @param {string} name @param {() => Promise<void>} run */
async function step(name, run) {
  await run();
  works.push(name);
}

await step("summary", async () => {
  const answer = await fetch(`${plain}/pg/statistics/summary?mode=basic`);
  const { payload } = await answer.json();
  assert.ok(payload.graphSummary.nodeLabels.includes("Book"), JSON.stringify(payload));
});

await step("schema in Gremlin", async () => {
  await traverse("g.V().groupCount().by(label)");
  await traverse("g.E().groupCount().by(label)");
  const [found] = await traverse(
    'g.V().union(__.hasLabel("Book").limit(1),__.hasLabel("Author").limit(1))' +
      '.fold().project("Book","Author").by(unfold().hasLabel("Book")).by(unfold().hasLabel("Author"))',
  );
  assert.equal(found["@type"], "g:Map");
});

await step("connections of edges in Gremlin", async () => {
  const [scanned] = await traverse(
    'g.E().hasLabel("WROTE").groupCount().by(project("e", "s", "t")' +
      ".by(label()).by(outV().label().fold()).by(inV().label().fold()))",
  );
  assert.ok(scanned["@value"].length >= 2, JSON.stringify(scanned));
  const [sampled] = await traverse(
    'g.V().limit(1).union(V().outE("WROTE").limit(10)).group().by(label())' +
      '.by(project("s", "t").by(outV().label().fold()).by(inV().label().fold()).groupCount())',
  );
  assert.equal(sampled["@value"][0], "WROTE", JSON.stringify(sampled));
});

await step("search in Gremlin", async () => {
  const found = await traverse(
    'g.V().hasLabel("Book").or(has(id,containing("Ebb")),has("name",containing("Ebb"))).range(0,10)',
  );
  assert.deepEqual(
    found.map((/** @type {any} */ vertex) => vertex["@value"].id),
    ["b8"],
  );
});

await step("neighbours in Gremlin", async () => {
  const [neighbour] = await traverse(
    'g.V("a1").as("start").both().hasLabel("Book").and(has("pages",gt(10)))' +
      '.filter(__.not(__.hasId("b2"))).dedup().range(0, 10).as("neighbor").project("vertex", "edges").by()' +
      '.by(__.select("start").bothE().where(otherV().where(eq("neighbor"))).dedup().fold())',
  );
  assert.equal(neighbour["@value"][0], "vertex", JSON.stringify(neighbour));
  const [counts] = await traverse(
    'g.V("a1","a2").group().by(id).by(both().dedup().group().by(label).by(count()))',
  );
  assert.equal(counts["@value"].length, 4, JSON.stringify(counts));
});

await step("details in Gremlin", async () => {
  assert.equal((await traverse('g.V("b1","b2")')).length, 2);
  const [edge] = await traverse('g.E("w1")');
  assert.equal(edge["@type"], "g:Edge");
});

await step("schema in openCypher", async () => {
  assert.ok((await ask("MATCH (v) RETURN labels(v) AS label, count(v) AS count")).length > 1);
  assert.ok((await ask("MATCH ()-[e]->() RETURN type(e) AS label, count(e) AS count")).length > 1);
  const [object] = await ask("MATCH (v:`Book`) RETURN v AS object LIMIT 1");
  assert.equal(object.object["~entityType"], "node");
  const connections = await ask(
    "MATCH (s)-[e:`WROTE`]->(t) WITH labels(s) AS sourceLabels, labels(t) AS targetLabels LIMIT 1000 " +
      "RETURN DISTINCT sourceLabels, targetLabels",
  );
  assert.ok(connections.length >= 1);
});

await step("search in openCypher", async () => {
  const found = await ask(
    'MATCH (v:`Book`) WHERE (toString(id(v)) CONTAINS "Ebb" OR v.name CONTAINS "Ebb") RETURN v AS object LIMIT 10',
  );
  assert.deepEqual(
    found.map((/** @type {any} */ row) => row.object["~id"]),
    ["b8"],
  );
});

await step("neighbours in openCypher", async () => {
  const [row] = await ask(
    'MATCH (v)-[e]-(tgt) WHERE ID(v) = "a1" AND NOT ID(tgt) IN ["b2"] WITH DISTINCT v, tgt ' +
      "ORDER BY toInteger(ID(tgt)) LIMIT 10 MATCH (v)-[e]-(tgt) " +
      "RETURN collect(DISTINCT tgt) AS vObjects, collect(e) AS eObjects",
  );
  assert.ok(row.vObjects.length > 0 && row.eObjects.length >= row.vObjects.length, JSON.stringify(row));
  const counts = await ask(
    'MATCH (source)--(neighbor) WHERE id(source) IN ["a1","a2"] WITH DISTINCT source, neighbor ' +
      "WITH id(source) AS id, labels(neighbor) AS neighborLabels, count(labels(neighbor)) AS neighborCount " +
      "RETURN id, collect({ label: neighborLabels, count: neighborCount }) AS counts",
  );
  assert.deepEqual(counts.map((/** @type {any} */ { id }) => id).sort(), ["a1", "a2"]);
});

await step("cancel", async () => {
  const answer = await fetch(`${plain}/gremlin/status?cancelQuery&queryId=${crypto.randomUUID()}`);
  assert.ok(answer.status < 500, String(answer.status));
});

console.log(
  JSON.stringify({ client: "graph-explorer's requests", version: "November 2026", works, refused: [] }),
);

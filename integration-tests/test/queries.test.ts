/** Both languages on the same data, through every form of request. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Schemas } from "@tidegraph/contracts";
import { cypher, cypherValue, gremlin, load, post, resultsOf, rowsOf } from "../src/client.ts";
import { dataUri, LIBRARY } from "../src/data.ts";
import { Server } from "../src/server.ts";

async function library(t: TestContext): Promise<Server> {
  const server = await Server.start(t);
  const status = await load(server, { source: dataUri("gremlin/"), format: "csv" });
  assert.equal(status.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(status));
  return server;
}

test("queries on the library", async (t) => {
  const server = await library(t);
  const { endpoint } = server;

  await t.test("the two languages agree on the same questions", async () => {
    const questions: [string, string, string, unknown[]][] = [
      ["vertices", "MATCH (n) RETURN count(n) AS x", "g.V().count()", [LIBRARY.vertices]],
      ["edges", "MATCH ()-[r]->() RETURN count(r) AS x", "g.E().count()", [LIBRARY.edges]],
      [
        "authors of a publisher",
        "MATCH (:Publisher {name: 'Lantern Press'})-[:PUBLISHED]->(:Book)<-[:WROTE]-(a) RETURN DISTINCT a.name AS x",
        "g.V().has('Publisher','name','Lantern Press').out('PUBLISHED').in('WROTE').dedup().values('name')",
        ["Iris Novák", "O'Hara, Sean"],
      ],
      [
        "pages of all books",
        "MATCH (b:Book) RETURN sum(b.pages) AS x",
        "g.V().hasLabel('Book').values('pages').sum()",
        [2815],
      ],
      [
        "who writes most",
        "MATCH (a)-[:WROTE]->(b) WITH a, count(b) AS n ORDER BY n DESC LIMIT 1 RETURN a.name AS x",
        "g.V().hasLabel('Author').order().by(out('WROTE').count(),desc).limit(1).values('name')",
        ["Iris Novák"],
      ],
      [
        "two steps of KNOWS",
        "MATCH ({name: 'Iris Novák'})-[:KNOWS*2]->(x) RETURN x.name AS x",
        "g.V().has('name','Iris Novák').repeat(out('KNOWS')).times(2).values('name')",
        ["Tomasz Wilk"],
      ],
      [
        "parallel edges are two",
        "MATCH (:Publisher {name: 'North Quay'})-[r:PUBLISHED]->({name: 'Flow'}) RETURN r.year AS x",
        "g.V().has('name','North Quay').outE('PUBLISHED').where(inV().has('name','Flow')).values('year')",
        [2019, 2021],
      ],
      [
        "books without an author",
        "MATCH (b:Book) WHERE NOT (b)<-[:WROTE]-() RETURN b.name AS x",
        "g.V().hasLabel('Book').not(__.in('WROTE')).values('name')",
        ["Glasshafen"],
      ],
      [
        "one vertex of two labels",
        "MATCH (n:Author:Translator) RETURN n.name AS x",
        "g.V().hasLabel('Author').hasLabel('Translator').values('name')",
        ["Lena Haas"],
      ],
      [
        "quotes and commas survive",
        "MATCH (b:Book) WHERE b.name CONTAINS ',' OR b.name CONTAINS '\"' RETURN b.name AS x",
        "g.V().hasLabel('Book').has('name',TextP.containing(',').or(TextP.containing('\"'))).values('name')",
        ["Maps, Mostly", 'The "Quiet" Engine'],
      ],
    ];
    for (const [name, inCypher, inGremlin, expected] of questions) {
      const ours = (await cypher(server, inCypher)).map((row) => row.x);
      assert.deepEqual(ours.sort(), expected, `${name}, openCypher`);
      assert.deepEqual((await gremlin(server, inGremlin)).sort(), expected, `${name}, Gremlin`);
    }
  });

  await t.test(
    "openCypher is answered at both spellings, by POST and GET, as JSON and as a form",
    async () => {
      const query = "MATCH (b:Book) WHERE b.pages > $least RETURN b.name AS name ORDER BY name";
      const parameters = { least: 400 };
      const text = JSON.stringify(parameters);
      const expected = [{ name: "A Harbour of Glass" }, { name: "Glasshafen" }, { name: "The Salt Road" }];
      for (const path of ["/openCypher", "/opencypher"]) {
        const form = new URLSearchParams({ query, parameters: text });
        const ways: [string, Promise<Response>][] = [
          ["JSON with an object", post(server, path, { query, parameters })],
          ["JSON with text", post(server, path, { query, parameters: text })],
          ["a form", fetch(`${endpoint}${path}`, { method: "POST", body: form })],
          ["GET", fetch(`${endpoint}${path}?${form}`)],
        ];
        for (const [way, answer] of ways)
          assert.deepEqual(await rowsOf(await answer), expected, `${path} ${way}`);
      }
    },
  );

  await t.test("Gremlin is answered by POST and GET", async () => {
    const query = "g.V('b1').values('name')";
    assert.deepEqual(await resultsOf(await post(server, "/gremlin", { gremlin: query })), ["The Salt Road"]);
    const address = `${endpoint}/gremlin?${new URLSearchParams({ gremlin: query })}`;
    assert.deepEqual(await resultsOf(await fetch(address)), ["The Salt Road"]);
    const accept = { accept: "application/vnd.gremlin-v3.0+json" };
    const answer = await fetch(address, { headers: accept });
    assert.match(answer.headers.get("content-type") ?? "", /^application\/vnd\.gremlin-v3\.0\+json/);
    assert.deepEqual(await resultsOf(answer), ["The Salt Road"]);
  });

  await t.test("nodes, relationships and paths have Neptune's shape", async () => {
    const [row] = await cypher(server, "MATCH p = (a {name: 'Ebb'})<-[r:SEQUEL_OF]-(b) RETURN a, r, b, p");
    const r = {
      "~id": "s2",
      "~entityType": "relationship",
      "~start": "b9",
      "~end": "b8",
      "~type": "SEQUEL_OF",
    };
    const { a: node, r: edge, b, p } = row as { a: Schemas["Node"]; r: unknown; b: unknown; p: unknown };
    assert.equal(node["~id"], "b8");
    assert.deepEqual(node["~labels"], ["Book"]);
    assert.equal(node["~properties"].pages, 201);
    assert.deepEqual(edge, { ...r, "~properties": {} });
    assert.deepEqual(p, [node, edge, b]);
  });

  await t.test("vertices and edges of Gremlin are GraphSON 3", async () => {
    const [vertex] = (await gremlin(server, "g.V('b8')")) as Record<string, unknown>[];
    assert.equal(vertex?.type, "g:Vertex");
    assert.equal(vertex?.id, "b8");
    assert.equal(vertex?.label, "Book");
    const [edge] = (await gremlin(server, "g.E('s2')")) as Record<string, unknown>[];
    assert.equal(edge?.type, "g:Edge");
    assert.deepEqual([edge?.id, edge?.outV, edge?.inV], ["s2", "b9", "b8"]);
    const [counts] = await gremlin(server, "g.V().groupCount().by(label)");
    assert.equal((counts as Map<unknown, unknown>).get("Book"), 9);
    assert.deepEqual((await gremlin(server, "g.V('a3').values('languages')")).sort(), ["cs", "de", "en"]);
  });

  await t.test("ids that nothing has give empty results, not errors", async () => {
    assert.deepEqual(await cypher(server, "MATCH (n) WHERE id(n) = 'nobody' RETURN n"), []);
    assert.deepEqual(await cypher(server, "MATCH (n:NoSuchLabel)-[:NO_SUCH_TYPE]->() RETURN n"), []);
    assert.deepEqual(await gremlin(server, "g.V('nobody').out()"), []);
    assert.deepEqual(await gremlin(server, "g.E('nothing')"), []);
    assert.deepEqual(await gremlin(server, "g.V().has('noSuchKey',1)"), []);
  });

  await t.test("values come back as they were sent", async () => {
    const value = {
      text: 'ü "quoted" \\ \n 漢字 🌊',
      list: [1, [2.5, null], "x"],
      yes: true,
      none: null,
      deep: { a: { b: [] } },
    };
    assert.deepEqual(await cypherValue(server, "RETURN $value AS value", { value }), value);
    assert.equal(await cypherValue(server, "RETURN 9007199254740991 AS n"), 9007199254740991);
    assert.equal(await cypherValue(server, "RETURN $n AS n", { n: -0.25 }), -0.25);
  });

  await t.test("/status says that it is healthy", async () => {
    const { parseAs } = await import("@tidegraph/contracts");
    const status = parseAs("Status", await (await fetch(`${endpoint}/status`)).json());
    assert.equal(status.status, "healthy");
  });
});

test("a request is one transaction", async (t) => {
  const server = await Server.start(t);

  await t.test("what one language writes the other reads", async () => {
    await cypher(server, "CREATE (a:Person {name: 'Ada'})-[:KNOWS {since: 1}]->(b:Person {name: 'Bo'})");
    assert.deepEqual(await gremlin(server, "g.V().has('name','Ada').outE('KNOWS').inV().values('name')"), [
      "Bo",
    ]);
    await gremlin(server, "g.addV('Person').property(id,'c').property('name','Cy')");
    assert.equal(await cypherValue(server, "MATCH (n:Person {name: 'Cy'}) RETURN id(n)"), "c");
  });

  await t.test("properties of properties are written, read and dropped", async () => {
    await gremlin(
      server,
      "g.addV('Person').property(id,'d').property(single,'name','Di','acl','public').property(list,'place','Ulm','from',1999)",
    );
    await gremlin(server, "g.V('d').properties('place').property('to',2003)");
    assert.deepEqual(await gremlin(server, "g.V('d').properties().values()"), ["public", 1999, 2003]);
    const [property] = (await gremlin(server, "g.V('d').properties('name')")) as Record<string, unknown>[];
    assert.equal(property?.type, "g:VertexProperty");
    assert.deepEqual(
      [property?.label, property?.value, property?.properties],
      ["name", "Di", { acl: "public" }],
    );
    const [vertex] = (await gremlin(server, "g.V('d')")) as [
      { properties: { place: [Record<string, unknown>] } },
    ];
    const place = {
      type: "g:VertexProperty",
      label: "place",
      value: "Ulm",
      properties: { from: 1999, to: 2003 },
    };
    const [{ id, ...found }] = vertex.properties.place;
    assert.equal(typeof id, "number");
    assert.deepEqual(found, place);
    assert.deepEqual(await gremlin(server, "g.V('d').properties().properties('to').drop()"), []);
    assert.deepEqual(await gremlin(server, "g.V('d').properties('place').valueMap()"), [
      new Map([["from", 1999]]),
    ]);
    const refused = await post(server, "/gremlin", {
      gremlin: "g.V('d').properties('name').properties('acl').property('x',1)",
    });
    const body = (await refused.json()) as { detailedMessage: string };
    assert.equal(refused.status, 400, body.detailedMessage);
    assert.match(body.detailedMessage, /"acl" is a meta-property, which cannot have properties itself/);
    assert.equal(await cypherValue(server, "MATCH (n:Person {name: 'Di'}) RETURN n.place"), "Ulm");
    await gremlin(server, "g.V('d').drop()");
  });

  await t.test("a request that fails halfway leaves nothing", async () => {
    const query = "UNWIND [1, 2, 0] AS x CREATE (:Half {x: 10 / x})";
    const answer = await post(server, "/openCypher", { query });
    assert.equal(answer.status, 400, await answer.text());
    assert.equal(await cypherValue(server, "MATCH (n:Half) RETURN count(n)"), 0);
  });

  await t.test("a vertex with edges is not deleted without DETACH, and is with it", async () => {
    const answer = await post(server, "/openCypher", { query: "MATCH (n {name: 'Ada'}) DELETE n" });
    assert.equal(answer.status, 400, await answer.text());
    await cypher(server, "MATCH (n {name: 'Ada'}) DETACH DELETE n");
    assert.equal(await cypherValue(server, "MATCH ()-[r]->() RETURN count(r)"), 0);
  });

  await t.test("many at once on one counter lose no update", async () => {
    await cypher(server, "CREATE (:Counter {n: 0})");
    let done = 0;
    const add = async () => {
      for (let turn = 0; turn < 10; turn += 1) {
        const answer = await post(server, "/openCypher", {
          query: "MATCH (c:Counter) SET c.n = c.n + 1 RETURN c.n",
        });
        await answer.text();
        if (answer.status === 200) done += 1;
        else assert.equal(answer.status, 409);
      }
    };
    await Promise.all(Array.from({ length: 8 }, add));
    assert.ok(done > 0);
    assert.equal(await cypherValue(server, "MATCH (c:Counter) RETURN c.n"), done);
  });
});

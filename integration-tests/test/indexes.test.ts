/**
 * Indexes and unique constraints from outside: answers are the same with and without an index, and both survive kill
 * -9.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { cypher, cypherValue, gremlin, load, post, refusal } from "../src/client.ts";
import { writeSource } from "../src/data.ts";
import { Server } from "../src/server.ts";

const QUESTIONS: [string, string][] = [
  ["MATCH (n:Item {v: 7}) RETURN count(n) AS x", "g.V().has('Item','v',7).count()"],
  ["MATCH (n:Item {v: 7.0}) RETURN sum(n.i) AS x", "g.V().has('Item','v',7.0).values('i').sum()"],
  [
    "MATCH (n:Item) WHERE n.v IN [3, 'text 9'] RETURN count(n) AS x",
    "g.V().hasLabel('Item').has('v',within(3,'text 9')).count()",
  ],
  [
    "MATCH (n:Item) WHERE n.v >= 10 AND n.v < 12 RETURN count(n) AS x",
    "g.V().hasLabel('Item').has('v',between(10,12)).count()",
  ],
  [
    "MATCH (n:Item) WHERE n.v STARTS WITH 'text 1' RETURN count(n) AS x",
    "g.V().hasLabel('Item').has('v',TextP.startingWith('text 1')).count()",
  ],
];

/** Returns answers in both languages, which must agree. */
async function answers(server: Server): Promise<unknown[]> {
  const found = [];
  for (const [inCypher, inGremlin] of QUESTIONS) {
    const ours = await cypherValue(server, inCypher);
    assert.deepEqual(await gremlin(server, inGremlin), [ours], inCypher);
    found.push(ours);
  }
  return found;
}

test("an index changes no answer", async (t) => {
  const server = await Server.start(t);
  await cypher(
    server,
    "UNWIND range(0, 2999) AS i CREATE (:Item {i: i, v: CASE WHEN i % 3 = 0 THEN 'text ' + toString(i % 70) ELSE i % 100 END})",
  );
  const before = await answers(server);
  await cypher(server, "CREATE INDEX item_v FOR (n:Item) ON (n.v)");
  assert.deepEqual(await answers(server), before);
  await server.kill();
  await server.start();
  const listed = await cypher(server, "SHOW INDEXES");
  assert.deepEqual(
    listed.map((row) => [row.name, row.state, row.labelsOrTypes, row.properties]),
    [["item_v", "ONLINE", ["Item"], ["v"]]],
  );
  assert.deepEqual(await answers(server), before);
  await gremlin(server, "g.addV('Item').property('v',7).property('i',0)");
  assert.equal((await answers(server))[0], Number(before[0]) + 1);
  await cypher(server, "DROP INDEX item_v");
  assert.deepEqual((await answers(server)).slice(1), before.slice(1));
  const answer = await post(server, "/openCypher", { query: "CREATE TEXT INDEX FOR (n:A) ON (n.b)" });
  assert.match(await refusal(answer, "UnsupportedOperationException"), /TEXT INDEX at 1:8/);
});

test("a unique constraint holds in both languages and for loads", async (t) => {
  const code = "UniqueConstraintViolationException";
  const server = await Server.start(t);
  await cypher(server, "CREATE CONSTRAINT one_email FOR (n:User) REQUIRE n.email IS UNIQUE");
  await gremlin(server, "g.addV('User').property(id,'a').property('email','a@x')");
  const create = await post(server, "/openCypher", { query: "CREATE (:User {`~id`: 'b', email: 'a@x'})" });
  assert.match(await refusal(create, code), /"a", "b".*`User`.*"a@x".*`email`/);
  const add = await post(server, "/gremlin", { gremlin: "g.addV('User').property('email','a@x')" });
  await refusal(add, code);
  const rows = "~id,~label,email:String\nc,User,a@x\nd,User,d@x\ne,User,d@x\n";
  const source = await writeSource(server.home, "users.csv", rows);
  const status = await load(server, { source, format: "csv", failOnError: "FALSE" });
  assert.equal(status.overallStatus.insertErrors, 2);
  assert.deepEqual(await gremlin(server, "g.V().hasLabel('User').values('email').order()"), ["a@x", "d@x"]);
  await server.kill();
  await server.start();
  await refusal(await post(server, "/openCypher", { query: "CREATE (:User {email: 'd@x'})" }), code);
});

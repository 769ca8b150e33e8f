/** The service was destroyed and deployed again: earlier data of both graphs is there, and they accept writes. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { parseAs } from "@tidegraph/contracts";
import { deployed, Signer } from "../../src/aws.ts";
import type { Row } from "../../src/client.ts";

const signer = new Signer(deployed().api);
after(() => signer.end());

async function cypher(graph: string, query: string): Promise<Row[]> {
  const answer = await signer.ask(`${graph}/openCypher`, { query });
  assert.equal(answer.status, 200, answer.body);
  return parseAs("OpenCypherAnswer", JSON.parse(answer.body)).results;
}

test("the graph of before is found", async () => {
  const query =
    "MATCH (:Person {name: 'Ada'})-[:LIVES]->(c:City) CREATE (c)<-[:LIVES]-(n:Person {name: 'Mary'}) RETURN c.name AS name";
  assert.deepEqual(await cypher("", query), [{ name: "London" }]);
  const read = await signer.ask("/gremlin", { gremlin: "g.V().hasLabel('City').in('LIVES').count()" });
  assert.equal(read.status, 200, read.body);
  assert.deepEqual(parseAs("GremlinAnswer", JSON.parse(read.body)).result.data["@value"], [
    { "@type": "g:Int64", "@value": 2 },
  ]);
});

test("the second graph is found, and has its own data", async () => {
  const second = "/graph/orders";
  const sum = "MATCH (n:Order) RETURN sum(n.number) AS sum";
  assert.deepEqual(await cypher(second, sum), [{ sum: 10 }]);
  await cypher(second, "CREATE (n:Order {number: 4}) RETURN n.number");
  assert.deepEqual(await cypher(second, sum), [{ sum: 14 }]);
  assert.deepEqual(await cypher("", "MATCH (n:Order) RETURN count(n) AS n"), [{ n: 0 }]);
});

/** The service was destroyed and deployed again: earlier data is there, and the graph accepts writes. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { parseAs } from "@tidegraph/contracts";
import { deployed, Signer } from "../../src/aws.ts";

const signer = new Signer(deployed().api);
after(() => signer.end());

test("the graph of before is found", async () => {
  const query =
    "MATCH (:Person {name: 'Ada'})-[:LIVES]->(c:City) CREATE (c)<-[:LIVES]-(n:Person {name: 'Mary'}) RETURN c.name AS name";
  const answer = await signer.ask("/openCypher", { query });
  assert.equal(answer.status, 200, answer.body);
  assert.deepEqual(parseAs("OpenCypherAnswer", JSON.parse(answer.body)).results, [{ name: "London" }]);
  const read = await signer.ask("/gremlin", { gremlin: "g.V().hasLabel('City').in('LIVES').count()" });
  assert.equal(read.status, 200, read.body);
  assert.deepEqual(parseAs("GremlinAnswer", JSON.parse(read.body)).result.data["@value"], [
    { "@type": "g:Int64", "@value": 2 },
  ]);
});

/** Another graph of the deployment was removed: this one has its data, and takes writes. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { parseAs } from "@tidegraph/contracts";
import { deployed, Signer } from "../../src/aws.ts";

const { api, taken } = deployed();
const signer = new Signer(api);
after(() => signer.end());

test("the graph that is left answers, and takes writes", async () => {
  const write =
    "MATCH (:Person {name: 'Ada'})-[:LIVES]->(c:City) SET c.visited = true RETURN c.name AS name, c.visited AS visited";
  const answer = await signer.ask("/openCypher", { query: write });
  assert.equal(answer.status, 200, answer.body);
  assert.deepEqual(parseAs("OpenCypherAnswer", JSON.parse(answer.body)).results, [
    { name: "London", visited: true },
  ]);
});

test("the graph that was removed is none", async () => {
  const answer = await signer.ask(`/graph/${taken[0]}/openCypher`, { query: "RETURN 1" });
  assert.equal(answer.status, 404, answer.body);
});

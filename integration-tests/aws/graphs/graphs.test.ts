/** Two graphs in one deployment: each has its paths, its data and its drops. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { parseAs } from "@tidegraph/contracts";
import { ask, deployed, plainItem, Signer } from "../../src/aws.ts";
import { Drops } from "../../src/aws-drops.ts";
import { plain } from "../../src/client.ts";

const signer = new Signer(deployed().api);
after(() => signer.end());

/** Paths of the graphs behind the API. */
const FIRST = "/graph/default";
const SECOND = "/graph/orders";

async function value(graph: string, query: string): Promise<unknown> {
  const answer = await signer.ask(`${graph}/openCypher`, { query });
  assert.equal(answer.status, 200, answer.body);
  const [row] = parseAs("OpenCypherAnswer", JSON.parse(answer.body)).results;
  return Object.values(row ?? {})[0];
}

test("each graph answers at its own paths, and has only its own data", async () => {
  const before = await value("", "MATCH (n) RETURN count(n)");
  assert.equal(await value(FIRST, "MATCH (n) RETURN count(n)"), before);
  assert.equal(await value(SECOND, "MATCH (n) RETURN count(n)"), 0);
  await value(SECOND, "CREATE (n:Order {`~id`: 'p1', number: 7}) RETURN n.number");
  assert.equal(await value(SECOND, "MATCH (n) WHERE id(n) = 'p1' RETURN n.number"), 7);
  assert.equal(await value(FIRST, "MATCH (n) WHERE id(n) = 'p1' RETURN n.name"), "Ada");
  assert.equal(await value("", "MATCH (n) RETURN count(n)"), before);
  const read = await signer.ask(`${SECOND}/gremlin`, { gremlin: "g.V().label()" });
  assert.equal(read.status, 200, read.body);
  assert.deepEqual(parseAs("GremlinAnswer", JSON.parse(read.body)).result.data["@value"].map(plain), [
    "Order",
  ]);
});

test("a graph that is not there is named, and is no defect", async () => {
  const answer = await signer.ask("/graph/nobody/openCypher", { query: "RETURN 1" });
  assert.equal(answer.status, 404, answer.body);
  const error = parseAs("ErrorBody", JSON.parse(answer.body));
  assert.equal(error.code, "NotFoundException");
  assert.match(error.detailedMessage, /nobody/);
});

test("files that are dropped for a graph are loaded into it alone", async () => {
  const drops = new Drops("orders");
  const before = await value(FIRST, "MATCH (n) RETURN count(n)");
  await drops.drop("first", { "rows.csv": "~id,~label,number:Int\no1,Order,1\no2,Order,2\n" });
  const told = await drops.report("first");
  assert.equal(told.status, "LOAD_COMPLETED", JSON.stringify(told));
  assert.equal(await value(SECOND, "MATCH (n:Order) RETURN sum(n.number)"), 10);
  assert.equal(await value(FIRST, "MATCH (n) RETURN count(n)"), before);
  const status = await signer.ask(`${SECOND}/loader/${told.loadId}`);
  assert.equal(status.status, 200, status.body);
});

test("each graph has items of its own in the map, and folders of its own for objects", async () => {
  const items = async (graph: string) => {
    const Key = { graph: { S: graph }, item: { S: "map#graph" } };
    const answer = await ask("dynamodb", "DynamoDB_20120810.GetItem", { TableName: deployed().table, Key });
    assert.equal(answer.status, 200, answer.body);
    return plainItem(JSON.parse(answer.body).Item);
  };
  assert.equal((await items("default")).partitions, 64);
  assert.equal((await items("orders")).partitions, 16);
});

/**
 * A graph that was taken out of the deployment is removed with all its data (docs/deploy.md, "Several graphs"). Nodes run
 * that still have it in their settings.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, test } from "node:test";
import { parseAs } from "@tidegraph/contracts";
import { ask, authorization, deployed, Signer } from "../../src/aws.ts";
import { type Outcome, outcome } from "../../src/aws-machines.ts";

const { api, endpoint, graphs, table, taken, topics } = deployed();
const signer = new Signer(api);
after(() => signer.end());
const [graph = ""] = taken;

/** Returns the items of the graph in the map. */
async function items(): Promise<unknown[]> {
  const answer = await ask("dynamodb", "DynamoDB_20120810.Query", {
    TableName: table,
    KeyConditionExpression: "graph = :graph",
    ExpressionAttributeValues: { ":graph": { S: graph } },
  });
  assert.equal(answer.status, 200, answer.body);
  return JSON.parse(answer.body).Items;
}

/** Returns the versions of objects of the graph, and the marks of deletion, in both buckets. */
async function versions(): Promise<string[]> {
  const get = async (path: string): Promise<string> => {
    const answer = await fetch(`${endpoint}/${path}`, { headers: { authorization: authorization("s3") } });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    return text;
  };
  const all = (text: string, tag: string): string[] =>
    [...text.matchAll(new RegExp(`<${tag}>([^<]+)</${tag}>`, "g"))].map(([, value]) => value ?? "");
  const buckets = all(await get(""), "Name");
  const folders = { data: [`graphs/${graph}/`], drop: [`drop/${graph}/`, `reports/${graph}/`] };
  const found: string[] = [];
  for (const [kind, prefixes] of Object.entries(folders)) {
    const named = buckets.filter((name) => name.startsWith(`local-state-statebuckets${kind}`));
    assert.equal(named.length, 1, `${kind}: ${buckets}`);
    for (const prefix of prefixes)
      found.push(...all(await get(`${named[0]}?versions&prefix=${encodeURIComponent(prefix)}`), "Key"));
  }
  return found;
}

/** Returns the partitions of the graph's topic. */
const partitions = (): string[] =>
  readdirSync(topics).filter((name) => new RegExp(`^tidegraph-${graph}-\\d+$`).test(name));

const remove = (input: object): Promise<Outcome> => outcome("removal", input);

test("no path leads to it, and its data is there", async () => {
  const answer = await signer.ask(`/graph/${graph}/openCypher`, { query: "RETURN 1" });
  assert.equal(answer.status, 404, answer.body);
  assert.match(parseAs("ErrorBody", JSON.parse(answer.body)).detailedMessage, new RegExp(graph));
  assert.ok((await items()).length > 16);
  assert.ok((await versions()).length > 0);
  assert.equal(partitions().length, 1, readdirSync(topics).join());
});

test("a graph of the deployment is not removed, nor one whose name is not said twice", async () => {
  for (const [input, error, cause] of [
    [{ graph: graphs[0], confirm: graphs[0] }, "GraphIsServed", /take it out of graphs and deploy first/],
    [{ graph }, "NotConfirmed", /confirm is missing/],
    [{ graph, confirm: `${graph}s` }, "NotConfirmed", /removes orders with its data/],
    [{ graph: "../x", confirm: "../x" }, "NoGraphName", /graph is \\"\.\.\/x\\"/],
    [{}, "NoGraphName", /graph is missing/],
  ] as const) {
    const told = await remove(input);
    assert.deepEqual([told.status, told.error], ["FAILED", error], JSON.stringify(told));
    assert.match(told.cause ?? "", cause);
  }
  assert.ok((await items()).length > 16);
});

test("it is removed, and a second removal finds nothing", async () => {
  const first = await remove({ graph, confirm: graph });
  assert.equal(first.status, "SUCCEEDED", JSON.stringify(first));
  const removed = JSON.parse(first.output ?? "");
  assert.deepEqual([removed.graph, removed.wasInMap], [graph, true]);
  assert.ok(removed.versions > 0, first.output);
  const second = await remove({ graph, confirm: graph });
  assert.equal(second.status, "SUCCEEDED", JSON.stringify(second));
  assert.equal(JSON.parse(second.output ?? "").wasInMap, false);
  assert.deepEqual(await items(), []);
  assert.deepEqual(await versions(), []);
  assert.deepEqual(partitions(), []);
});

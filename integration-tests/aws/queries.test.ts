/** Queries in both languages through the REST API, the query function and storage nodes, each request signed. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { errorRow, mapItemProblem, parseAs } from "@tidegraph/contracts";
import { type Answer, ask, deployed, plainItem, REGION, Signer } from "../src/aws.ts";
import { plain, type Row } from "../src/client.ts";
import { variable } from "../src/neptune-clients.ts";
import { python, script } from "../src/python.ts";

const { api, functionLogs, secrets } = deployed();
const signer = new Signer(api);
after(() => signer.end());

async function cypher(query: string, parameters: object = {}): Promise<Row[]> {
  const answer = await signer.ask("/openCypher", { query, parameters });
  assert.equal(answer.status, 200, answer.body);
  return parseAs("OpenCypherAnswer", JSON.parse(answer.body)).results;
}

async function gremlin(query: string): Promise<unknown[]> {
  const answer = await signer.ask("/gremlin", { gremlin: query });
  assert.equal(answer.status, 200, answer.body);
  return parseAs("GremlinAnswer", JSON.parse(answer.body)).result.data["@value"].map(plain);
}

function refused({ status, body }: Answer, code: string): string {
  const error = parseAs("ErrorBody", JSON.parse(body));
  assert.equal(error.code, code, body);
  assert.equal(status, errorRow(code)?.httpStatus, body);
  return error.detailedMessage;
}

test("openCypher: what was written is read, in Neptune's shape", async () => {
  const create = "CREATE (a:Person {`~id`: 'p1', name: $a})-[:KNOWS {since: 1833}]->(b:Person {name: $b})";
  const written = await cypher(`${create} RETURN b.name AS name`, { a: "Ada", b: "Grace" });
  assert.deepEqual(written, [{ name: "Grace" }]);
  const read = await cypher("MATCH (a:Person)-[k:KNOWS]->(b) RETURN a, k.since AS since, b.name AS name");
  assert.deepEqual(read, [
    {
      a: { "~id": "p1", "~entityType": "node", "~labels": ["Person"], "~properties": { name: "Ada" } },
      since: 1833,
      name: "Grace",
    },
  ]);
});

test("Gremlin: what was written is read, in Neptune's shape", async () => {
  assert.deepEqual(await gremlin("g.addV('City').property('name', 'London').values('name')"), ["London"]);
  assert.deepEqual(
    await gremlin("g.V('p1').as('a').V().hasLabel('City').addE('LIVES').from('a').count()"),
    [1],
  );
  assert.deepEqual(await gremlin("g.V().hasLabel('Person').out('LIVES').values('name')"), ["London"]);
});

test("each language reads what the other wrote", async () => {
  assert.deepEqual(await cypher("MATCH (:Person)-[:LIVES]->(c:City) RETURN c.name AS name"), [
    { name: "London" },
  ]);
  assert.deepEqual(await gremlin("g.V('p1').out('KNOWS').values('name')"), ["Grace"]);
});

test("a version is answered, and seen by who sends it", async () => {
  const written = await signer.ask("/openCypher", { query: "CREATE (n:Versioned) RETURN id(n) AS id" });
  assert.equal(written.status, 200, written.body);
  const version = written.headers["tidegraph-version"];
  assert.match(version ?? "", /^\d+$/);
  const query = "MATCH (n:Versioned) RETURN count(n) AS n";
  const read = await signer.ask("/openCypher", { query }, { "tidegraph-version": version ?? "" });
  assert.deepEqual(JSON.parse(read.body), { results: [{ n: 1 }] });
});

test("what is wrong with a request is said with its code, and is no defect", async () => {
  const parse = await signer.ask("/openCypher", { query: "MATCH (n RETURN n" });
  assert.match(refused(parse, "MalformedQueryException"), /at 1:10$/);
  refused(await signer.ask("/gremlin", { gremlin: "g.V(" }), "MalformedQueryException");
  refused(await signer.ask("/openCypher", { query: "CALL nothing.here()" }), "MalformedQueryException");
  refused(
    await signer.ask("/openCypher", { query: "CALL neptune.algo.pageRank()" }),
    "UnsupportedOperationException",
  );
  refused(await signer.ask("/gremlin", { gremlin: "g.V().noSuchStep()" }), "MalformedQueryException");
  refused(await signer.ask("/openCypher", { query: "RETURN $missing" }), "MissingParameterException");
  refused(await signer.ask("/openCypher", {}), "MissingParameterException");
  refused(await signer.ask("/nowhere"), "NotFoundException");
  const load = { source: "s3://b/x", format: "csv", iamRoleArn: "arn:aws:iam::0:role/r", region: REGION };
  assert.match(
    refused(await signer.ask("/loader", load), "UnsupportedOperationException"),
    /long-lived worker/,
  );
});

test("an answer of some megabytes is whole", async () => {
  const query = "UNWIND range(1, 20000) AS n RETURN n, $text AS text";
  const rows = await cypher(query, { text: "é".repeat(60) });
  assert.equal(rows.length, 20_000);
  assert.deepEqual(rows.at(-1), { n: 20_000, text: "é".repeat(60) });
});

test("boto3's neptunedata client and gremlin-python, by tidegraph-neptune", async () => {
  const args = [script("neptunedata_signed.py"), api, REGION];
  const env = { ...process.env, PYTHONPATH: variable("TIDEGRAPH_NEPTUNE_PACKAGE") };
  const { stdout } = await promisify(execFile)(python(), args, { timeout: 300_000, env });
  assert.match(stdout, /as it expects/);
});

test("what daemons wrote into the map's table is what the contracts say", async () => {
  const answer = await ask("dynamodb", "DynamoDB_20120810.Scan", { TableName: deployed().table });
  assert.equal(answer.status, 200, answer.body);
  const items = (JSON.parse(answer.body).Items as Parameters<typeof plainItem>[0][]).map(plainItem);
  for (const item of items) assert.equal(mapItemProblem(item), undefined);
  const count = (beginning: string): number =>
    items.filter(({ graph, item }) => graph === "default" && String(item).startsWith(beginning)).length;
  assert.deepEqual(["map#graph", "map#node#", "map#part#", "beat#"].map(count), [1, 3, 64, 3]);
  assert.ok(count("lease#sequencer") === 1);
});

test("the log of the function has no secret, no credentials and no query", () => {
  const files = readdirSync(functionLogs);
  assert.ok(files.length > 0, functionLogs);
  const log = files.map((name) => readFileSync(join(functionLogs, name), "utf8")).join("\n");
  assert.match(log, /^REPORT RequestId: /m);
  assert.ok(secrets.length > 0 && secrets.every((secret) => secret.length >= 32));
  for (const secret of [...secrets, "an-example-of-a-session-token", "AWS4-HMAC", "Ada", "noSuchStep"])
    assert.ok(!log.includes(secret), `the log has ${secret.slice(0, 4)}…`);
});

/**
 * What remains after the service was destroyed: both graphs, and nothing else of ours (docs/deploy.md, "Take it away").
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ask, authorization, deployed } from "../../src/aws.ts";

const { api, endpoint, templates } = deployed();

async function get(service: string, path: string): Promise<Record<string, unknown[]>> {
  const answer = await fetch(`${endpoint}${path}`, { headers: { authorization: authorization(service) } });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return JSON.parse(text) as Record<string, unknown[]>;
}

test("the map's table is there with its items", async () => {
  const table = await ask("dynamodb", "DynamoDB_20120810.DescribeTable", { TableName: deployed().table });
  assert.equal(table.status, 200, table.body);
  for (const [graph, partitions] of [
    ["default", "64"],
    ["orders", "16"],
  ]) {
    const Key = { graph: { S: graph }, item: { S: "map#graph" } };
    const item = await ask("dynamodb", "DynamoDB_20120810.GetItem", { TableName: deployed().table, Key });
    assert.equal(JSON.parse(item.body).Item.partitions.N, partitions, graph);
  }
});

test("the buckets are there", async () => {
  const answer = await fetch(endpoint, { headers: { authorization: authorization("s3") } });
  const names = [...(await answer.text()).matchAll(/<Name>([^<]+)<\/Name>/g)].map(([, name]) => name ?? "");
  for (const bucket of ["data", "drop", "logs"]) {
    assert.equal(
      names.filter((name) => name.startsWith(`local-state-statebuckets${bucket}`)).length,
      1,
      bucket,
    );
  }
});

test("function, API, state machine, secrets and log groups are gone", async () => {
  assert.deepEqual((await get("lambda", "/2015-03-31/functions")).Functions, []);
  assert.deepEqual((await get("apigateway", "/restapis")).item ?? [], []);
  const machines = await ask("states", "AWSStepFunctions.ListStateMachines", {});
  assert.deepEqual(JSON.parse(machines.body).stateMachines, []);
  const secrets = await ask("secretsmanager", "secretsmanager.ListSecrets", {});
  assert.deepEqual(JSON.parse(secrets.body).SecretList, []);
  for (const logGroupNamePrefix of ["/tidegraph/", "/aws/vendedlogs/states/tidegraph/"]) {
    const logs = await ask("logs", "Logs_20140328.DescribeLogGroups", { logGroupNamePrefix });
    assert.deepEqual(JSON.parse(logs.body).logGroups, []);
  }
  const answer = await fetch(`${api}/openCypher?query=RETURN%201`);
  assert.equal(answer.status, 404);
});

test("what holds data would stay when the state went too", () => {
  const template = JSON.parse(readFileSync(join(templates, "State.template.json"), "utf8")) as {
    Resources: Record<string, { Type: string; DeletionPolicy?: string }>;
  };
  const kept = new Set(["AWS::DynamoDB::Table", "AWS::KMS::Key", "AWS::S3::Bucket"]);
  const found = Object.values(template.Resources).filter(({ Type }) => kept.has(Type));
  assert.equal(found.length, 5);
  // Only a failed creation removes them.
  for (const { Type, DeletionPolicy } of found)
    assert.match(DeletionPolicy ?? "", /^Retain(ExceptOnCreate)?$/, Type);
});

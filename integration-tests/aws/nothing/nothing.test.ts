/** Nothing of a deployment remains after the commands that delete everything (docs/deploy.md, "Take it away"). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Answer, ask, authorization, deployed } from "../../src/aws.ts";

const { endpoint } = deployed();

const json = ({ status, body }: Answer) => {
  assert.equal(status, 200, body);
  return JSON.parse(body);
};

test("both stacks are gone", async () => {
  const answer = await fetch(endpoint, {
    method: "POST",
    headers: {
      authorization: authorization("cloudformation"),
      "content-type": "application/x-www-form-urlencoded",
    },
    body: "Action=DescribeStacks&Version=2010-05-15",
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const all = (field: string): string[] =>
    [...text.matchAll(new RegExp(`<${field}>([^<]+)</${field}>`, "g"))].map(([, value]) => value ?? "");
  const states = all("StackStatus");
  // AWS does not list deleted stacks here.
  const names = all("StackName").filter((_, index) => states[index] !== "DELETE_COMPLETE");
  assert.deepEqual(names, ["CDKToolkit"], states.join());
});

test("the table and the buckets are gone", async () => {
  assert.deepEqual(json(await ask("dynamodb", "DynamoDB_20120810.ListTables", {})).TableNames, []);
  const answer = await fetch(endpoint, { headers: { authorization: authorization("s3") } });
  const names = [...(await answer.text()).matchAll(/<Name>([^<]+)<\/Name>/g)].map(([, name]) => name ?? "");
  // The bucket of assets belongs to the CDK.
  assert.equal(names.length, 1, names.join());
  assert.match(names[0] ?? "", /^cdk-/);
});

test("keys wait for their end, and log groups and secrets are gone", async () => {
  const { Keys } = json(await ask("kms", "TrentService.ListKeys", {})) as { Keys: { KeyId: string }[] };
  for (const { KeyId } of Keys) {
    const { KeyMetadata } = json(await ask("kms", "TrentService.DescribeKey", { KeyId }));
    if (KeyMetadata.KeyManager === "CUSTOMER") assert.equal(KeyMetadata.KeyState, "PendingDeletion", KeyId);
  }
  assert.ok(Keys.length > 0);
  for (const logGroupNamePrefix of ["/tidegraph/", "/aws/vendedlogs/"]) {
    const groups = await ask("logs", "Logs_20140328.DescribeLogGroups", { logGroupNamePrefix });
    assert.deepEqual(json(groups).logGroups, []);
  }
  assert.deepEqual(json(await ask("secretsmanager", "secretsmanager.ListSecrets", {})).SecretList, []);
});

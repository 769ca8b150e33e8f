/**
 * The custom resource that asks MSK for the addresses of brokers (`infra/brokers/`), and requests that AWS refuses at first.
 * moto has no addresses of brokers, so that the server in front of it answers. The test stands in for CloudFormation.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { KafkaClient } from "@aws-sdk/client-kafka";
import { type Event, handle } from "../brokers/brokers.ts";
import { Account } from "./account.ts";
import { ACCOUNT, REGION } from "./create.ts";

const CLUSTER = `arn:aws:kafka:${REGION}:${ACCOUNT}:cluster/example-log-0a1b2c3d/1-2`;
const GET = "kafka:GetBootstrapBrokers";
const answers: Record<string, unknown>[] = [];
const cloudFormation = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  answers.push(JSON.parse(body));
  response.end();
});
let account: Account;
let client: KafkaClient;
/** Refusals so far, and after how many of them the permission is there. */
let refusals = 0;
let spreadAfter = Number.POSITIVE_INFINITY;

before(async () => {
  account = await Account.start({ stackStatus: "" });
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  client = new KafkaClient({ endpoint: account.endpoint, region: REGION, credentials, maxAttempts: 1 });
  client.middlewareStack.add(
    (next) => async (args) => {
      try {
        return await next(args);
      } catch (error) {
        refusals += 1;
        if (refusals >= spreadAfter) account.situation.denied.clear();
        throw error;
      }
    },
    { step: "initialize" },
  );
  await new Promise<void>((done) => cloudFormation.listen(0, "127.0.0.1", done));
});
after(async () => {
  client.destroy();
  cloudFormation.close();
  await account.stop();
});

const request = (RequestType: Event["RequestType"]): Event => ({
  RequestType,
  ResponseURL: `http://127.0.0.1:${(cloudFormation.address() as AddressInfo).port}/`,
  StackId: "stack",
  RequestId: "7",
  LogicalResourceId: "Brokers",
  ...(RequestType !== "Create" && { PhysicalResourceId: CLUSTER }),
  ResourceProperties: { ClusterArn: CLUSTER },
});

test("the addresses are an attribute of the resource", async () => {
  for (const type of ["Create", "Update"] as const) {
    await handle(request(type), client);
    const answer = answers.pop();
    assert.deepEqual(
      [answer?.Status, answer?.PhysicalResourceId],
      ["SUCCESS", CLUSTER],
      String(answer?.Reason),
    );
    assert.deepEqual(answer?.Data, { Addresses: "b-1.example:9098,b-2.example:9098" });
  }
});

test("a permission that spreads late does not fail the deployment", async () => {
  account.situation.denied.add(GET);
  [refusals, spreadAfter] = [0, 3];
  await handle(request("Create"), client, { patienceMs: 60_000, pauseMs: 1 });
  assert.equal(answers.pop()?.Status, "SUCCESS");
  assert.equal(refusals, 3);
});

test("a permission that is missing is told to CloudFormation", async () => {
  account.situation.denied.add(GET);
  [refusals, spreadAfter] = [0, Number.POSITIVE_INFINITY];
  await handle(request("Create"), client, { patienceMs: 0, pauseMs: 1 });
  const answer = answers.pop();
  assert.equal(answer?.Status, "FAILED");
  assert.match(String(answer?.Reason), /ForbiddenException.*not authorized/);
  assert.equal(refusals, 1);
});

test("a removal asks nothing, and other errors are not repeated", async () => {
  account.situation.denied.add(GET);
  refusals = 0;
  await handle(request("Delete"), client);
  assert.deepEqual([answers.pop()?.Status, refusals], ["SUCCESS", 0]);
  account.situation.denied.clear();
  const nowhere = new KafkaClient({
    endpoint: "http://127.0.0.1:9",
    region: REGION,
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    maxAttempts: 1,
  });
  await handle(request("Create"), nowhere, { patienceMs: 3_600_000, pauseMs: 3_600_000 });
  assert.equal(answers.pop()?.Status, "FAILED");
  nowhere.destroy();
});

/** What CloudFormation takes as the answer of a custom resource. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { answer, type Request } from "../teardown/answer.ts";

/** Sends an answer, and returns what arrived. */
async function sent(failure: string | undefined, Data: Record<string, string> = {}): Promise<string> {
  let body = "";
  const cloudFormation = createServer(async (request, response) => {
    for await (const part of request.setEncoding("utf8")) body += part;
    response.end();
  });
  await new Promise<void>((done) => cloudFormation.listen(0, "127.0.0.1", done));
  const event: Request = {
    RequestType: "Create",
    ResponseURL: `http://127.0.0.1:${(cloudFormation.address() as AddressInfo).port}/`,
    StackId: `arn:aws:cloudformation:eu-west-1:123456789012:stack/${"s".repeat(128)}/0`,
    RequestId: "7",
    LogicalResourceId: "L".repeat(255),
  };
  try {
    await answer(event, "p".repeat(1024), failure, Data);
    return body;
  } finally {
    cloudFormation.close();
  }
}

test("an answer is no longer than CloudFormation takes, and a reason is cut no more than that needs", async () => {
  const most = 4096;
  for (const [character, bytes] of [
    ["x", 1],
    ["→", 3],
    ["\u0001", 6],
    ['"', 2],
  ] as const) {
    const body = await sent(`AccessDenied: ${character.repeat(10_000)}`);
    const { Status, Reason, PhysicalResourceId } = JSON.parse(body);
    assert.deepEqual([Status, PhysicalResourceId.length], ["FAILED", 1024]);
    assert.match(Reason, /^AccessDenied: /);
    const length = Buffer.byteLength(body);
    assert.ok(length <= most && length > most - 6 - bytes, `${length} bytes`);
  }
});

test("a short reason and the attributes arrive as they are", async () => {
  const { Status, Reason } = JSON.parse(await sent("Refused: no such cluster"));
  assert.deepEqual([Status, Reason], ["FAILED", "Refused: no such cluster"]);
  const {
    Status: success,
    Reason: none,
    Data,
  } = JSON.parse(await sent(undefined, { Addresses: "b-1:9098" }));
  assert.deepEqual([success, none, Data], ["SUCCESS", "", { Addresses: "b-1:9098" }]);
});

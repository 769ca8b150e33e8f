/**
 * Answers that API Gateway gives itself have the shape and the codes of all other failed requests. LocalStack does not
 * check signatures, so this test checks the template instead.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { example, ofType } from "./support.ts";

const CONTRACTS = join(import.meta.dirname, "..", "..", "contracts");
const { errors } = JSON.parse(readFileSync(join(CONTRACTS, "errors.json"), "utf8")) as {
  errors: { code: string; httpStatus: number }[];
};
const schema = JSON.parse(readFileSync(join(CONTRACTS, "schemas", "error-body.schema.json"), "utf8"));

/** The answers by type of refusal, with a reason that JSON has to escape. */
const refusals = new Map(
  ofType(example().service, "AWS::ApiGateway::GatewayResponse").map(([id, { Properties }]) => {
    assert.deepEqual(Object.keys(Properties.ResponseTemplates), ["application/json"], id);
    const body: string = Properties.ResponseTemplates["application/json"];
    const text = body
      .replaceAll("$context.requestId", "c6af9ac6-7b61-11e6-9a41-93e8deadbeef")
      .replaceAll("$context.error.messageString", JSON.stringify('the "reason"\n'));
    return [
      Properties.ResponseType as string,
      { status: Number(Properties.StatusCode), body: JSON.parse(text) },
    ];
  }),
);

test("each answer has the shape and a code of the contracts", () => {
  assert.ok(refusals.size >= 10);
  for (const [type, { status, body }] of refusals) {
    for (const field of schema.required) assert.ok(body[field], `${type} has no ${field}`);
    assert.deepEqual(Object.keys(body).toSorted(), Object.keys(schema.properties).toSorted(), type);
    assert.match(body.code, new RegExp(schema.properties.code.pattern), type);
    assert.equal(status, errors.find(({ code }) => code === body.code)?.httpStatus, type);
    assert.equal(body.detailedMessage, 'the "reason"\n', type);
  }
});

test("a missing, wrong or expired signature is refused as Neptune refuses it", () => {
  for (const type of [
    "MISSING_AUTHENTICATION_TOKEN",
    "INVALID_SIGNATURE",
    "EXPIRED_TOKEN",
    "ACCESS_DENIED",
  ]) {
    const { status, body } = refusals.get(type) ?? {};
    assert.deepEqual([status, body?.code], [403, "AccessDeniedException"], type);
  }
});

test("all other refusals have an answer too", () => {
  assert.equal(refusals.get("DEFAULT_4XX")?.status, 400);
  assert.equal(refusals.get("DEFAULT_5XX")?.status, 500);
  assert.deepEqual(refusals.get("THROTTLED")?.body.code, "TooManyRequestsException");
});

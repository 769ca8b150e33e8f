/**
 * Checks the golden file of the function that moves replicas against the schemas of events and answers. The Rust tests
 * read the same file.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { contractPath } from "../src/paths.ts";
import { loadSchemas } from "../src/validate.ts";

const golden = JSON.parse(readFileSync(contractPath("golden/rebalance.json"), "utf8"));
const schemas = loadSchemas({ strict: true });

/** @param name the name of a schema */
function validate(name: string, value: unknown): string | undefined {
  const check = schemas.getSchema(`${name}.schema.json`);
  assert.ok(check, name);
  return check(value) ? undefined : JSON.stringify(check.errors);
}

test("the schemas accept the golden events and answers", () => {
  assert.ok(golden.events.length >= 9 && golden.answers.length >= 8);
  for (const event of golden.events) assert.equal(validate("rebalance-event", event), undefined);
  for (const answer of golden.answers) assert.equal(validate("rebalance-answer", answer), undefined);
});

test("the schema refuses what the function refuses", () => {
  for (const event of golden.refused) assert.ok(validate("rebalance-event", event), JSON.stringify(event));
});

test("inputs of state machines have known fields only", () => {
  const upgrade = { release: "0.2.0" };
  const good = { heal: { patienceSeconds: 120 }, drain: { node: "i-0123" }, scaleOut: {}, upgrade };
  assert.equal(validate("rebalance-input", good), undefined);
  assert.ok(validate("rebalance-input", { ...good, heal: {} }));
  assert.ok(validate("rebalance-input", { ...good, upgrade: { release: "0.2" } }));
  assert.ok(validate("rebalance-input", { ...good, drain: { node: "a b" } }));
  assert.equal(validate("rebalance-input", { ...good, upgrade: { ...upgrade, atOnce: 3 } }), undefined);
  for (const atOnce of [0, 17, 1.5, "3"])
    assert.ok(validate("rebalance-input", { ...good, upgrade: { ...upgrade, atOnce } }), String(atOnce));
});

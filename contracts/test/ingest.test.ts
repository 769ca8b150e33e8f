/**
 * Checks the golden file of dropped files against the schemas of events, answers, marks and reports. The Rust tests
 * read the same file.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { contractPath } from "../src/paths.ts";
import { loadSchemas } from "../src/validate.ts";

const golden: Record<string, unknown[]> = JSON.parse(
  readFileSync(contractPath("golden/ingest.json"), "utf8"),
);
const schemas = loadSchemas({ strict: true });

/** For each schema, the lists of the golden file that it accepts and that it refuses. */
const LISTS = [
  ["ingest-event", "events", "refused"],
  ["ingest-answer", "answers", "refusedAnswers"],
  ["ingest-report", "reports", "refusedReports"],
  ["ingest-drop", "drops", "refusedDrops"],
  ["ingest-input", "inputs", "refusedInputs"],
  ["ingest-stopped", "stopped", "refusedStopped"],
] as const;

test("each list of the golden file belongs to a schema and has examples", () => {
  assert.deepEqual(Object.keys(golden).toSorted(), LISTS.flatMap(([, ...lists]) => lists).toSorted());
  for (const [list, examples] of Object.entries(golden)) assert.ok(examples.length >= 2, list);
});

for (const [name, good, bad] of LISTS) {
  test(`${name}: accepts the valid examples, and refuses what the function refuses`, () => {
    const check = schemas.getSchema(`${name}.schema.json`);
    assert.ok(check, name);
    for (const value of golden[good] ?? []) {
      assert.ok(check(value), `${JSON.stringify(value)}: ${JSON.stringify(check.errors)}`);
    }
    for (const value of golden[bad] ?? []) assert.equal(check(value), false, JSON.stringify(value));
  });
}

test("the golden events cover each step and stage, and the answers each stage and both ends", () => {
  const of = (list: string, field: string): unknown[] => [
    ...new Set((golden[list] as Record<string, unknown>[]).map((one) => one[field])),
  ];
  assert.deepEqual(of("events", "step"), ["begin", "work", "next", "commit", "abandon"]);
  const stages = ["parse", "vertices", "sources", "targets", "edges"];
  assert.deepEqual(of("events", "stage").filter(Boolean), stages);
  assert.deepEqual(of("answers", "stage"), ["parse", "vertices", "commit", "ended"]);
  assert.ok(of("answers", "status").includes("LOAD_COMPLETED"));
});

test("statuses of a report are the final statuses of the loader API", () => {
  const of = (name: string, path: string): string[] => {
    const text = readFileSync(contractPath(`schemas/${name}.schema.json`), "utf8");
    return JSON.parse(text).$defs[path].enum;
  };
  const running = ["LOAD_NOT_STARTED", "LOAD_IN_QUEUE", "LOAD_IN_PROGRESS"];
  const ends = of("loader-status", "state").filter((state) => !running.includes(state));
  assert.deepEqual(of("ingest-report", "Status"), ends);
});

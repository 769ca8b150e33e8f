/** Tests the report of a drop for each outcome. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Input, inputSchema, rejected, tell } from "../src/report.ts";
import { golden, Memory, problem } from "./memory.ts";

const ID = "0f8fad5b-d9cb-569f-a165-70867728950e";
const REPORT = `reports/people/first/${ID}.json`;
const OF_FUNCTION = `ingest/${ID}/report.json`;
const load = { loadId: ID, source: "s3://example-drop/drop/people/first/", report: REPORT };
const ended = (status: string): Input => ({ kind: "ended", load, ended: { status, report: OF_FUNCTION } });

async function told(input: Input, content?: string) {
  const [data, drop] = [new Memory("data"), new Memory("example-drop")];
  if (content !== undefined) data.put(OF_FUNCTION, content);
  const answer = await tell(inputSchema.parse(input), { data, drop });
  assert.deepEqual([...drop.kept.keys()], [REPORT]);
  assert.equal(problem("ingest-report", drop.json(REPORT)), undefined);
  assert.equal(answer.told.report, `s3://example-drop/${REPORT}`);
  return { ...answer, written: drop.json(REPORT) };
}

test("the report of a load is copied to the drop bucket unchanged", async () => {
  const loads = (golden.reports ?? []).filter((one) => "loadId" in (one as object));
  assert.ok(loads.length >= 3);
  for (const report of loads as { status: string; message?: string }[]) {
    const { told: answer, written } = await told(ended(report.status), JSON.stringify(report));
    assert.deepEqual(written, report);
    assert.deepEqual([answer.status, answer.message], [report.status, report.message ?? ""]);
  }
});

test("the report of a refused drop has the reason", async () => {
  const reason = 'the graph is "others"';
  const { told: answer, written } = await told({ kind: "refused", load, reason });
  assert.equal(written.message, reason);
  assert.equal(written.status, "LOAD_FAILED_INVALID_REQUEST");
  assert.deepEqual([answer.status, answer.message], ["LOAD_FAILED_INVALID_REQUEST", reason]);
});

test("the report of a load that could not be ended has the error that was caught", async () => {
  const error = { Error: "Unavailable", Cause: "no node answers" };
  const { written } = await told({ kind: "failed", load, error });
  assert.deepEqual(
    [written.status, written.message],
    ["LOAD_UNEXPECTED_ERROR", "Unavailable: no node answers"],
  );
  const { written: bare } = await told({ kind: "failed", load, error: { Error: "States.Timeout" } });
  assert.equal(bare.message, "States.Timeout");
});

test("the replacement of an unreadable report has the status and the reason", async () => {
  const [report] = golden.reports as Record<string, unknown>[];
  const other = "1f8fad5b-d9cb-569f-a165-70867728950e";
  const cases: [string | undefined, RegExp][] = [
    [undefined, /there is no ingest\/.*report\.json/],
    ["{", /is not JSON/],
    ["{}", /is no report: loadId/],
    [JSON.stringify({ ...report, totalRecords: -1 }), /is no report: totalRecords/],
    [JSON.stringify({ ...report, loadId: other }), /is of the load 1f8fad5b/],
  ];
  for (const [content, expected] of cases) {
    const { written } = await told(ended("LOAD_COMPLETED"), content);
    assert.equal(written.status, "LOAD_COMPLETED");
    assert.match(String(written.message), expected);
  }
});

test("a long message is cut in the result and complete in the report", async () => {
  const reason = "x".repeat(5000);
  const { told: answer, written } = await told({ kind: "refused", load, reason });
  assert.deepEqual([answer.message.length, String(written.message).length], [1000, 5000]);
});

test("refused rows are counted over all kinds of errors", async () => {
  const counts = { parsingErrors: 1, datatypeMismatchErrors: 2, insertErrors: 4 };
  const { report } = await told(
    ended("LOAD_COMPLETED"),
    JSON.stringify({ ...(golden.reports?.[0] as object), ...counts }),
  );
  assert.equal(rejected(report), 7);
});

test("a key that cannot be that of a report is refused", () => {
  for (const wrong of [
    { kind: "refused", load: { ...load, report: "drop/people/first/a.csv" }, reason: "" },
    { kind: "ended", load, ended: { status: "DONE", report: OF_FUNCTION } },
    { kind: "ended", load, ended: { status: "LOAD_COMPLETED", report: "checkpoints/1" } },
    { kind: "lost", load },
  ]) {
    assert.equal(inputSchema.safeParse(wrong).success, false, JSON.stringify(wrong));
  }
});

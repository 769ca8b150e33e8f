/** Tests which load an ended execution had, and whether the load has to be settled. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Executions, eventSchema, type Found, look, stoppedSchema } from "../src/stopped.ts";
import { golden, Memory, problem } from "./memory.ts";

const ID = "0f8fad5b-d9cb-569f-a165-70867728950e";
const REPORT = `reports/people/first/${ID}.json`;
// With several graphs, a load has the name of its graph, which the step that abandons it needs.
const load = { loadId: ID, source: "s3://example-drop/drop/people/first/", report: REPORT, graph: "people" };
const taken = { outcome: "load", load, begin: { step: "begin", loadId: ID } };
const [event] = golden.stopped as [{ detail: { executionArn: string } }];

/** One execution, with the answers of Step Functions. */
function execution(status: string, first?: unknown, cause?: string): Executions {
  const isIt = (arn: string) => arn === event.detail.executionArn;
  return {
    standing: async (arn) => (isIt(arn) ? { status, cause } : undefined),
    first: async (arn) => (isIt(arn) && first !== undefined ? JSON.stringify(first) : undefined),
  };
}

async function found(executions: Executions, drop = new Memory("example-drop"), by = {}): Promise<Found> {
  const input = { kind: "stopped", event: { ...event, ...by }, longestSeconds: 960 };
  return look(stoppedSchema.parse(input), { executions, drop });
}

test("events of the contract are accepted, and others are refused", () => {
  for (const one of golden.stopped ?? []) {
    assert.equal(problem("ingest-stopped", one), undefined);
    eventSchema.parse(one);
  }
  for (const one of golden.refusedStopped ?? []) {
    assert.equal(eventSchema.safeParse(one).success, false, JSON.stringify(one));
  }
});

test("a load without a report is open: with the error of its execution, and the wait for its steps", async () => {
  const cases: [string, string | undefined, string][] = [
    ["TIMED_OUT", undefined, "it took longer than a load may take"],
    ["ABORTED", undefined, "somebody stopped it"],
    ["ABORTED", "wrong files", "somebody stopped it: wrong files"],
    ["FAILED", "no bucket", "it ended without a report: no bucket"],
  ];
  for (const [status, cause, message] of cases) {
    assert.deepEqual(await found(execution(status, taken, cause)), {
      outcome: "open",
      load,
      waitSeconds: 960,
      error: { Error: status, Cause: message },
    });
  }
  const byHand = await found(execution("ABORTED", taken), undefined, { waitSeconds: 0 });
  assert.equal(byHand.outcome === "open" && byHand.waitSeconds, 0);
});

test("a load with a report needs nothing", async () => {
  const drop = new Memory("example-drop");
  drop.put(REPORT, "{}");
  const told = await found(execution("FAILED", taken), drop);
  assert.deepEqual(told, { outcome: "told", reason: `${REPORT} is there` });
  assert.deepEqual([...drop.kept.keys()], [REPORT]);
});

test("an execution that runs, has completed or does not exist has nothing to settle", async () => {
  for (const status of ["RUNNING", "PENDING_REDRIVE", "SUCCEEDED"]) {
    const { outcome, ...rest } = await found(execution(status, taken));
    assert.equal(outcome, "none");
    assert.match(JSON.stringify(rest), new RegExp(`is ${status}`));
  }
  const forgotten = await found(execution("ABORTED", taken), undefined, {
    detail: { executionArn: `${event.detail.executionArn}2` },
  });
  assert.match(JSON.stringify(forgotten), /not there any more/);
});

test("an execution without a load has nothing to settle", async () => {
  const others = [
    undefined,
    { outcome: "ignored", reason: "" },
    { outcome: "already", load },
    "no object",
    { outcome: "load", load: { ...load, report: "drop/people/first/a.csv" } },
  ];
  for (const first of others) {
    const { outcome } = await found(execution("ABORTED", first));
    assert.equal(outcome, "none", JSON.stringify(first));
  }
});

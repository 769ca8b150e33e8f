/**
 * Runs the definitions of the machines of a deployment with several graphs in LocalStack's Step Functions: the detector, the
 * machine that drains, and that of backups. What they call is answered here (`SFN_MOCK_CONFIG`); the states, Maps, paths and
 * catches between the calls are executed as they are.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { loadSchemas } from "../../contracts/src/validate.ts";
import { ACCOUNT, LocalStack, REGION } from "../../scripts/lib/localstack.mjs";
import { type Definition, definitions } from "../draw/draw.ts";
import { states } from "../test/definitions.ts";
import { example } from "../test/support.ts";
import { answer, type Case, error, local, type Run, replies, runCase } from "./states.ts";

const done = answer({});

const lease = { holder: "e", endpoint: "", epoch: 1, counter: 1, ttlMs: 120_000 };
const planned = { goal: "repair", done: true, lots: [], moves: 0, coming: 0, short: 0, bytes: 0 };
const left = [{ partition: 1, from: "i-1", isBegun: false, others: 2 }];
const moving = { ...planned, done: false, lots: [{ moves: left }], moves: 1 };
const verified = { whole: true, partitions: 4, wholePartitions: 4, dark: 0, moves: 0, reason: "" };
const drained: Case = {
  "List the graphs": [answer({ graphs: ["people", "orders"] })],
  "Say that it leaves": [answer({ state: "draining" })],
  "Take the lease": [answer({ ours: true, lease, waitSeconds: 145 })],
  Plan: [answer(moving), answer(planned)],
  "Go on": [
    answer({ done: false, moves: left, void: 0, looks: 1 }),
    answer({ done: true, moves: [], void: 0, looks: 2 }),
  ],
  Verify: [answer(verified)],
  "Give the lease back": [answer({ released: true })],
  "Give the lease back after a failure": [answer({ released: true })],
  "Replicas move": [done],
  "Let the group go on": [done],
};
const of = (graph: string, needed: string, node?: string) => ({
  graph,
  needed,
  ...(node && { node }),
  lost: [],
  name: `${needed}-${graph}-7-2971000`,
});
const started = answer({ ExecutionArn: "arn", StartDate: 1 });

const CASES: Readonly<Record<string, Readonly<Record<string, Case>>>> = {
  detect: {
    each: {
      Look: [
        answer({
          graphs: [
            of("people", "heal"),
            of("orders", "drain", "i-1"),
            of("events", "scale-out"),
            of("idle", "nothing"),
          ],
        }),
      ],
      Heal: [started],
      Drain: [started],
      "Scale out": [started],
    },
  },
  drain: {
    all: drained,
    none: { ...drained, "List the graphs": [answer({ graphs: [] })] },
    failed: { ...drained, Plan: [error("NotOurs", "another execution has it")] },
  },
  backup: {
    all: { "Back up": [done] },
    one: { "Back up": [done, error("States.TaskFailed", "it ended with 1"), done] },
  },
};

/** The tasks that invoke our function. */
const OF_FUNCTION = [
  ...["Look", "List the graphs", "Say that it leaves", "Take the lease", "Plan", "Go on", "Verify"],
  ...["Give the lease back", "Give the lease back after a failure"],
];

const MACHINES = new Map([
  ["detect", "ServiceRebalanceDetect"],
  ["drain", "ServiceRebalanceDrain"],
  ["backup", "ServiceBackupMachine"],
]);
const { service } = example({ graphs: [{ name: "orders" }, { name: "events" }], backup: {} });

/** Returns a definition without retries. */
function withoutRetries(definition: Definition): Definition {
  for (const [, state] of states(definition) as [string, { Retry?: unknown }][]) delete state.Retry;
  return definition;
}

const home = mkdtempSync(join(tmpdir(), "tidegraph-states-"));
const file = join(home, "replies.json");
const stack = new LocalStack({ log: join(home, "localstack.log"), variables: { SFN_MOCK_CONFIG: file } });
process.on("exit", () => stack.kill());

before(async () => {
  const machines = Object.entries(CASES).map(([machine, cases]) => ({
    machine,
    cases,
    ofFunction: OF_FUNCTION,
  }));
  writeFileSync(file, JSON.stringify(replies(machines)));
  await stack.start(["stepfunctions"]);
  const role = `arn:aws:iam::${ACCOUNT}:role/any`;
  for (const [name, definition] of definitions(service, { path: "", machines: MACHINES })) {
    const text = JSON.stringify(withoutRetries(local(JSON.stringify(definition))));
    const args = ["--name", name, "--definition", text, "--role-arn", role];
    await stack.aws(["stepfunctions", "create-state-machine", ...args]);
  }
});

after(async () => {
  await stack.stop();
  rmSync(home, { recursive: true, force: true });
});

/** Runs a case to its end. */
const run = (machine: string, name: string, input: object): Promise<Run> =>
  runCase(stack, `arn:aws:states:${REGION}:${ACCOUNT}:stateMachine:${machine}`, name, input);

test("one look starts a machine for each graph that needs one", async () => {
  const ran = await run("detect", "each", {});
  assert.equal(ran.status, "SUCCEEDED", `${ran.error} ${ran.cause}`);
  const tasks = ran.states.filter((name) => ["Heal", "Drain", "Scale out", "Nothing to do"].includes(name));
  assert.deepEqual(tasks.toSorted(), ["Drain", "Heal", "Nothing to do", "Scale out"]);
  assert.equal(JSON.parse(ran.inputs[ran.states.indexOf("Heal")] ?? "{}").graph, "people");
});

test("the group goes on after the node was emptied of all graphs, and not if one could not be moved", async () => {
  for (const name of ["all", "none"]) {
    const ran = await run("drain", name, { node: "i-1" });
    assert.equal(ran.status, "SUCCEEDED", `${name}: ${ran.error} ${ran.cause}`);
    assert.deepEqual(ran.states.slice(-2), ["Let the group go on", "Drained"], name);
  }
  const failed = await run("drain", "failed", { node: "i-1" });
  assert.equal(failed.status, "FAILED");
  assert.ok(!failed.states.includes("Let the group go on"), failed.states.join());
});

test("a backup that fails is named at the end, after the others", async () => {
  const all = await run("backup", "all", {});
  assert.equal(all.status, "SUCCEEDED", `${all.error} ${all.cause}`);
  const one = await run("backup", "one", {});
  assert.deepEqual([one.status, one.error], ["FAILED", "NotBackedUp"]);
  assert.match(one.cause ?? "", /^some graphs have no new backup: \[.*"(people|orders|events): failed"/);
  assert.equal((one.cause ?? "").split(": backed up").length, 3, one.cause);
  assert.equal(one.states.filter((name) => name === "Back up").length, 3);
  assert.equal(one.states.filter((name) => name === "Backed up").length, 2);
});

test("the replies of the function are valid under the contract", () => {
  const valid = loadSchemas({ strict: true }).getSchema("rebalance-answer.schema.json");
  for (const cases of Object.values(CASES)) {
    for (const [name, tasks] of Object.entries(cases)) {
      for (const [task, list] of Object.entries(tasks).filter(([task]) => OF_FUNCTION.includes(task))) {
        for (const reply of list) {
          if ("Return" in reply)
            assert.ok(valid?.(reply.Return), `${name}: ${task}: ${JSON.stringify(valid?.errors)}`);
        }
      }
    }
  }
});

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
import { setTimeout as sleep } from "node:timers/promises";
import { loadSchemas } from "../../contracts/src/validate.ts";
import { ACCOUNT, LocalStack, REGION } from "../../scripts/lib/localstack.mjs";
import type { Definition } from "../draw/draw.ts";
import { states } from "../test/definitions.ts";
import { example, named } from "../test/support.ts";

/** Time limit of an execution, on a busy machine. */
const WITHIN_MS = 300_000;

type Reply =
  | { readonly Return: unknown }
  | { readonly Throw: { readonly Error: string; readonly Cause: string } };
/** What the tasks answer, one reply for each call; the last reply is repeated. */
type Case = Readonly<Record<string, readonly Reply[]>>;

const answer = (value: unknown): Reply => ({ Return: value });
const error = (name: string, Cause: string): Reply => ({ Throw: { Error: name, Cause } });
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
const OF_FUNCTION = new Set([
  ...["Look", "List the graphs", "Say that it leaves", "Take the lease", "Plan", "Go on", "Verify"],
  ...["Give the lease back", "Give the lease back after a failure"],
]);

/** Returns LocalStack's file of replies. */
function replies(): unknown {
  const responses: Record<string, Record<string, Reply>> = {};
  const machines: Record<string, { TestCases: Record<string, Record<string, string>> }> = {};
  for (const [machine, cases] of Object.entries(CASES)) {
    const TestCases: Record<string, Record<string, string>> = {};
    for (const [name, tasks] of Object.entries(cases)) {
      const ids: Record<string, string> = {};
      for (const [task, list] of Object.entries(tasks)) {
        const id = `${machine} ${name}: ${task}`;
        ids[task] = id;
        const said = list.map((reply) =>
          OF_FUNCTION.has(task) && "Return" in reply
            ? answer({ StatusCode: 200, Payload: reply.Return })
            : reply,
        );
        responses[id] = Object.fromEntries(
          said.map((reply, at) => [at === list.length - 1 ? `${at}-${at + 99}` : String(at), reply]),
        );
      }
      TestCases[name] = ids;
    }
    machines[machine] = { TestCases };
  }
  return { StateMachines: machines, MockedResponses: responses };
}

const { service } = example({ graphs: [{ name: "orders" }, { name: "events" }], backup: {} });
const MACHINES = new Map([
  ["detect", "ServiceRebalanceDetect"],
  ["drain", "ServiceRebalanceDrain"],
  ["backup", "ServiceBackupMachine"],
]);

/** Returns a definition with ARNs of LocalStack, short waits, and no retries. */
function definition(beginning: string): Definition {
  const { Properties } = named(service, "AWS::StepFunctions::StateMachine", beginning);
  const [, parts] = Properties.DefinitionString["Fn::Join"] as [string, unknown[]];
  const text = parts.map((part) => {
    if (typeof part === "string") return part;
    const it = JSON.stringify(part);
    if (it.includes("AWS::Partition")) return "aws";
    if (it.includes("RebalanceFunction")) return `arn:aws:lambda:${REGION}:${ACCOUNT}:function:steps`;
    if (it.includes("Rebalance")) return `arn:aws:states:${REGION}:${ACCOUNT}:stateMachine:other`;
    return "x";
  });
  const parsed: Definition = JSON.parse(text.join(""));
  for (const [, state] of states(parsed) as unknown as [
    string,
    { Type: string; Seconds?: number; SecondsPath?: string; Retry?: unknown },
  ][]) {
    if (state.Type === "Wait") {
      state.Seconds = 1;
      delete state.SecondsPath;
    }
    delete state.Retry;
  }
  return parsed;
}

const home = mkdtempSync(join(tmpdir(), "tidegraph-states-"));
const file = join(home, "replies.json");
const stack = new LocalStack({ log: join(home, "localstack.log"), variables: { SFN_MOCK_CONFIG: file } });
process.on("exit", () => stack.kill());

before(async () => {
  writeFileSync(file, JSON.stringify(replies()));
  await stack.start(["stepfunctions"]);
  const role = `arn:aws:iam::${ACCOUNT}:role/any`;
  for (const [name, beginning] of MACHINES) {
    const text = JSON.stringify(definition(beginning));
    const args = ["--name", name, "--definition", text, "--role-arn", role];
    await stack.aws(["stepfunctions", "create-state-machine", ...args]);
  }
});

after(async () => {
  await stack.stop();
  rmSync(home, { recursive: true, force: true });
});

/** What an execution did. */
interface Run {
  readonly status: string;
  readonly error?: string;
  readonly cause?: string;
  /** The states that it entered, with their inputs. */
  readonly entered: { readonly name: string; readonly input: string }[];
}

/** Runs a case to its end. */
async function run(machine: string, name: string, input: object): Promise<Run> {
  const arn = `arn:aws:states:${REGION}:${ACCOUNT}:stateMachine:${machine}`;
  const start = ["--state-machine-arn", `${arn}#${name}`, "--input", JSON.stringify(input)];
  const { executionArn } = await stack.aws(["stepfunctions", "start-execution", ...start]);
  const of = ["--execution-arn", executionArn];
  for (const end = Date.now() + WITHIN_MS; ; await sleep(500)) {
    const { status, error, cause } = await stack.aws(["stepfunctions", "describe-execution", ...of]);
    if (status === "RUNNING" && Date.now() < end) continue;
    const { events } = await stack.aws(["stepfunctions", "get-execution-history", ...of]);
    const all: { stateEnteredEventDetails?: { name: string; input: string } }[] = events;
    const entered = all.flatMap(({ stateEnteredEventDetails: one }) => (one ? [one] : []));
    return { status, error, cause, entered };
  }
}

const names = ({ entered }: Run): string[] => entered.map(({ name }) => name);

test("one look starts a machine for each graph that needs one", async () => {
  const ran = await run("detect", "each", {});
  assert.equal(ran.status, "SUCCEEDED", `${ran.error} ${ran.cause}`);
  const tasks = names(ran).filter((name) => ["Heal", "Drain", "Scale out", "Nothing to do"].includes(name));
  assert.deepEqual(tasks.toSorted(), ["Drain", "Heal", "Nothing to do", "Scale out"]);
  const heal = ran.entered.find(({ name }) => name === "Heal");
  assert.equal(JSON.parse(heal?.input ?? "{}").graph, "people");
});

test("the group goes on after the node was emptied of all graphs, and not if one could not be moved", async () => {
  for (const name of ["all", "none"]) {
    const ran = await run("drain", name, { node: "i-1" });
    assert.equal(ran.status, "SUCCEEDED", `${name}: ${ran.error} ${ran.cause}`);
    assert.deepEqual(names(ran).slice(-2), ["Let the group go on", "Drained"], name);
  }
  const failed = await run("drain", "failed", { node: "i-1" });
  assert.equal(failed.status, "FAILED");
  assert.ok(!names(failed).includes("Let the group go on"), names(failed).join());
});

test("a backup that fails is named at the end, after the others", async () => {
  const all = await run("backup", "all", {});
  assert.equal(all.status, "SUCCEEDED", `${all.error} ${all.cause}`);
  const one = await run("backup", "one", {});
  assert.deepEqual([one.status, one.error], ["FAILED", "NotBackedUp"]);
  assert.match(one.cause ?? "", /^some graphs have no new backup: \[.*"(people|orders|events): failed"/);
  assert.equal((one.cause ?? "").split(": backed up").length, 3, one.cause);
  assert.equal(names(one).filter((name) => name === "Back up").length, 3);
  assert.equal(names(one).filter((name) => name === "Backed up").length, 2);
});

test("the replies of the function are valid under the contract", () => {
  const valid = loadSchemas({ strict: true }).getSchema("rebalance-answer.schema.json");
  for (const cases of Object.values(CASES)) {
    for (const [name, tasks] of Object.entries(cases)) {
      for (const [task, list] of Object.entries(tasks).filter(([task]) => OF_FUNCTION.has(task))) {
        for (const reply of list) {
          if ("Return" in reply)
            assert.ok(valid?.(reply.Return), `${name}: ${task}: ${JSON.stringify(valid?.errors)}`);
        }
      }
    }
  }
});

/**
 * Runs the definitions of the machines that resize a fleet and that drain a node in LocalStack's Step Functions, with given
 * answers of Auto Scaling, which LocalStack does not have, and of the function.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { loadSchemas } from "../../contracts/src/validate.ts";
import { ACCOUNT, LocalStack, REGION } from "../../scripts/lib/localstack.mjs";
import { definitions, REBALANCE, RESIZE } from "../draw/draw.ts";
import { example } from "../test/support.ts";
import { answer, type Case, error, local, type Reply, type Run, replies, runCase } from "./states.ts";

const arn = (name: string): string => `arn:aws:states:${REGION}:${ACCOUNT}:stateMachine:${name}`;
const NODE = "i-2";

const load = (...names: string[]): Reply =>
  answer({ MetricAlarms: names.map((name) => ({ AlarmName: `example-nodes-${name}` })) });
const next = (action: string, more: object = {}): Reply =>
  answer({ action, capacity: 4, reason: `to ${action}`, ...more });
const alone = answer({ Executions: [{ ExecutionArn: "one" }] });
const group = answer({
  AutoScalingGroups: [
    {
      ...{ DesiredCapacity: 4, MinSize: 3 },
      Instances: ["i-1", NODE, "i-3", "i-4"].map((InstanceId) => ({
        InstanceId,
        LifecycleState: "InService",
      })),
    },
  ],
});
const done = answer({});
const drains = answer({ state: "draining", held: 4 });
const drained = answer({ Status: "SUCCEEDED" });
const usual: Case = {
  "Look for another one": [alone],
  "Look at the load": [load("idle")],
  "Look at the load meanwhile": [load("idle")],
  "Look at the group": [group],
  "Start a machine": [done],
  "End the machine": [done],
  "Drain the node": [drained],
  "Keep the node": [answer({ state: "up" })],
  "Keep the node after a failure": [answer({ state: "up" })],
};
const resizes = {
  busy: { ...usual, "Look at the load": [load("busy")], Next: [next("launch", { capacity: 5 })] },
  // The alarm about idle nodes looks further back.
  both: { ...usual, "Look at the load": [load("idle", "busy")], Next: [next("launch", { capacity: 5 })] },
  quiet: { ...usual, "Look at the load": [load()] },
  other: {
    ...usual,
    "Look for another one": [answer({ Executions: [{ ExecutionArn: "1" }, { ExecutionArn: "2" }] })],
  },
  idle: {
    ...usual,
    Next: [
      next("drain", { node: NODE }),
      next("drain", { node: NODE }),
      next("end", { node: NODE, capacity: 3 }),
    ],
  },
  refused: { ...usual, Next: [next("nothing")] },
  again: {
    ...usual,
    Next: [next("drain", { node: NODE })],
    "Look at the load meanwhile": [load("busy", "idle")],
  },
  upgrade: { ...usual, Next: [next("drain", { node: NODE }), next("nothing")] },
  failing: {
    ...usual,
    Next: [next("drain", { node: NODE })],
    "Drain the node": [error("StepFunctions.AWSStepFunctionsException", "NotWhole")],
  },
  stubborn: { ...usual, Next: [next("drain", { node: NODE })] },
  ended: {
    ...usual,
    Next: [next("drain", { node: NODE }), next("end", { node: NODE, capacity: 3 })],
    "End the machine": [error("AutoScaling.AutoScalingException", "it is not in the group")],
  },
} satisfies Record<string, Case>;

const lease = { holder: "e", endpoint: "", epoch: 1, counter: 1, ttlMs: 120_000 };
const taken = (ours: boolean): Reply => answer({ ours, lease, waitSeconds: 1 });
const move = { partition: 1, to: "i-1", from: NODE, isBegun: false, others: 2 };
const plan = (lots: object[]): Reply =>
  answer({
    goal: "repair",
    done: lots.length === 0,
    lots,
    moves: lots.length,
    coming: 0,
    short: 0,
    bytes: 0,
  });
const moved = answer({ done: true, moves: [], void: 0, looks: 1 });
const verified = (whole: boolean): Reply =>
  answer({
    whole,
    partitions: 4,
    wholePartitions: 4,
    dark: 0,
    moves: 0,
    reason: whole ? "" : "1 moves are left",
  });
const drain: Case = {
  "Say that it leaves": [drains],
  "Take the lease": [taken(true)],
  Plan: [plan([{ moves: [move] }]), plan([{ moves: [move] }]), plan([])],
  "Go on": [moved],
  Verify: [verified(true)],
  "Give the lease back": [answer({ released: true })],
  "Replicas move": [done],
  "Another one moves them": [done],
  "Let the group go on": [done],
};
const noAction = error("AutoScaling.AutoScalingException", "No active Lifecycle Action found");
const ofDrain = {
  moves: drain,
  // A node whose machine stays has no lifecycle action.
  stays: { ...drain, "Replicas move": [noAction], "Let the group go on": [noAction] },
  throttled: {
    ...drain,
    "Let the group go on": [error("AutoScaling.AutoScalingException", "Rate exceeded"), done],
  },
  stuck: { ...drain, Plan: [plan([])], Verify: [verified(false)] },
  waits: {
    ...drain,
    "Take the lease": [taken(false), taken(true)],
    "Take it if it stood still": [taken(false)],
  },
  empty: { ...drain, "Say that it leaves": [answer({ state: "draining", held: 0 })] },
  // Another execution has emptied it meanwhile.
  emptied: {
    ...drain,
    "Say that it leaves": [drains, answer({ state: "draining", held: 0 })],
    "Take the lease": [taken(false)],
    "Take it if it stood still": [taken(false)],
  },
} satisfies Record<string, Case>;

const machines = [
  {
    machine: "example-resize",
    cases: resizes,
    ofFunction: ["Next", "Keep the node", "Keep the node after a failure"],
  },
  {
    machine: "example-drain",
    cases: ofDrain,
    ofFunction: Object.keys(drain)
      .concat("Take it if it stood still")
      .filter((id) => !["Replicas move", "Another one moves them", "Let the group go on"].includes(id)),
  },
] as const;

const home = mkdtempSync(join(tmpdir(), "tidegraph-states-"));
const file = join(home, "replies.json");
const stack = new LocalStack({ log: join(home, "localstack.log"), variables: { SFN_MOCK_CONFIG: file } });
process.on("exit", () => stack.kill());

before(async () => {
  writeFileSync(file, JSON.stringify(replies(machines)));
  await stack.start(["stepfunctions"]);
  const { service } = example({ nodes: { most: 9 } });
  for (const [name, definition] of [
    ["example-resize", definitions(service, RESIZE).get("resize")],
    ["example-drain", definitions(service, REBALANCE).get("drain")],
  ] as const) {
    const role = ["--role-arn", `arn:aws:iam::${ACCOUNT}:role/any`];
    const made = JSON.stringify(local(JSON.stringify(definition)));
    await stack.aws(["stepfunctions", "create-state-machine", "--name", name, "--definition", made, ...role]);
  }
});

after(async () => {
  await stack.stop();
  rmSync(home, { recursive: true, force: true });
});

const resize = (name: keyof typeof resizes): Promise<Run> => runCase(stack, arn("example-resize"), name, {});
const drainIt = (name: keyof typeof ofDrain): Promise<Run> =>
  runCase(stack, arn("example-drain"), name, { node: NODE });
/** Returns the calls of an execution that change something. */
const changes = ({ states }: Run): string[] =>
  states.filter((name) =>
    [
      "Start a machine",
      "Drain the node",
      "End the machine",
      "Cool down",
      "Keep the node",
      "Keep the node after a failure",
    ].includes(name),
  );

test("a busy fleet gets a machine more, even if it was idle before", async () => {
  for (const name of ["busy", "both"] as const) {
    const ran = await resize(name);
    assert.deepEqual([ran.status, ran.cause], ["SUCCEEDED", undefined], name);
    assert.deepEqual(changes(ran), ["Start a machine", "Cool down"], name);
  }
});

test("an idle fleet drains a node until it holds nothing, and ends exactly its machine", async () => {
  const ran = await resize("idle");
  assert.deepEqual([ran.status, ran.cause], ["SUCCEEDED", undefined]);
  assert.deepEqual(changes(ran), ["Drain the node", "Drain the node", "End the machine", "Cool down"]);
});

test("nothing changes while another one works, without a reason, or when the function refuses", async () => {
  for (const [name, last] of [
    ["quiet", "Neither busy nor idle"],
    ["other", "Another one resizes"],
    ["refused", "Not now"],
  ] as const) {
    const ran = await resize(name);
    assert.deepEqual([ran.status, changes(ran), ran.states.at(-1)], ["SUCCEEDED", [], last], name);
  }
});

test("a node that is needed again, or cannot leave, is kept", async () => {
  for (const name of ["again", "upgrade"] as const) {
    const ran = await resize(name);
    assert.equal(ran.status, "SUCCEEDED", `${name}: ${ran.error} ${ran.cause}`);
    assert.deepEqual(changes(ran), ["Drain the node", "Keep the node"], name);
  }
  const failing = await resize("failing");
  assert.deepEqual(
    [failing.status, failing.error, failing.cause],
    ["FAILED", "StepFunctions.AWSStepFunctionsException", "NotWhole"],
  );
  assert.deepEqual(changes(failing), ["Drain the node", "Keep the node after a failure"]);
  const ended = await resize("ended");
  assert.deepEqual([ended.status, ended.states.includes("Keep the node after a failure")], ["FAILED", true]);
  const stubborn = await resize("stubborn");
  assert.deepEqual([stubborn.status, stubborn.error], ["FAILED", "NotDrained"]);
  assert.equal(stubborn.cause, `node ${NODE} still holds replicas after 20 executions of drain`);
  assert.equal(changes(stubborn).length, 21);
});

test("a drain gives a sign of life with each round of moves, and none when nothing moves", async () => {
  const signs = ({ states }: Run): string[] =>
    states.filter((name) => /^(Replicas move|Another one moves them|Let the group go on)$/.test(name));
  for (const name of ["moves", "stays"] as const) {
    const ran = await drainIt(name);
    assert.deepEqual([ran.status, ran.cause], ["SUCCEEDED", undefined], name);
    assert.deepEqual(signs(ran), ["Replicas move", "Replicas move", "Let the group go on"], name);
  }
  const stuck = await drainIt("stuck");
  assert.deepEqual([stuck.status, stuck.error, signs(stuck)], ["FAILED", "NotWhole", []]);
  const waits = await drainIt("waits");
  assert.deepEqual([waits.status, waits.cause], ["SUCCEEDED", undefined]);
  assert.equal(signs(waits)[0], "Another one moves them");
});

test("the group that was asked too often is told again that a drained machine may go", async () => {
  const ran = await drainIt("throttled");
  assert.deepEqual([ran.status, ran.cause], ["SUCCEEDED", undefined]);
  const told = ran.asked
    .map((text) => JSON.parse(text))
    .filter(({ LifecycleActionResult }) => LifecycleActionResult === "CONTINUE");
  assert.deepEqual([told.length, told.at(-1)?.InstanceId], [2, NODE]);
  assert.ok(ran.answers.length > 0 && ran.states.at(-1) === "Drained");
});

test("a node that holds nothing ends without the lease, which another execution may have", async () => {
  const empty = await drainIt("empty");
  assert.deepEqual(
    [empty.status, empty.states],
    ["SUCCEEDED", ["Say that it leaves", "Does it hold anything?", "Let the group go on", "Drained"]],
  );
  const emptied = await drainIt("emptied");
  assert.deepEqual([emptied.status, emptied.cause], ["SUCCEEDED", undefined]);
  assert.ok(!emptied.states.includes("Plan"), String(emptied.states));
});

test("the replies of the function are valid under the contract", () => {
  const valid = loadSchemas({ strict: true }).getSchema("rebalance-answer.schema.json");
  assert.ok(valid);
  for (const { machine, cases, ofFunction } of machines) {
    for (const [name, tasks] of Object.entries<Case>(cases)) {
      for (const reply of (ofFunction as readonly string[]).flatMap((task) => tasks[task] ?? [])) {
        if ("Return" in reply)
          assert.ok(valid(reply.Return), `${machine}: ${name}: ${JSON.stringify(valid.errors)}`);
      }
    }
  }
});

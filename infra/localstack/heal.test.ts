/**
 * Runs the definition of the machine that heals in LocalStack's Step Functions, with given answers of Auto Scaling and of
 * the function: which machines it reports, and that replicas move whether the group takes the reports or not.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ACCOUNT, LocalStack, REGION } from "../../scripts/lib/localstack.mjs";
import { definitions, REBALANCE } from "../draw/draw.ts";
import { UNTOLD } from "../lib/state-machines/heal.ts";
import { example } from "../test/support.ts";
import { answer, type Case, error, local, type Run, replies, runCase } from "./states.ts";

const NAME = "example-heal";
const MACHINE = `arn:aws:states:${REGION}:${ACCOUNT}:stateMachine:${NAME}`;

const instances = ["i-1", "i-2", "i-3"].map((InstanceId) => ({ InstanceId, LifecycleState: "InService" }));
const usual: Case = {
  "Look at the group": [answer({ AutoScalingGroups: [{ Instances: instances }] })],
  "Who is silent?": [answer({ nodes: ["i-1", "i-3"] })],
  "Tell the group": [answer({})],
  "Take the lease": [answer({ ours: true, lease: {}, waitSeconds: 1 })],
  Plan: [answer({ done: true, coming: 0, lots: [] })],
  Verify: [answer({ whole: true, reason: "" })],
  "Give the lease back": [answer({ released: true })],
};
const cases = {
  told: usual,
  nobody: { ...usual, "Who is silent?": [answer({ nodes: [] })] },
  // The group refuses the first report with all its attempts, and takes the second one.
  stays: {
    ...usual,
    "Tell the group": [error("AutoScaling.ValidationErrorException", "it is not known"), answer({})],
  },
  unknown: { ...usual, "Look at the group": [error("AutoScaling.AccessDeniedException", "no")] },
} satisfies Record<string, Case>;

/** The tasks that invoke our function. */
const OF_FUNCTION = ["Who is silent?", "Take the lease", "Plan", "Verify", "Give the lease back"];

const home = mkdtempSync(join(tmpdir(), "tidegraph-states-"));
const file = join(home, "replies.json");
const stack = new LocalStack({ log: join(home, "localstack.log"), variables: { SFN_MOCK_CONFIG: file } });
process.on("exit", () => stack.kill());

before(async () => {
  writeFileSync(file, JSON.stringify(replies([{ machine: NAME, cases, ofFunction: OF_FUNCTION }])));
  await stack.start(["stepfunctions"]);
  const definition = local(JSON.stringify(definitions(example().service, REBALANCE).get("heal")));
  const role = `arn:aws:iam::${ACCOUNT}:role/any`;
  const args = ["--name", NAME, "--definition", JSON.stringify(definition), "--role-arn", role];
  await stack.aws(["stepfunctions", "create-state-machine", ...args]);
});

after(async () => {
  await stack.stop();
  rmSync(home, { recursive: true, force: true });
});

const run = (name: keyof typeof cases): Promise<Run> => runCase(stack, MACHINE, name, { patienceSeconds: 1 });

/** Returns the machines that were reported, each with whether the group may ignore it. */
function reported({ asked }: Run): unknown[] {
  const all = asked.map((text) => JSON.parse(text)).filter((input) => "HealthStatus" in input);
  return all.map(({ InstanceId, HealthStatus, ShouldRespectGracePeriod }) => [
    ...[InstanceId, HealthStatus, ShouldRespectGracePeriod],
  ]);
}

const untold = ({ states }: Run): string[] =>
  states.filter((name) => (UNTOLD as readonly string[]).includes(name));

test("the machines of lost nodes are reported, at once and whatever their age, and replicas move", async () => {
  const ran = await run("told");
  assert.deepEqual([ran.status, ran.error, ran.cause], ["SUCCEEDED", undefined, undefined]);
  assert.deepEqual(reported(ran), [
    ["i-1", "Unhealthy", false],
    ["i-3", "Unhealthy", false],
  ]);
  const [silent] = ran.asked
    .map((text) => JSON.parse(text))
    .map((input) => input.Payload ?? input)
    .filter(({ step }) => step === "silent");
  assert.deepEqual(silent, { step: "silent", instances });
  assert.deepEqual([untold(ran), ran.states.at(-1)], [[], "Healed"]);
  const nobody = await run("nobody");
  assert.deepEqual([nobody.status, reported(nobody), untold(nobody)], ["SUCCEEDED", [], []]);
});

test("what the group does not take enters a state that an alarm looks for, and the rest goes on", async () => {
  const stays = await run("stays");
  assert.equal(stays.status, "SUCCEEDED", `${stays.error} ${stays.cause}`);
  assert.deepEqual(untold(stays), ["The machine stays"]);
  assert.deepEqual(
    reported(stays).map((one) => (one as unknown[])[0]),
    ["i-1", "i-3"],
  );
  const unknown = await run("unknown");
  assert.equal(unknown.status, "SUCCEEDED", `${unknown.error} ${unknown.cause}`);
  assert.deepEqual([untold(unknown), reported(unknown)], [["Nobody was told"], []]);
  assert.equal(unknown.states.at(-1), "Healed");
});

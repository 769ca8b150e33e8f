/**
 * Runs the definition of the machine that upgrades in LocalStack's Step Functions. LocalStack has no Auto Scaling and no
 * deployments of ECS, so the answers of what the machine calls are given here (`SFN_MOCK_CONFIG`); the states, choices,
 * retries, catches and paths between them are executed as they are. Only waits are shorter: a second each. The query
 * function, its versions and its alias are LocalStack's own.
 *
 * `integration-tests/fleet/upgrade.mjs` performs the same steps with real daemons and the real function.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { loadSchemas } from "../../contracts/src/validate.ts";
import { ACCOUNT, LocalStack, REGION } from "../../scripts/lib/localstack.mjs";
import { type Definition, definitions, UPGRADE } from "../draw/draw.ts";
import { example } from "../test/support.ts";
import { answer, type Case, error, local, type Reply, type Run, replies, runCase } from "./states.ts";

const NAME = "example-upgrade";
/** The query function, with the versions 1 and 2, and its alias. */
const FUNCTION = "example-query";
const ALIAS = ["--function-name", FUNCTION, "--name", "live"];
const MACHINE = `arn:aws:states:${REGION}:${ACCOUNT}:stateMachine:${NAME}`;
const EXECUTION = `arn:aws:states:${REGION}:${ACCOUNT}:execution:${NAME}`;

const quiet = answer({ MetricAlarms: [] });
const loud = answer({ MetricAlarms: [{ AlarmName: "ApiErrors" }, { AlarmName: "NodesAway" }] });
const launched = (Version: string) => ({ LaunchTemplateId: "lt-1", LaunchTemplateName: "nodes", Version });
/** Machines of the version of the template before. */
const described = (...ids: string[]) =>
  ids.map((InstanceId) => ({ InstanceId, LifecycleState: "InService", LaunchTemplate: launched("6") }));
const group = (...ids: string[]): Reply =>
  answer({
    AutoScalingGroups: [
      {
        ...{ DesiredCapacity: ids.length, MinSize: 3, LaunchTemplate: launched("7") },
        Instances: described(...ids),
      },
    ],
  });
const begun = (ours: boolean, holder = `${EXECUTION}:other`): Reply =>
  answer({ ours, holder, release: "0.2.0", capacity: 3 });

/** An answer of the function to `upgrade-next`. */
function next(action: string, node?: string, more: { isCanary?: boolean; isLast?: boolean } = {}): Reply {
  const base = { capacity: action === "launch" ? 4 : 3, isCanary: false, isLast: false };
  return answer({
    action,
    ...(node && { node }),
    ...base,
    ...more,
    upgraded: 1,
    left: 2,
    reason: `to ${action}`,
  });
}

/** ECS's description of the workers' service. */
const workers = (state: string, TaskDefinition = "example-workers:2"): Reply =>
  answer({ Services: [{ TaskDefinition, Deployments: [{ RolloutState: state }] }] });

const done = answer({});
/** A refusal that a service names after itself. */
const throttled = (service: string): Reply => error(`${service}Exception`, "Rate exceeded");
const usual: Case = {
  "Look at the group's size": [group("i-1", "i-2", "i-3")],
  Begin: [begun(true)],
  "Look at the alarms": [quiet],
  "Look at the alarms again": [quiet],
  "Look at the group": [group("i-1", "i-2", "i-3")],
  "Start machines": [done],
  "Drain the nodes": [answer({ Status: "SUCCEEDED" })],
  "End the machine": [done],
  "Publish the workers' definition": [answer({ task: "example-workers:2", before: "example-workers:1" })],
  "Replace the workers": [done],
  "Give the workers back": [done],
  "Take the definition back": [answer({ task: "example-workers:1" })],
  "Look at the alarms meanwhile": [quiet],
  "Look at the workers": [workers("COMPLETED")],
  // The API has the version of this deployment already.
  "Look at the query function": [answer({ FunctionVersion: "2" })],
  Finish: [answer({ state: "finished" })],
  Stop: [answer({ state: "stopped" })],
};

/** What happens once the workers are replaced; the query function is LocalStack's. */
const { "Look at the query function": _, ...ofFunction } = usual;
const refused = error("Refused", "cannot upgrade to 0.2.0: node i-1: 0.2.0 follows 0.1, not 0.0.9");
const cases = {
  whole: {
    ...usual,
    Next: [
      next("launch"),
      next("wait"),
      next("drain", "i-1"),
      next("end", "i-1", { isCanary: true }),
      next("drain", "i-2"),
      next("end", "i-2", { isLast: true }),
      next("done"),
    ],
    "Look at the workers": [workers("IN_PROGRESS"), workers("COMPLETED")],
  },
  // The function names one of the nodes that it marked, and ends the machines one by one.
  several: {
    ...usual,
    Next: [
      next("launch"),
      next("drain", "i-1"),
      next("end", "i-1", { isCanary: true }),
      next("launch"),
      next("drain", "i-2"),
      next("end", "i-2", { isLast: true }),
      next("end", "i-3", { isLast: true }),
      next("done"),
    ],
  },
  one: { ...usual, Next: [next("done")] },
  many: {
    ...usual,
    Begin: [error("Invalid", "the event cannot be carried out: atOnce is 17, and has to be from 1 to 3")],
  },
  canary: {
    ...usual,
    Next: [next("drain", "i-1"), next("end", "i-1", { isCanary: true })],
    "Look at the alarms again": [loud],
  },
  alarm: { ...usual, Next: [next("launch"), next("wait")], "Look at the alarms": [quiet, quiet, loud] },
  skipped: { ...usual, Begin: [refused] },
  twice: { ...usual, Begin: [begun(false)], "Does its execution run?": [answer({ Status: "RUNNING" })] },
  dead: {
    ...usual,
    Begin: [begun(false)],
    "Does its execution run?": [answer({ Status: "ABORTED" })],
    "Take it over": [begun(true)],
    Next: [next("done")],
  },
  forgotten: {
    ...usual,
    Begin: [begun(false)],
    "Does its execution run?": [error("Sfn.ExecutionDoesNotExistException", "it is too old")],
    "Take it over": [begun(true)],
    Next: [next("done")],
  },
  failing: { ...usual, Next: [next("done")], "Look at the workers": [workers("FAILED")] },
  // ECS has given up the new workers, and started those before.
  back: {
    ...usual,
    Next: [next("done")],
    "Look at the workers": [workers("IN_PROGRESS"), workers("COMPLETED", "example-workers:1")],
  },
  // An alarm goes off while they are replaced, and they cannot be looked at.
  noisy: {
    ...usual,
    Next: [next("done")],
    "Look at the alarms meanwhile": [quiet, loud],
    "Look at the workers": [workers("IN_PROGRESS")],
  },
  blind: {
    ...usual,
    Next: [next("done")],
    "Look at the workers": [error("Ecs.AccessDeniedException", "not authorized")],
    "Give the workers back": [error("Ecs.AccessDeniedException", "not authorized either")],
  },
  // ECS does not take the definition.
  denied: {
    ...usual,
    Next: [next("done")],
    "Replace the workers": [error("Ecs.ClientException", "TaskDefinition is inactive")],
  },
  // The group has ended a machine whose end it refuses now.
  ended: {
    ...usual,
    Next: [next("drain", "i-1"), next("end", "i-1"), next("done")],
    "End the machine": [error("AutoScaling.AutoScalingException", "it is being terminated")],
  },
  function: { ...ofFunction, Next: [next("done")], "Look at the alarms at last": [quiet] },
  worse: { ...ofFunction, Next: [next("done")], "Look at the alarms at last": [loud] },
  // Auto Scaling, ECS and Step Functions name no error for "too many requests".
  busy: {
    ...usual,
    "Look at the group's size": [throttled("AutoScaling.AutoScaling"), group("i-1", "i-2", "i-3")],
    Begin: [begun(false)],
    "Does its execution run?": [throttled("Sfn.Sfn"), answer({ Status: "ABORTED" })],
    "Take it over": [begun(true)],
    "Look at the group": [throttled("AutoScaling.AutoScaling"), group("i-1", "i-2", "i-3")],
    "Start machines": [throttled("AutoScaling.AutoScaling"), done],
    Next: [next("launch"), next("done")],
    "Replace the workers": [
      throttled("Ecs.Ecs"),
      answer({ Service: { TaskDefinition: "example-workers:2" } }),
    ],
    "Look at the workers": [throttled("Ecs.Ecs"), workers("COMPLETED")],
    "Look at the query function": [throttled("Lambda.Lambda"), answer({ FunctionVersion: "2" })],
  },
  lost: { ...usual, Next: [error("NotOurs", "another execution has it")] },
} satisfies Record<string, Case>;

/** The tasks that invoke the function that moves replicas. */
const OF_REBALANCE = ["Begin", "Next", "Take it over", "Finish", "Stop"];
/** Those, and the tasks that invoke the function that registers definitions. */
const OF_FUNCTION = [...OF_REBALANCE, "Publish the workers' definition", "Take the definition back"];

/** Returns the definition with ARNs of LocalStack, and short waits. */
function definition(): Definition {
  const made = definitions(example().service, UPGRADE).get("upgrade");
  const text = JSON.stringify(made)
    .replaceAll(/<ServiceQueryFunctionCurrentVersion[^>]*>/g, "2")
    .replaceAll(/<ServiceQueryFunction[^>]*>/g, FUNCTION)
    .replaceAll(
      /<ServiceWorkersDefinitionFunction[^>]*>/g,
      `arn:aws:lambda:${REGION}:${ACCOUNT}:function:definition`,
    );
  return local(text);
}

const home = mkdtempSync(join(tmpdir(), "tidegraph-states-"));
const file = join(home, "replies.json");
const stack = new LocalStack({ log: join(home, "localstack.log"), variables: { SFN_MOCK_CONFIG: file } });
process.on("exit", () => stack.kill());

before(async () => {
  writeFileSync(file, JSON.stringify(replies([{ machine: NAME, cases, ofFunction: OF_FUNCTION }])));
  await stack.start(["stepfunctions", "lambda"]);
  await makeFunction();
  const role = `arn:aws:iam::${ACCOUNT}:role/any`;
  const args = ["--name", NAME, "--definition", JSON.stringify(definition()), "--role-arn", role];
  await stack.aws(["stepfunctions", "create-state-machine", ...args]);
});

after(async () => {
  await stack.stop();
  rmSync(home, { recursive: true, force: true });
});

/** Makes the query function with two versions. Nothing invokes it. */
async function makeFunction(): Promise<void> {
  const zip = join(home, "function.zip");
  for (const version of ["1", "2"]) {
    writeFileSync(join(home, "bootstrap"), `version ${version}\n`);
    execFileSync("python3", ["-m", "zipfile", "-c", zip, "bootstrap"], { cwd: home });
    const code = ["--function-name", FUNCTION, "--zip-file", `fileb://${zip}`, "--publish"];
    const role = ["--role", `arn:aws:iam::${ACCOUNT}:role/any`];
    const create = ["create-function", "--runtime", "provided.al2023", "--handler", "bootstrap", ...role];
    const made = await stack.aws([
      "lambda",
      ...(version === "1" ? create : ["update-function-code"]),
      ...code,
    ]);
    assert.equal(made.Version, version);
    const wait = version === "1" ? "function-active-v2" : "function-updated-v2";
    await stack.aws(["lambda", "wait", wait, "--function-name", FUNCTION]);
  }
  await stack.aws(["lambda", "create-alias", ...ALIAS, "--function-version", "1"]);
}

/** Returns the version of the alias, and the weights of another one. */
async function live(): Promise<[version: string, weights: Record<string, number>]> {
  const { FunctionVersion, RoutingConfig } = await stack.aws(["lambda", "get-alias", ...ALIAS]);
  return [FunctionVersion, RoutingConfig?.AdditionalVersionWeights ?? {}];
}

/** Runs a case to its end. */
const run = (name: keyof typeof cases, more: { atOnce?: number } = {}): Promise<Run> =>
  runCase(stack, MACHINE, name, { release: "0.2.0", ...more });

/** Returns the events of one kind that the function was asked with. */
function events({ asked }: Run, step: string): Record<string, unknown>[] {
  const all = asked.map((text) => JSON.parse(text)).map((input) => input.Payload ?? input);
  return all.filter((event) => event.step === step);
}

/** Returns the calls of the execution that change something. */
const changes = ({ states }: Run): string[] =>
  states.filter((name) =>
    /^(Give the new function .*|Take the queries back|Let the new function answer|Start machines|Drain the nodes|End the machine|Replace the workers|Give the workers back|Take the definition back|Finish|Stop|Let the canary serve)$/.test(
      name,
    ),
  );

test("machines are replaced, the canary first, then the workers", async () => {
  const ran = await run("whole");
  assert.deepEqual([ran.status, ran.error, ran.cause], ["SUCCEEDED", undefined, undefined]);
  assert.deepEqual(changes(ran), [
    "Start machines",
    ...["Drain the nodes", "Let the canary serve", "End the machine"],
    ...["Drain the nodes", "End the machine"],
    ...["Replace the workers", "Finish"],
  ]);
  assert.equal(ran.states.filter((name) => name === "Look at the workers").length, 2);
});

test("after the canary, as many machines are replaced at once as the input says", async () => {
  const ran = await run("several", { atOnce: 3 });
  assert.deepEqual([ran.status, ran.error, ran.cause], ["SUCCEEDED", undefined, undefined]);
  const replaced = ["Start machines", "Drain the nodes"];
  assert.deepEqual(changes(ran), [
    ...[...replaced, "Let the canary serve", "End the machine"],
    ...[...replaced, "End the machine", "End the machine"],
    ...["Replace the workers", "Finish"],
  ]);
  const [begin, ...more] = events(ran, "upgrade-begin");
  assert.deepEqual([begin?.atOnce, begin?.least, begin?.desired, more], [3, 3, 3, []]);
  assert.deepEqual(
    events(ran, "upgrade-next").map(({ atOnce, served }) => [atOnce, served]),
    [...Array(3).fill([3, false]), ...Array(5).fill([3, true])],
  );
  // An end is followed by the next one without the wait of a round.
  const between = ran.states.slice(ran.states.indexOf("The canary serves"));
  const ends = between.slice(between.lastIndexOf("Drain the nodes"), between.lastIndexOf("End the machine"));
  assert.deepEqual(
    ends.filter((name) => name.startsWith("Wait") || name.startsWith("Let the group")),
    ["Wait", "Let the group see it"],
  );
  // The function compares each machine with the template of the group.
  const [first] = events(ran, "upgrade-next");
  assert.deepEqual(
    [first?.desired, first?.template, first?.instances],
    [3, launched("7"), described("i-1", "i-2", "i-3")],
  );
  // What the input does not say, the deployment does.
  const [usually] = events(await run("one"), "upgrade-next");
  assert.deepEqual([usually?.atOnce, usually?.served], [1, false]);
  const many = await run("many", { atOnce: 17 });
  assert.deepEqual(
    [many.status, many.error, many.cause],
    ["FAILED", "Invalid", "the event cannot be carried out: atOnce is 17, and has to be from 1 to 3"],
  );
  assert.deepEqual(changes(many), []);
});

test("services that are asked too often are asked again", async () => {
  const ran = await run("busy");
  assert.deepEqual([ran.status, ran.error, ran.cause], ["SUCCEEDED", undefined, undefined]);
  assert.deepEqual(changes(ran), ["Start machines", "Replace the workers", "Finish"]);
});

test("an alarm stops it, with its name, before the next change", async () => {
  for (const [name, before] of [
    ["canary", ["Drain the nodes", "Let the canary serve", "Stop"]],
    ["alarm", ["Start machines", "Stop"]],
  ] as const) {
    const ran = await run(name);
    assert.deepEqual([ran.status, ran.error], ["FAILED", "UpgradeStopped"], name);
    assert.equal(ran.cause, 'alarms are on: ["ApiErrors","NodesAway"]', name);
    assert.deepEqual(changes(ran), before, name);
  }
});

test("a refused release, and a second upgrade at once, change nothing", async () => {
  const skipped = await run("skipped");
  assert.deepEqual([skipped.status, skipped.error], ["FAILED", "Refused"]);
  assert.match(skipped.cause ?? "", /0\.2\.0 follows 0\.1, not 0\.0\.9/);
  const twice = await run("twice");
  assert.deepEqual([twice.status, twice.error], ["FAILED", "AnotherUpgrade"]);
  assert.ok(twice.cause?.startsWith(`${EXECUTION}:other upgrades this fleet`), twice.cause);
  assert.deepEqual([...changes(skipped), ...changes(twice)], []);
});

test("the upgrade of an execution that ended is taken over", async () => {
  for (const name of ["dead", "forgotten"] as const) {
    const ran = await run(name);
    assert.equal(ran.status, "SUCCEEDED", `${name}: ${ran.error} ${ran.cause}`);
    assert.ok(ran.states.includes("Take it over"), name);
  }
});

test("workers that fail stop it; a machine that is gone does not", async () => {
  const failing = await run("failing");
  const cause =
    "the deployment of workers is FAILED, with example-workers:2 in the place of example-workers:2";
  assert.deepEqual([failing.status, failing.error, failing.cause], ["FAILED", "UpgradeStopped", cause]);
  const back = await run("back");
  assert.deepEqual([back.status, back.error], ["FAILED", "UpgradeStopped"]);
  assert.match(back.cause ?? "", /COMPLETED, with example-workers:1 in the place of example-workers:2/);
  const denied = await run("denied");
  assert.deepEqual([denied.error, denied.cause], ["Ecs.ClientException", "TaskDefinition is inactive"]);
  const noisy = await run("noisy");
  assert.deepEqual([noisy.status, noisy.error], ["FAILED", "UpgradeStopped"]);
  assert.equal(noisy.cause, 'alarms are on: ["ApiErrors","NodesAway"]');
  const blind = await run("blind");
  assert.deepEqual([blind.error, blind.cause], ["Ecs.AccessDeniedException", "not authorized"]);
  // The workers have what they had, and what was published is not left as the newest definition.
  for (const ran of [failing, back, noisy, blind])
    assert.deepEqual(changes(ran), [
      ...["Replace the workers", "Give the workers back", "Take the definition back", "Stop"],
    ]);
  assert.ok(noisy.asked.some((text) => JSON.parse(text).TaskDefinition === "example-workers:1"));
  assert.deepEqual(changes(denied), ["Replace the workers", "Take the definition back", "Stop"]);
  for (const ran of [failing, back, noisy, blind, denied]) assert.equal(events(ran, "withdraw").length, 1);
  const ended = await run("ended");
  assert.equal(ended.status, "SUCCEEDED", `${ended.error} ${ended.cause}`);
  const lost = await run("lost");
  assert.deepEqual([lost.status, lost.error, changes(lost)], ["FAILED", "NotOurs", ["Stop"]]);
});

test("the new function gets a tenth of the queries, and all of them if no alarm goes off", async () => {
  assert.deepEqual(await live(), ["1", {}]);
  const worse = await run("worse");
  assert.deepEqual([worse.status, worse.error], ["FAILED", "UpgradeStopped"], worse.cause);
  assert.equal(worse.cause, 'alarms are on: ["ApiErrors","NodesAway"]');
  const shared = ["Give the new function a tenth", "Let the new function answer"];
  assert.deepEqual(changes(worse), ["Replace the workers", ...shared, "Take the queries back", "Stop"]);
  // What Lambda answered in between.
  assert.ok(
    worse.answers.some((text) => /"AdditionalVersionWeights":\{"2":0\.1\}/.test(text.replaceAll(/\s/g, ""))),
    worse.answers.join("\n"),
  );
  assert.deepEqual(await live(), ["1", {}]);
  const upgraded = await run("function");
  assert.equal(upgraded.status, "SUCCEEDED", `${upgraded.error} ${upgraded.cause}`);
  assert.deepEqual(changes(upgraded), [
    "Replace the workers",
    ...shared,
    "Give the new function all queries",
    "Finish",
  ]);
  assert.deepEqual(await live(), ["2", {}]);
});

test("the replies of the function that moves replicas are valid under the contract", () => {
  const valid = loadSchemas({ strict: true }).getSchema("rebalance-answer.schema.json");
  assert.ok(valid);
  for (const [name, tasks] of Object.entries<Case>(cases)) {
    for (const task of OF_REBALANCE) {
      for (const reply of tasks[task] ?? []) {
        if ("Return" in reply)
          assert.ok(valid(reply.Return), `${name}: ${task}: ${JSON.stringify(valid.errors)}`);
      }
    }
  }
});

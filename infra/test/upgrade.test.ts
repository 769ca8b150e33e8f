/**
 * The machine that upgrades: its definition, what it calls and may call, that it stops for alarms, and that a deployment
 * by itself replaces no worker.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Duration } from "aws-cdk-lib";
import { loadSchemas } from "../../contracts/src/validate.ts";
import { current, type Definition, definitions, type State, UPGRADE } from "../draw/draw.ts";
import { MOST_AT_ONCE, ROUND, ROUNDS } from "../lib/state-machines/upgrade.ts";
import { check, events, states } from "./definitions.ts";
import { example, flat, named, ofType, resources } from "./support.ts";

const { service } = example();
const definition = definitions(service, UPGRADE).get("upgrade") as Definition;
const all = new Map(states(definition));

/** Converts the values of an object to text, as `flat` does. */
const flatly = (values: object): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, flat(value)]));

/** Returns the states that can follow one, errors left out. */
function following(id: string): string[] {
  const state = all.get(id);
  const choices = (state?.Choices ?? []).map(({ Next }) => Next);
  return [...choices, state?.Next, state?.Default].filter((next) => next !== undefined);
}

/** Walks from a state, and takes at each choice the one that leads to the next of these. */
function path(from: string, ...to: string[]): void {
  let at = from;
  for (const next of to) {
    assert.ok(following(at).includes(next), `${at} leads to ${following(at).join(", ")}, not to ${next}`);
    at = next;
  }
}

test("every state is reachable, and has a successor or is an end", () => check("upgrade", definition));

test("machines are launched, nodes drained and ended, then come workers, and the query function last", () => {
  const asked = "Does the input say how many at once?";
  path("Count from zero", asked, "Look at the group's size", "Begin", "Ours?", "Look at the alarms");
  path(asked, "As the deployment says", "Look at the group's size");
  path("Look at the alarms", "An alarm?", "Look at the group", "Next", "What next?");
  path("What next?", "Start machines", "Something happened", "Wait");
  path("What next?", "Drain the nodes", "Count the round", "Wait", "Too many rounds?", "Look at the alarms");
  // The next machine that holds nothing ends without the wait of a round, after a look at the alarms.
  path("What next?", "The first one?", "End the machine", "A machine ended", "Let the group see it");
  path("Let the group see it", "Too many rounds?", "Look at the alarms");
  path("What next?", "Count the wait", "Out of patience?", "Wait");
  path(
    "What next?",
    "Publish the workers' definition",
    "Replace the workers",
    "Wait for workers",
    "Count the look",
    "Look at the alarms meanwhile",
  );
  path("Look at the alarms meanwhile", "An alarm meanwhile?", "Look at the workers");
  path(
    "Look at the workers",
    "Are the workers replaced?",
    "Look at the query function",
    "Is the function upgraded?",
    "Give the new function a tenth",
    "Let the new function answer",
    "Look at the alarms at last",
    "An alarm at last?",
    "Give the new function all queries",
    "Finish",
    "Upgraded",
  );
  path("Is the function upgraded?", "Finish");
  // Without workers, the query function follows the nodes.
  const without = definitions(example({ workers: false }).service, UPGRADE).get("upgrade") as Definition;
  check("without workers", without);
  const done = without.States["What next?"]?.Choices?.find(
    ({ Next }) => Next === "Look at the query function",
  );
  assert.ok(done, JSON.stringify(without.States["What next?"]));
});

test("the canary serves before its predecessor ends, and an alarm stops the upgrade", () => {
  path(
    "The first one?",
    "Let the canary serve",
    "Look at the alarms again",
    "An alarm now?",
    "The canary serves",
    "End the machine",
  );
  for (const id of ["An alarm?", "An alarm now?"]) path(id, "An alarm is on", "Stop", "Stopped");
  assert.equal(all.get("Let the canary serve")?.Seconds, 600);
  const { upgrade: soaked } = { upgrade: example({ upgrade: { soak: Duration.minutes(30) } }).service };
  const longer = definitions(soaked, UPGRADE).get("upgrade")?.States["Let the canary serve"];
  assert.equal(longer?.Seconds, 1800);
  // An alarm that goes off while both functions answer gives the queries back first.
  path("An alarm at last?", "Take the queries back", "An alarm is on");
  assert.equal(all.get("Let the new function answer")?.Seconds, 600);
  const asked = all.get("Look at the alarms")?.Parameters as { AlarmNames: unknown[]; StateValue: string };
  assert.equal(asked.StateValue, "ALARM");
  const names = asked.AlarmNames.map(flat);
  const alarms = ofType(service, "AWS::CloudWatch::Alarm").map(([id]) => id);
  const others = /^ServiceWatch(Loads|Drops|Backup|NoBackup|Upgrade|Secret|PartitionsLarge)/;
  assert.deepEqual(
    names.toSorted(),
    alarms
      .filter((id) => !others.test(id))
      .map((id) => `<${id}>`)
      .toSorted(),
  );
  assert.ok(names.length > 10 && names.length < 100, String(names.length));
});

test("an upgrade that another execution has is taken over only if that one ended", () => {
  path("Ours?", "Does its execution run?", "Does it?", "Another one upgrades");
  path("Does it?", "Take it over", "Ours now?", "Look at the alarms");
  path("Ours now?", "Another one upgrades");
  const [gone] = all.get("Does its execution run?")?.Catch ?? [];
  assert.deepEqual([gone?.ErrorEquals, gone?.Next], [["Sfn.ExecutionDoesNotExistException"], "Take it over"]);
  // A refusal changes nothing, so there is nothing to stop.
  for (const id of ["Begin", "Take it over"]) {
    assert.deepEqual(
      all.get(id)?.Catch?.map(({ Next }) => Next),
      ["Refused"],
      id,
    );
  }
});

test("each step has a time limit and retries, and every error after the beginning stops the upgrade", () => {
  const before = ["Look at the group's size", "Begin", "Take it over", "Does its execution run?"];
  const ends = ["Stop", "Start the next execution", "End the machine", "Replace the workers"];
  // While workers are replaced, an error gives them back what they had.
  const meanwhile = ["Look at the workers", "Look at the alarms meanwhile"];
  for (const [id, state] of all) {
    if (state.Type !== "Task") continue;
    assert.ok(state.TimeoutSeconds, `${id} has no time limit`);
    assert.ok(state.Retry, `${id} is not tried again`);
    if (before.includes(id) || ends.includes(id)) continue;
    const caught = state.Catch?.find(({ ErrorEquals }) => ErrorEquals.includes("States.ALL"));
    const next = id === "Give the workers back" ? "Take the definition back" : "Stop";
    assert.equal(caught?.Next, meanwhile.includes(id) ? "Give the workers back" : next, id);
  }
  // What was published and does not run is taken back before.
  assert.deepEqual(
    all.get("Replace the workers")?.Catch?.map(({ Next }) => Next),
    ["Take the definition back"],
  );
  path(
    "Are the workers replaced?",
    "Workers fail",
    "Give the workers back",
    "Take the definition back",
    "Stop",
  );
  path("An alarm meanwhile?", "An alarm is on meanwhile", "Give the workers back");
  // What the group refuses, and what could not be moved, is looked at again in the next round.
  assert.deepEqual(
    all.get("End the machine")?.Catch?.map(({ Next }) => Next),
    ["Count the wait"],
  );
  assert.equal(all.get("Drain the nodes")?.Catch?.[0]?.Next, "Count the wait");
  path("Out of patience?", "Nothing happened", "Stop");
});

test("payloads are valid events of the function, and inputs valid under the contract", () => {
  const schemas = loadSchemas({ strict: true });
  const valid = schemas.getSchema("rebalance-event.schema.json");
  const inputs = schemas.getSchema("rebalance-input.schema.json");
  assert.ok(valid && inputs);
  const holder = "arn:aws:states:eu-west-1:123456789012:execution:example-upgrade:1";
  const template = { LaunchTemplateId: "lt-1", LaunchTemplateName: "nodes", Version: "7" };
  const examples: Record<string, unknown> = {
    ...{ holder, over: holder, release: "0.2.0", desired: 3, stopped: "alarms are on" },
    ...{
      instances: [{ InstanceId: "i-1", LifecycleState: "InService", LaunchTemplate: template }],
      template,
    },
    ...{ least: 3, atOnce: 3, served: true },
  };
  const asked = new Set<string>();
  for (const [id, event] of events(all, examples)) {
    assert.ok(valid(event), `${id}: ${JSON.stringify(valid.errors)} ${JSON.stringify(event)}`);
    asked.add(String(event.step));
  }
  assert.deepEqual([...asked].toSorted(), ["upgrade-begin", "upgrade-end", "upgrade-next"]);
  const others = { heal: { patienceSeconds: 1 }, drain: { node: "i-1" }, scaleOut: {} };
  for (const [release, isValid] of [
    ["0.2.0", true],
    ["0.2", false],
    ["v0.2.0", false],
    ["", false],
  ] as const)
    assert.equal(inputs({ ...others, upgrade: { release } }), isValid, release);
  assert.ok(inputs({ ...others, upgrade: { release: "0.2.0", atOnce: MOST_AT_ONCE } }));
  assert.ok(!inputs({ ...others, upgrade: { release: "0.2.0", atOnce: MOST_AT_ONCE + 1 } }));
  const drain = all.get("Drain the nodes")?.Parameters?.Input as Record<string, unknown>;
  assert.equal(drain["node.$"], "$.next.node");
});

test("an execution stays within 25,000 events, with every step tried twice", () => {
  // Events of a Task that is tried twice: entered, scheduled and started and failed or succeeded for each try, exited.
  const events = ({ Type }: State): number => (Type === "Task" ? 8 : 2);
  const round = ["Look at the alarms", "An alarm?", "Look at the group", "Next", "What next?"];
  const longest = ["The first one?", "Drain the nodes", "Count the round", "Wait", "Too many rounds?"];
  const sum = [...round, ...longest].reduce((so, id) => so + events(all.get(id) as State), 0);
  assert.ok(ROUNDS * sum + 1000 < 25_000, `${ROUNDS * sum}`);
  const canary = ["Let the canary serve", "Look at the alarms again", "An alarm now?", "The canary serves"];
  assert.ok(canary.reduce((so, id) => so + events(all.get(id) as State), 0) < 1000);
  const end = [
    "The first one?",
    "End the machine",
    "A machine ended",
    "Let the group see it",
    "Too many rounds?",
  ];
  const [ends, drains] = [end, longest].map((ids) =>
    ids.reduce((so, id) => so + events(all.get(id) as State), 0),
  );
  assert.ok(Number(ends) <= Number(drains), `${ends} events of an end, ${drains} of a drain`);
  path("Too many rounds?", "Give the upgrade to the next execution", "Start the next execution");
  const patient = all.get("Out of patience?")?.Choices?.[0] as
    | { NumericGreaterThanEquals?: number }
    | undefined;
  assert.equal(patient?.NumericGreaterThanEquals, 7200 / ROUND.toSeconds());
});

test("the machine may do what it does, with this group, these workers and its own executions only", () => {
  const policies = ofType(service, "AWS::IAM::Policy").filter(([id]) => id.startsWith("ServiceUpgrade"));
  const statements = policies.flatMap(([, { Properties }]) => Properties.PolicyDocument.Statement);
  const on = (action: string): string[] =>
    statements
      .filter(({ Action }) => [Action].flat().includes(action))
      .flatMap(({ Resource }) => [Resource].flat().map(flat));
  for (const action of ["SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup"]) {
    const [group = "", ...more] = on(`autoscaling:${action}`);
    assert.deepEqual(more, []);
    assert.match(group, /autoScalingGroup:\*:autoScalingGroupName\/example-nodes$/);
  }
  assert.match(on("ecs:UpdateService").join(), /^<ServiceWorkersService/);
  // ECS authorises an update that names a definition by the roles of its tasks, too.
  const { Properties: task } = named(service, "AWS::ECS::TaskDefinition", "ServiceWorkers");
  assert.deepEqual(on("iam:PassRole"), [task.TaskRoleArn, task.ExecutionRoleArn].map(flat));
  const passing = statements.filter(({ Action }) => [Action].flat().includes("iam:PassRole"));
  assert.deepEqual(
    passing.map(({ Action, Condition }) => [Action, Condition]),
    [["iam:PassRole", { StringEquals: { "iam:PassedToService": "ecs-tasks.amazonaws.com" } }]],
  );
  const without = example({ workers: false }).service;
  assert.ok(!JSON.stringify(ofType(without, "AWS::IAM::Policy")).includes("iam:PassRole"));
  // All that the role may do. Logs, and the start of executions and their events, are CDK's.
  const actions = statements.flatMap(({ Action }) => [Action].flat() as string[]);
  assert.deepEqual([...new Set(actions.filter((action) => !/^(logs|events):/.test(action)))].toSorted(), [
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:SetDesiredCapacity",
    "autoscaling:TerminateInstanceInAutoScalingGroup",
    "cloudwatch:DescribeAlarms",
    "ecs:DescribeServices",
    "ecs:UpdateService",
    "iam:PassRole",
    "lambda:GetAlias",
    "lambda:InvokeFunction",
    "lambda:UpdateAlias",
    "states:DescribeExecution",
    "states:StartExecution",
    "states:StopExecution",
  ]);
  for (const action of ["GetAlias", "UpdateAlias"])
    assert.match(on(`lambda:${action}`).join(), /^<ServiceQueryFunction[0-9A-F]{8}\.Arn>$/);
  assert.ok(on("states:DescribeExecution").some((arn) => arn.endsWith(":execution:example-upgrade:*")));
  assert.ok(on("states:StartExecution").some((arn) => arn.endsWith(":stateMachine:example-upgrade")));
  assert.ok(on("states:StartExecution").some((arn) => arn.startsWith("<ServiceRebalanceDrain")));
  assert.equal(
    named(service, "AWS::StepFunctions::StateMachine", "ServiceUpgrade").Properties.StateMachineName,
    "example-upgrade",
  );
});

test("a deployment alone replaces no worker: definitions that it makes are of another family", () => {
  const { Properties, DependsOn } = named(service, "AWS::ECS::Service", "ServiceWorkers");
  assert.equal(Properties.TaskDefinition, "example-workers");
  const [[task, deployed] = ["", undefined]] = ofType(service, "AWS::ECS::TaskDefinition", 1);
  assert.equal(deployed?.Properties.Family, "example-workers-deployed");
  const [[id, custom] = ["", undefined]] = ofType(service, "Custom::TidegraphWorkerDefinition", 1);
  assert.ok(DependsOn?.includes(id), String(DependsOn));
  const { ServiceToken, ServiceTimeout, ...asked } = custom?.Properties ?? {};
  assert.deepEqual(
    { ...asked, Cluster: flat(asked.Cluster).replace(/[0-9A-F]{8}>$/, ">") },
    { Cluster: "<ServiceWorkersCluster>", Family: "example-workers", Definition: { Ref: task } },
  );
  assert.match(flat(ServiceToken), /^<ServiceWorkersDefinitionFunction/);
  assert.equal(ServiceTimeout, "180");
  // Whatever else of the service a deployment changes, it sends the same family.
  const changed = example({ workers: { count: 5, cpu: 2048, memoryMib: 8192 } }).service;
  const after = named(changed, "AWS::ECS::Service", "ServiceWorkers").Properties;
  assert.deepEqual({ ...after, DesiredCount: 2 }, Properties);
  // With a number that follows the load, a deployment leaves the number alone.
  const desired = (workers: { count?: number; most?: number }) =>
    named(example({ workers }).service, "AWS::ECS::Service", "ServiceWorkers").Properties.DesiredCount;
  assert.deepEqual([desired({}), desired({ count: 3 }), desired({ count: 3, most: 3 })], [2, 3, 3]);
  const busy = example({ workers: { count: 3, most: 9 } }).service;
  assert.equal("DesiredCount" in named(busy, "AWS::ECS::Service", "ServiceWorkers").Properties, false);
  const [[, target] = []] = ofType(busy, "AWS::ApplicationAutoScaling::ScalableTarget", 1);
  assert.deepEqual([target?.Properties.MinCapacity, target?.Properties.MaxCapacity], [3, 9]);
  const replaced = all.get("Replace the workers")?.Parameters as Record<string, unknown>;
  assert.deepEqual([replaced["TaskDefinition.$"], replaced.ForceNewDeployment], ["$.workers.task", true]);
  const { Parameters: published } = all.get("Publish the workers' definition") ?? {};
  assert.deepEqual(published, { step: "publish", ...flatly(asked) });
  const { Definition: _, ...ofService } = flatly(asked);
  assert.deepEqual(all.get("Take the definition back")?.Parameters, { step: "withdraw", ...ofService });
  const given = all.get("Give the workers back")?.Parameters as Record<string, unknown>;
  assert.deepEqual([given["TaskDefinition.$"], given.ForceNewDeployment], ["$.workers.before", undefined]);
});

test("a deployment alone gives callers no other function, and keeps the version that they have", () => {
  const of = (template: typeof service) => {
    const [[version = "", { Properties, DeletionPolicy }] = ["", { Properties: {} }]] = ofType(
      template,
      "AWS::Lambda::Version",
      1,
    );
    const [[id = "", alias] = []] = ofType(template, "AWS::Lambda::Alias", 1);
    assert.match(flat(Properties.FunctionName), /^<ServiceQueryFunction/);
    assert.equal(DeletionPolicy, "RetainExceptOnCreate");
    assert.ok(alias?.DependsOn?.includes(version), String(alias?.DependsOn));
    return { version, id, alias: alias?.Properties };
  };
  const before = of(service);
  assert.equal(before.alias.FunctionVersion, "1");
  // CloudFormation changes an alias whose properties differ.
  const after = of(example({ query: { memoryMib: 3008 } }).service);
  assert.notEqual(after.version, before.version);
  assert.deepEqual([after.id, after.alias], [before.id, before.alias]);
  // A version that is like the one before is refused by AWS.
  assert.equal(of(example({ query: { concurrency: 10 } }).service).version, before.version);
  // The API invokes the alias, and may invoke nothing else.
  const live = `<${before.id}>`;
  for (const [id, { Properties: method }] of ofType(service, "AWS::ApiGateway::Method", 2))
    assert.ok(flat(method.Integration.Uri).includes(`:path/2021-11-15/functions/${live}/`), id);
  const allowed = ofType(service, "AWS::Lambda::Permission").filter(
    ([, { Properties: permission }]) => permission.Principal === "apigateway.amazonaws.com",
  );
  for (const [id, { Properties: permission }] of allowed)
    assert.equal(flat(permission.FunctionName), live, id);
  assert.equal(allowed.length, 2);
  // The machine gives callers the version of this deployment.
  const whole = all.get("Give the new function all queries")?.Parameters as Record<string, unknown>;
  const some = all.get("Give the new function a tenth")?.Parameters as Record<string, Record<string, string>>;
  assert.deepEqual(
    [whole.FunctionVersion, whole.RoutingConfig, some["FunctionVersion.$"]],
    [`<${before.version}.Version>`, { AdditionalVersionWeights: {} }, "$.query.version"],
  );
  const look = all.get("Look at the query function") as { ResultSelector?: Record<string, unknown> };
  assert.equal(look.ResultSelector?.weights, `{"<${before.version}.Version>": 0.1}`);
  assert.equal(some.RoutingConfig?.["AdditionalVersionWeights.$"], "States.StringToJson($.query.weights)");
});

test("several machines are replaced at once, as the deployment or the input says", () => {
  const usual = (of: Definition | undefined) => of?.States["As the deployment says"];
  const atOnce = (props: Parameters<typeof example>[0]): unknown =>
    usual(definitions(example(props).service, UPGRADE).get("upgrade"))?.Result;
  assert.deepEqual([usual(definition)?.Result, usual(definition)?.ResultPath], [1, "$.atOnce"]);
  // The same number in each of three zones: a quarter of the nodes, as far as drains look after them at once.
  for (const [count, most] of [
    [11, 1],
    [12, 3],
    [23, 3],
    [24, 6],
    [100, 6],
  ] as const)
    assert.equal(atOnce({ nodes: { count } }), most, String(count));
  assert.equal(atOnce({ nodes: { count: 12 }, upgrade: { atOnce: 12 } }), 12);
  // What the function is asked with: the execution counts whether its canary served.
  const next = all.get("Next")?.Parameters as Record<string, unknown>;
  assert.deepEqual([next["atOnce.$"], next["served.$"]], ["$.atOnce", "$.count.served"]);
  for (const id of ["Count the round", "Count the wait", "Something happened", "A machine ended"])
    assert.equal(all.get(id)?.Parameters?.["served.$"], "$.count.served", id);
  assert.deepEqual(
    [all.get("The canary serves")?.Result, all.get("The canary serves")?.ResultPath],
    [true, "$.count.served"],
  );
  assert.deepEqual(all.get("Count from zero")?.Result, { rounds: 0, idle: 0, looks: 0, served: false });
  const steps = readFileSync(
    join(import.meta.dirname, "../../engine-core/cluster/src/upgrade/steps.rs"),
    "utf8",
  );
  assert.ok(steps.includes(`pub const MOST_AT_ONCE: u32 = ${MOST_AT_ONCE};`), "the function takes as many");
});

test("machines are compared with what the group starts machines from, also if it chooses among types", () => {
  const selected = (of: Definition | undefined): Record<string, string> => {
    const look = of?.States["Look at the group"] as { ResultSelector?: Record<string, string> } | undefined;
    return look?.ResultSelector ?? {};
  };
  const group = "$.AutoScalingGroups[0]";
  assert.deepEqual(selected(definition), {
    "desired.$": `${group}.DesiredCapacity`,
    "instances.$": `${group}.Instances`,
    "template.$": `${group}.LaunchTemplate`,
  });
  const mixed = example({ nodes: { fallbackInstanceTypes: ["im4gn.xlarge"] } }).service;
  const [[, properties] = []] = ofType(mixed, "AWS::AutoScaling::AutoScalingGroup", 1);
  assert.ok(properties?.Properties.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.Version);
  assert.equal(
    selected(definitions(mixed, UPGRADE).get("upgrade"))["template.$"],
    `${group}.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification`,
  );
  const next = all.get("Next")?.Parameters as Record<string, unknown>;
  assert.deepEqual([next["instances.$"], next["template.$"]], ["$.group.instances", "$.group.template"]);
  // A certain version: each deployment of other settings makes another one.
  const [[, own] = []] = ofType(service, "AWS::AutoScaling::AutoScalingGroup", 1);
  assert.match(
    flat(own?.Properties.LaunchTemplate.Version),
    /^<ServiceNodesTemplate.*\.LatestVersionNumber>$/,
  );
});

test("impossible settings are refused", () => {
  for (const [upgrade, part] of [
    [{ atOnce: 0 }, "upgrade.atOnce"],
    [{ atOnce: 1.5 }, "upgrade.atOnce"],
    // More than there are nodes.
    [{ atOnce: 4 }, "upgrade.atOnce"],
    [{ soak: Duration.days(2) }, "upgrade.soak"],
    [{ patience: Duration.minutes(5) }, "upgrade.patience"],
    [{ patience: Duration.days(3) }, "upgrade.patience"],
  ] as const) {
    assert.throws(
      () => example({ upgrade }),
      (error: Error) => error.message.includes(part),
      part,
    );
  }
});

test("the machine names nothing that is not there", () => {
  const ids = resources(service);
  const text = JSON.stringify(
    named(service, "AWS::StepFunctions::StateMachine", "ServiceUpgrade").Properties,
  );
  for (const [, ref] of text.matchAll(/"Ref":"(Service[A-Za-z0-9]+)"/g)) assert.ok(ids.has(ref ?? ""), ref);
});

test("the drawing matches the definition", () => {
  const page = readFileSync(UPGRADE.path, "utf8");
  assert.ok(
    current(service, UPGRADE) === page,
    "run `npm run draw --workspace infra` and commit what it makes",
  );
});

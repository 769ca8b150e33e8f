/** Nodes that come and go with the load: the bounds, the alarms, the machine that resizes, and what it may do. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Duration } from "aws-cdk-lib";
import { loadSchemas } from "../../contracts/src/validate.ts";
import { current, type Definition, definitions, RESIZE } from "../draw/draw.ts";
import type { NodesProps } from "../lib/constructs/storage-nodes.ts";
import { DRAINS } from "../lib/state-machines/resize.ts";
import { check, events, states } from "./definitions.ts";
import { example, flat, named, ofType } from "./support.ts";

const { service } = example({ nodes: { most: 9 } });
const definition = definitions(service, RESIZE).get("resize") as Definition;
const all = new Map(states(definition));

/** Walks from a state, and takes at each choice the one that leads to the next of these. */
function path(from: string, ...to: string[]): void {
  let at = from;
  for (const next of to) {
    const state = all.get(at);
    const leads = [...(state?.Choices ?? []).map(({ Next }) => Next), state?.Next, state?.Default];
    assert.ok(leads.includes(next), `${at} leads to ${leads.join(", ")}, not to ${next}`);
    at = next;
  }
}

test("the number of nodes is fixed by default", () => {
  const fixed = example().service;
  const group = named(fixed, "AWS::AutoScaling::AutoScalingGroup", "ServiceNodes").Properties;
  assert.deepEqual([group.MinSize, group.MaxSize], ["3", "316"]);
  for (const type of ["AWS::StepFunctions::StateMachine", "AWS::CloudWatch::Alarm", "AWS::Events::Rule"])
    for (const [id] of ofType(fixed, type)) assert.ok(!/Autoscaling|NodesFull|NodesNotResized/.test(id), id);
});

test("the group has room for the most nodes and one that replaces each, and ends none by itself", () => {
  const group = named(service, "AWS::AutoScaling::AutoScalingGroup", "ServiceNodes").Properties;
  assert.deepEqual([group.MinSize, group.MaxSize], ["3", "316"]);
  assert.equal(group.NewInstancesProtectedFromScaleIn, true);
  // A deployment must not undo what the load asked for.
  assert.equal(group.DesiredCapacity, undefined);
  assert.equal(ofType(service, "AWS::AutoScaling::ScalingPolicy").length, 0);
});

test("the load is the larger of processors and memory in proportion to their targets", () => {
  const alarm = (id: string) =>
    named(service, "AWS::CloudWatch::Alarm", `ServiceAutoscaling${id}`).Properties;
  const metrics = (id: string): Map<string, Record<string, unknown>> =>
    new Map(alarm(id).Metrics.map((one: { Id: string }) => [one.Id, one]));
  for (const [id, period] of [
    ["NodesBusy", 60],
    ["NodesIdle", 300],
  ] as const) {
    const found = metrics(id);
    assert.equal(found.get("processor_load")?.Expression, "100 * processors / 60");
    assert.equal(found.get("memory_load")?.Expression, "10000 * used / 75");
    const returned = [...found.values()].filter(({ ReturnData }) => ReturnData !== false);
    assert.deepEqual(
      returned.map(({ Expression }) => Expression),
      ["MAX([processor_load, memory_load]) + 0 * memory_load"],
    );
    const stat = (name: string) => {
      const stat = found.get(name)?.MetricStat;
      assert.ok(stat, name);
      const { Metric, Period, Stat } = stat as {
        Metric: Record<string, unknown>;
        Period: number;
        Stat: string;
      };
      const { MetricName, Namespace, Dimensions } = Metric;
      const dimensions = (Dimensions as { Name: string; Value: unknown }[]).map(
        (one) => `${one.Name}=${flat(one.Value)}`,
      );
      return [Namespace, MetricName, Stat, Period, ...dimensions];
    };
    assert.deepEqual(stat("processors"), [
      ...["AWS/EC2", "CPUUtilization", "Average", period],
      "AutoScalingGroupName=example-nodes",
    ]);
    assert.deepEqual(stat("used"), [
      ...["Tidegraph", "tidegraph_memory_used_ratio", "Maximum", period],
      "Deployment=example",
    ]);
    // Being busy is no reason to wake somebody up.
    assert.equal(alarm(id).AlarmActions, undefined);
    assert.equal(alarm(id).TreatMissingData, "notBreaching");
  }
  const [busy, idle] = [alarm("NodesBusy"), alarm("NodesIdle")];
  assert.deepEqual(
    [busy.Threshold, busy.ComparisonOperator, busy.EvaluationPeriods],
    [100, "GreaterThanThreshold", 5],
  );
  assert.deepEqual(
    [idle.Threshold, idle.ComparisonOperator, idle.EvaluationPeriods],
    [50, "LessThanThreshold", 6],
  );
  const other = example({ nodes: { most: 9, scaling: { cpuPercent: 40, memoryPercent: 50 } } }).service;
  const expressions = JSON.stringify(named(other, "AWS::CloudWatch::Alarm", "ServiceAutoscalingNodesBusy"));
  assert.ok(expressions.includes("processors / 40") && expressions.includes("used / 50"), expressions);
  // The agent has to publish what the alarms read.
  const template = JSON.stringify(named(service, "AWS::EC2::LaunchTemplate", "ServiceNodes"));
  assert.ok(template.includes("^tidegraph_memory_used_ratio$"));
});

test("every state is reachable, has an end, a time limit and retries, and errors end the execution", () => {
  check("resize", definition);
  for (const [id, state] of all) {
    if (state.Type !== "Task") continue;
    assert.ok(state.TimeoutSeconds && state.Retry, id);
    if (["Keep the node", "Keep the node after a failure"].includes(id)) continue;
    const caught = state.Catch?.find(({ ErrorEquals }) => ErrorEquals.includes("States.ALL"));
    assert.equal(caught?.Next, "Was one drained before it failed?", id);
  }
  path("Was one drained before it failed?", "Keep the node after a failure", "Failed");
  path("Was one drained before it failed?", "Failed");
});

test("a busy fleet gets a node, an idle one loses exactly one that was drained, and then nothing changes for a while", () => {
  path("Count from zero", "Look for another one", "Another one?", "Look at the load", "How is the load?");
  path("How is the load?", "Busy", "Look at the group", "Next", "What next?");
  path("How is the load?", "Idle", "Look at the group");
  path("How is the load?", "Neither busy nor idle");
  path("What next?", "Start a machine", "Cool down", "Resized");
  path("What next?", "Count the drain", "Too often?", "Drain the node", "Look at the load meanwhile");
  path("Look at the load meanwhile", "Busy again?", "Look at the group");
  path("What next?", "End the machine", "Cool down", "Resized");
  assert.equal(all.get("Cool down")?.Seconds, 600);
  assert.deepEqual(all.get("End the machine")?.Parameters, {
    "InstanceId.$": "$.next.node",
    ShouldDecrementDesiredCapacity: true,
  });
  assert.equal(all.get("Start a machine")?.Parameters?.["DesiredCapacity.$"], "$.next.capacity");
  const slow = example({ nodes: { most: 9, scaling: { cooldown: Duration.hours(1) } } }).service;
  assert.equal(definitions(slow, RESIZE).get("resize")?.States["Cool down"]?.Seconds, 3600);
});

test("a node that is needed again, cannot go or cannot be emptied is kept", () => {
  path("Busy again?", "Keep the node", "Kept");
  path("What next?", "Was one drained?", "Keep the node");
  path("Was one drained?", "Not now");
  path("Too often?", "It does not get empty", "Was one drained before it failed?");
  const [often] = all.get("Too often?")?.Choices ?? [];
  assert.equal(often?.NumericGreaterThan, DRAINS);
});

test("one execution resizes at a time", () => {
  path("Another one?", "Another one resizes");
  const [second] = all.get("Another one?")?.Choices ?? [];
  assert.deepEqual([second?.Variable, second?.NumericGreaterThan], ["$.others.running", 1]);
  const asked = all.get("Look for another one")?.Parameters;
  assert.match(flat(asked?.StateMachineArn), /:stateMachine:example-resize$/);
  assert.equal(asked?.StatusFilter, "RUNNING");
  const { StateMachineName } = named(
    service,
    "AWS::StepFunctions::StateMachine",
    "ServiceAutoscaling",
  ).Properties;
  assert.equal(StateMachineName, "example-resize");
  const rule = named(service, "AWS::Events::Rule", "ServiceAutoscaling").Properties;
  assert.equal(rule.ScheduleExpression, "rate(5 minutes)");
  assert.match(flat(rule.Targets[0].Arn), /^<ServiceAutoscalingResize/);
});

test("payloads are valid events of the function", () => {
  const valid = loadSchemas({ strict: true }).getSchema("rebalance-event.schema.json");
  assert.ok(valid);
  const examples: Record<string, unknown> = {
    ...{ wanted: "more", desired: 3, ids: ["i-1"], states: ["InService"], node: "i-1" },
  };
  const asked = new Set<string>();
  for (const [id, event] of events(all, examples)) {
    assert.ok(valid(event), `${id}: ${JSON.stringify(valid.errors)} ${JSON.stringify(event)}`);
    asked.add(String(event.step));
  }
  assert.deepEqual([...asked].toSorted(), ["keep", "scale-next"]);
  const { least, most } = all.get("Next")?.Parameters ?? {};
  assert.deepEqual([least, most], [3, 9]);
  assert.deepEqual(
    ["Busy", "Idle"].map((id) => (all.get(id) as { Result?: unknown }).Result),
    [{ wanted: "more" }, { wanted: "fewer" }],
  );
});

test("the machine may do what it does, with this group only", () => {
  const policies = ofType(service, "AWS::IAM::Policy").filter(([id]) =>
    id.startsWith("ServiceAutoscalingResizeRole"),
  );
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
  assert.ok(on("states:ListExecutions").every((arn) => arn.endsWith(":stateMachine:example-resize")));
  assert.ok(on("states:StartExecution").every((arn) => arn.startsWith("<ServiceRebalanceDrain")));
});

test("people are told when the fleet cannot grow, and neither that nor a failure stops an upgrade", () => {
  const full = named(service, "AWS::CloudWatch::Alarm", "ServiceWatchNodesFull").Properties;
  assert.deepEqual([full.Threshold, full.EvaluationPeriods], [100, 60]);
  assert.equal(full.AlarmActions.length, 1);
  // `watch.test.ts` has its metrics.
  named(service, "AWS::CloudWatch::Alarm", "ServiceWatchNodesNotResized");
  const upgrade = JSON.stringify(
    named(service, "AWS::StepFunctions::StateMachine", "ServiceUpgrade").Properties,
  );
  assert.ok(upgrade.includes("ServiceWatchNodesAway"));
  assert.ok(!/ServiceWatchNodes(Full|NotResized)/.test(upgrade));
});

test("impossible settings are refused", () => {
  for (const [nodes, part] of [
    [{ most: 3 }, "nodes.most is 3, and has to be a whole number from 4 to 300"],
    [{ count: 5, most: 4 }, "nodes.most is 4, and has to be a whole number from 6 to 300"],
    [{ most: 4.5 }, "nodes.most is 4.5"],
    [{ most: 301 }, "nodes.most is 301"],
    [{ scaling: { cpuPercent: 50 } }, "nodes.scaling"],
    [{ most: 9, scaling: { cpuPercent: 95 } }, "nodes.scaling.cpuPercent is 95"],
    [{ most: 9, scaling: { memoryPercent: 5 } }, "nodes.scaling.memoryPercent is 5"],
    [{ most: 9, scaling: { cooldown: Duration.seconds(5) } }, "nodes.scaling.cooldown"],
    [{ most: 9, scaling: { cooldown: Duration.days(2) } }, "nodes.scaling.cooldown"],
  ] as [NodesProps, string][]) {
    assert.throws(
      () => example({ nodes }),
      (error: Error) => error.message.includes(part),
      part,
    );
  }
});

test("the drawing matches the definition", () => {
  const page = readFileSync(RESIZE.path, "utf8");
  assert.ok(
    current(service, RESIZE) === page,
    "run `npm run draw --workspace infra` and commit what it makes",
  );
});

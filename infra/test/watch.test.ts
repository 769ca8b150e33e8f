/** Alarms of a fleet that cannot heal, and of executions that end without success. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Topic } from "aws-cdk-lib/aws-sns";
import { METRICS } from "../lib/constructs/metrics.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { example, flat, named, ofType, only, placeholders, testApp } from "./support.ts";

const { service } = example({ backup: {}, nodes: { most: 9 } });

// biome-ignore lint/suspicious/noExplicitAny: templates have no types
type Properties = any;

/** Returns the properties of an alarm of `Watch`. */
function alarm(name: string, template: Template = service): Properties {
  return named(template, "AWS::CloudWatch::Alarm", `ServiceWatch${name}`).Properties;
}

/** Returns the metrics of an alarm as `NAME of RESOURCE`, without the hashes of logical ids. */
function metrics({ Metrics, MetricName, Dimensions }: Properties): string[] {
  const of = (name: string, dimensions: { Value: unknown }[]): string =>
    `${name} of ${flat(dimensions.at(-1)?.Value).replaceAll(/[<>]|[0-9A-F]{8}/g, "")}`;
  if (MetricName) return [of(MetricName, Dimensions)];
  return Metrics.flatMap(({ MetricStat }: Properties) =>
    MetricStat ? [of(MetricStat.Metric.MetricName, MetricStat.Metric.Dimensions)] : [],
  ).toSorted();
}

/** Returns the expression of an alarm on several metrics. */
function expression({ Metrics }: Properties): string {
  return Metrics.find(({ ReturnData }: Properties) => ReturnData !== false).Expression;
}

test("repeated failures of the machines that move replicas go off", () => {
  const fails = alarm("MovesFail");
  const machines = ["Drain", "Heal", "ScaleOut"].map((name) => `ServiceRebalance${name}StateMachine`);
  assert.deepEqual(
    metrics(fails),
    ["ExecutionsFailed", "ExecutionsTimedOut"].flatMap((what) =>
      machines.map((machine) => `${what} of ${machine}`),
    ),
  );
  const periods = fails.Metrics.flatMap(({ MetricStat }: Properties) => MetricStat?.Period ?? []);
  assert.deepEqual([...new Set(periods)], [1800], "the detector tries again after ten minutes");
  // The second failure goes off, and the first one that took six hours.
  assert.deepEqual([fails.Threshold, fails.ComparisonOperator], [1, "GreaterThanThreshold"]);
  assert.equal(
    expression(fails),
    "SUM([FILL(heal_failed, 0), 2 * FILL(heal_timed_out, 0), FILL(scale_out_failed, 0), " +
      "2 * FILL(scale_out_timed_out, 0), FILL(drain_failed, 0), 2 * FILL(drain_timed_out, 0)])",
  );
  // Executions that time out are those of these machines: none of them runs for ever.
  for (const name of ["Heal", "ScaleOut", "Drain"]) {
    const { Properties } = named(service, "AWS::StepFunctions::StateMachine", `ServiceRebalance${name}`);
    assert.match(flat(Properties.DefinitionString), /"TimeoutSeconds":21600/, name);
  }
});

test("a detector without success goes off, whatever keeps it", () => {
  const unchecked = alarm("MovesUnchecked");
  assert.deepEqual(metrics(unchecked), ["ExecutionsSucceeded of ServiceRebalanceDetectStateMachine"]);
  assert.deepEqual(
    [unchecked.Threshold, unchecked.ComparisonOperator, unchecked.Period, unchecked.EvaluationPeriods],
    [1, "LessThanThreshold", 300, 2],
  );
  // A rule that is disabled, or that EventBridge cannot carry out, leaves no metric of the machine at all.
  assert.equal(unchecked.TreatMissingData, "breaching");
  // The detector calls the function that makes the steps of moves, so its throttles and errors fail it.
  const detect = named(service, "AWS::StepFunctions::StateMachine", "ServiceRebalanceDetect").Properties;
  assert.match(flat(detect.DefinitionString), /<ServiceRebalanceFunction/);
  const rule = named(service, "AWS::Events::Rule", "ServiceRebalanceEachMinute").Properties;
  assert.equal(rule.ScheduleExpression, "rate(1 minute)");
});

test("events of machines that reach no state machine go off", () => {
  const unheard = alarm("MachinesUnheard");
  assert.deepEqual(metrics(unheard), [
    "FailedInvocations of ServiceNodesLaunched",
    "FailedInvocations of ServiceRebalanceTakenAway",
  ]);
  // These are the rules about machines that start something; others only tell the topic.
  const rules = ofType(service, "AWS::Events::Rule").filter(
    ([, { Properties }]) =>
      JSON.stringify(Properties.EventPattern ?? {}).includes("Lifecycle Action") &&
      JSON.stringify(Properties.Targets).includes("StateMachine"),
  );
  assert.deepEqual(
    rules.map(([id]) => `FailedInvocations of ${id.replace(/[0-9A-F]{8}$/, "")}`).toSorted(),
    metrics(unheard),
  );
});

test("a rotation that fails goes off, where there is one, and stops no upgrade", () => {
  const failed = alarm("SecretNotRotated");
  assert.match(metrics(failed)[0] ?? "", /^Errors of ServiceRotation/);
  assert.equal(failed.Period, 3600);
  const { service: without } = example({ secretRotation: false });
  assert.ok(ofType(without, "AWS::CloudWatch::Alarm").every(([id]) => !id.includes("SecretNotRotated")));
  const upgrade = named(service, "AWS::StepFunctions::StateMachine", "ServiceUpgrade").Properties;
  const looked = flat(upgrade.DefinitionString);
  for (const stops of ["MovesFail", "MovesUnchecked", "MachinesUnheard", "WritesStopped"])
    assert.ok(looked.includes(`ServiceWatch${stops}`), stops);
  for (const goesOn of ["SecretNotRotated", "BackupFailed"])
    assert.ok(!looked.includes(`ServiceWatch${goesOn}`), goesOn);
});

test("backups, upgrades and changes of size that take too long or are stopped go off too", () => {
  for (const [name, machine] of [
    ["BackupFailed", "ServiceBackupMachine"],
    ["UpgradeStopped", "ServiceUpgradeStateMachine"],
    ["NodesNotResized", "ServiceAutoscalingResizeStateMachine"],
  ] as const) {
    const found = metrics(alarm(name)).filter((one) => one.startsWith("Executions"));
    assert.deepEqual(
      found.map((one) => one.replace(/ of .*/, "")),
      ["ExecutionsAborted", "ExecutionsFailed", "ExecutionsTimedOut"],
      name,
    );
    for (const one of found) assert.ok(one.includes(` of ${machine}`), one);
    assert.match(
      expression(alarm(name)),
      /^SUM\(\[FILL\(failed, 0\), FILL\(timed_out, 0\), FILL\(aborted, 0\)/,
    );
  }
  assert.ok(
    metrics(alarm("NodesNotResized")).includes("FailedInvocations of ServiceAutoscalingEachFewMinutes"),
  );
});

test("a record that no replica can apply goes off, by a metric that nodes publish", () => {
  const stopped = alarm("WritesStopped");
  assert.deepEqual(
    [stopped.MetricName, stopped.Statistic, stopped.Threshold, stopped.ComparisonOperator],
    ["tidegraph_halted_version", "Maximum", 0, "GreaterThanThreshold"],
  );
  assert.deepEqual(
    stopped.Dimensions.map(({ Name }: { Name: string }) => Name),
    [METRICS.dimension],
  );
  const data = flat(
    named(service, "AWS::EC2::LaunchTemplate", "ServiceNodes").Properties.LaunchTemplateData.UserData[
      "Fn::Base64"
    ],
  );
  assert.ok(data.includes("^tidegraph_halted_version$"), "the agent does not select it");
  const names = join(import.meta.dirname, "..", "..", "engine-core", "platform", "src", "metric.rs");
  assert.ok(readFileSync(names, "utf8").includes('"tidegraph_halted_version"'), "no process writes it");
});

test("a sum of metrics is not missing while one of them is", () => {
  const expressions = ofType(service, "AWS::CloudWatch::Alarm").flatMap(([id, { Properties }]) =>
    (Properties.Metrics ?? []).flatMap(({ Expression }: { Expression?: string }) =>
      Expression ? [[id, Expression] as const] : [],
    ),
  );
  assert.ok(expressions.some(([id]) => id.startsWith("ServiceWatchMapThrottled")));
  // The load of nodes is meant to be missing with its summand.
  for (const [id, text] of expressions)
    if (!/Nodes(Full|Busy|Idle)/.test(id)) assert.doesNotMatch(text, /^[a-z]\w* \+ /, `${id}: ${text}`);
  assert.equal(metrics(alarm("MapThrottled")).length, 7);
});

test("a topic of the same app takes both alarms and events", () => {
  const app = testApp();
  const { state } = new StateStack(app, "State", { name: "example" });
  const elsewhere = new Stack(app, "Elsewhere");
  const alarms = new Topic(elsewhere, "Alarms");
  const stack = new ServiceStack(app, "Service", { state, bundle: placeholders(), alarms });
  const template = Template.fromStack(elsewhere);
  const { PolicyDocument, Topics } = only(template, "AWS::SNS::TopicPolicy").Properties;
  const statements: Properties[] = PolicyDocument.Statement;
  const publishers = statements
    .filter(({ Effect, Action }) => Effect === "Allow" && Action === "sns:Publish")
    .map(({ Principal }) => Principal.Service);
  assert.deepEqual(publishers.toSorted(), ["cloudwatch.amazonaws.com", "events.amazonaws.com"]);
  const ofAlarms = statements.find(({ Principal }) => Principal.Service === "cloudwatch.amazonaws.com");
  assert.deepEqual(ofAlarms.Condition, { StringEquals: { "aws:SourceAccount": { Ref: "AWS::AccountId" } } });
  assert.deepEqual([ofAlarms.Resource], Topics);
  const ofRules = statements.find(({ Principal }) => Principal.Service === "events.amazonaws.com");
  assert.deepEqual([ofRules.Resource], Topics);
  // A condition would have to name rules of a stack that is made after the topic.
  assert.equal(ofRules.Condition, undefined);
  // The rules and alarms are in the other stack, and publish to this topic.
  const [exported] = Object.values(template.toJSON().Outputs as Record<string, Properties>).flatMap(
    ({ Value, Export }) => (flat(Value) === flat(Topics[0]) ? [Export.Name] : []),
  );
  const published = { "Fn::ImportValue": exported };
  const deployment = Template.fromStack(stack);
  const told = ofType(deployment, "AWS::Events::Rule").flatMap(([id, { Properties }]) =>
    Properties.Targets.some(({ Arn }: Properties) => isDeepStrictEqual(Arn, published)) ? [id] : [],
  );
  for (const name of ["MachinesChange", "WorkersFail"])
    assert.ok(
      told.some((id) => id.startsWith(`ServiceWatch${name}`)),
      told.join(", "),
    );
  for (const [id, { Properties }] of ofType(deployment, "AWS::CloudWatch::Alarm"))
    if (Properties.AlarmActions !== undefined) assert.deepEqual(Properties.AlarmActions, [published], id);
});

test("workers that are all away go off, and not before the service was made", () => {
  const away = alarm("WorkersAway");
  assert.deepEqual(
    metrics(away).map((one) => one.replace(/ of .*/, "")),
    ["HealthyHostCount", "UnHealthyHostCount"],
  );
  const statistics = away.Metrics.flatMap(({ MetricStat }: Properties) => MetricStat?.Stat ?? []);
  assert.deepEqual([...new Set(statistics)], ["Maximum"]);
  assert.equal(expression(away), "IF(FILL(healthy, 0) < 1, 1, 0) + FILL(unhealthy, 0)");
  // A balancer without targets has neither metric.
  assert.equal(away.TreatMissingData, "breaching");
  const [[workers = ""] = []] = ofType(service, "AWS::ECS::Service", 1);
  const { DependsOn = [] } = named(service, "AWS::CloudWatch::Alarm", "ServiceWatchWorkersAway");
  assert.ok(DependsOn.includes(workers), DependsOn.join());
});

test("throttles of the map end with their minutes: a metric of each minute is in the sum, and adds nothing", () => {
  const throttled = alarm("MapThrottled");
  assert.ok(expression(throttled).endsWith("0 * FILL(consumed, 0)])"), expression(throttled));
  assert.ok(metrics(throttled).some((one) => one.startsWith("ConsumedWriteCapacityUnits of StateMap")));
});

test("a fleet that grew has machines that were not replaced, and these stop no upgrade", () => {
  const missing = alarm("NodesNotReplaced");
  assert.deepEqual(
    metrics(missing).map((one) => one.replace(/ of .*/, "")),
    ["GroupDesiredCapacity", "GroupInServiceInstances"],
  );
  assert.equal(expression(missing), "desired - in_service");
  assert.deepEqual(
    [missing.Threshold, missing.ComparisonOperator, missing.EvaluationPeriods],
    [0, "GreaterThanThreshold", 60],
  );
  // An upgrade that replaces several machines at once has fewer than it wants for a while.
  const upgrade = named(service, "AWS::StepFunctions::StateMachine", "ServiceUpgrade").Properties;
  assert.ok(!flat(upgrade.DefinitionString).includes("ServiceWatchNodesNotReplaced"));
});

test("executions that join a machine or settle a load, and take too long or are stopped, go off", () => {
  for (const name of ["JoinFailed", "LoadsUntold"])
    assert.deepEqual(
      metrics(alarm(name)).map((one) => one.replace(/ of .*/, "")),
      ["ExecutionsAborted", "ExecutionsFailed", "ExecutionsTimedOut"],
      name,
    );
});

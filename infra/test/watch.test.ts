/** Alarms of a fleet that cannot heal, and of executions that end without success. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import type { Template } from "aws-cdk-lib/assertions";
import { Topic } from "aws-cdk-lib/aws-sns";
import { METRICS } from "../lib/constructs/metrics.ts";
import { example, flat, named, ofType, only, testApp } from "./support.ts";

const { state, service } = example({ backup: {}, nodes: { most: 9 } });

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
  assert.equal(metrics(alarm("MapThrottled")).length, 6);
});

/** Returns the rule that tells the topic of events, and fails if there is none. */
function rule(name: string): Properties {
  return named(service, "AWS::Events::Rule", `ServiceWatch${name}`).Properties;
}

test("machines that cannot start or were terminated, and deployments of workers that fail, are told as they happen", () => {
  assert.deepEqual(rule("MachinesChange").EventPattern, {
    source: ["aws.autoscaling"],
    "detail-type": [
      "EC2 Instance Launch Unsuccessful",
      "EC2 Instance Terminate Successful",
      "EC2 Instance Terminate Unsuccessful",
    ],
    detail: { AutoScalingGroupName: ["example-nodes"] },
  });
  const group = only(service, "AWS::AutoScaling::AutoScalingGroup").Properties;
  assert.equal(group.AutoScalingGroupName, "example-nodes");
  const { resources, ...pattern } = rule("WorkersFail").EventPattern;
  assert.deepEqual(pattern, {
    source: ["aws.ecs"],
    "detail-type": ["ECS Deployment State Change"],
    detail: { eventName: ["SERVICE_DEPLOYMENT_FAILED"] },
  });
  const [[workers = "", { Properties }] = ["", { Properties: {} }]] = ofType(service, "AWS::ECS::Service", 1);
  // `Ref` of a service is its ARN, which ECS names among the resources of the event.
  assert.deepEqual(resources, [{ Ref: workers }]);
  // ECS sends this event only for services with a circuit breaker.
  assert.equal(Properties.DeploymentConfiguration.DeploymentCircuitBreaker.Enable, true);
  const { service: without } = example({ workers: false });
  assert.deepEqual(
    ofType(without, "AWS::Events::Rule").filter(([id]) => id.includes("WorkersFail")),
    [],
  );
});

test("rules that tell reach the topic: its policy and its key let EventBridge publish", () => {
  const [[topic = ""] = []] = ofType(service, "AWS::SNS::Topic", 1);
  for (const name of ["MachinesChange", "WorkersFail"]) {
    const { State, Targets } = rule(name);
    assert.equal(State, "ENABLED", name);
    // The event as it is, and no role: the topic's policy admits EventBridge.
    assert.deepEqual(Targets, [{ Arn: { Ref: topic }, Id: "Target0" }], name);
  }
  const { PolicyDocument, Topics } = only(service, "AWS::SNS::TopicPolicy").Properties;
  assert.deepEqual(Topics, [{ Ref: topic }]);
  const admitted = PolicyDocument.Statement.filter(
    ({ Effect, Principal }: Properties) => Effect === "Allow" && Principal.Service === "events.amazonaws.com",
  ).map(({ Action, Resource, Condition }: Properties) => ({ Action, Resource, Condition }));
  assert.deepEqual(admitted, [{ Action: "sns:Publish", Resource: { Ref: topic }, Condition: undefined }]);
  // The topic is encrypted, so that EventBridge needs its key too.
  const { KeyPolicy } = named(state, "AWS::KMS::Key", "StateKey").Properties;
  const [uses, ...more] = KeyPolicy.Statement.filter(
    ({ Principal }: Properties) => Principal.Service === "events.amazonaws.com",
  );
  assert.deepEqual([uses?.Effect, uses?.Action, more], ["Allow", ["kms:Decrypt", "kms:GenerateDataKey"], []]);
  const encrypts = only(service, "AWS::SNS::Topic").Properties.KmsMasterKeyId;
  assert.match(flat(encrypts), /^<StateKey\w+Arn/);
});

test("a topic of others is told by the same alarms and rules, and its policy is theirs", () => {
  const arn = "arn:aws:sns:eu-west-1:111122223333:ours";
  const topic = Topic.fromTopicArn(new Stack(testApp(), "Elsewhere"), "Topic", arn);
  const { service: given } = example({ alarms: topic });
  for (const type of ["AWS::SNS::Topic", "AWS::SNS::TopicPolicy"]) given.resourceCountIs(type, 0);
  for (const name of ["MachinesChange", "WorkersFail"]) {
    const { Targets } = named(given, "AWS::Events::Rule", `ServiceWatch${name}`).Properties;
    assert.deepEqual(Targets, [{ Arn: arn, Id: "Target0" }]);
  }
  for (const [id, { Properties }] of ofType(given, "AWS::CloudWatch::Alarm"))
    assert.deepEqual([Properties.AlarmActions, Properties.OKActions], [[arn], [arn]], id);
});

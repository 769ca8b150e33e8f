/** What a removal or a failed creation leaves behind: nothing that keeps the next deployment from being made. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { GraphService } from "../lib/constructs/service.ts";
import { GraphState } from "../lib/constructs/state.ts";
import { example, flat, ofType, only, placeholders, type Resource, testApp } from "./support.ts";

/** Everything that has functions, state machines or log groups. */
const { state, service } = example({
  backup: {},
  encryption: {},
  nodes: { most: 6 },
  graphs: [{ name: "orders" }],
});
const stacks = [state, service];
const all = (type: string): [string, Resource][] => stacks.flatMap((stack) => ofType(stack, type));

test("no role of a function may create log groups, which would come back after the stack deleted them", () => {
  const functions = all("AWS::Lambda::Function");
  assert.ok(functions.length >= 9, functions.map(([id]) => id).join());
  const groups = new Set(all("AWS::Logs::LogGroup").map(([id]) => id));
  for (const [id, { Properties }] of functions) {
    const log = Properties.LoggingConfig?.LogGroup?.Ref;
    assert.ok(groups.has(log), `${id} logs to a group that the stack does not have`);
    const role: string = Properties.Role["Fn::GetAtt"][0];
    const [, found] = all("AWS::IAM::Role").find(([one]) => one === role) ?? [];
    assert.deepEqual(found?.Properties.ManagedPolicyArns ?? [], [], `${id}: managed policies of ${role}`);
    const inline = all("AWS::IAM::Policy").filter(([, policy]) =>
      policy.Properties.Roles.some(({ Ref }: { Ref: string }) => Ref === role),
    );
    const text = JSON.stringify([found?.Properties.Policies, inline.map(([, policy]) => policy.Properties)]);
    assert.match(text, /logs:PutLogEvents/, id);
    assert.doesNotMatch(text, /logs:(CreateLogGroup|\*)|"\*:\*"|"Action":"\*"/, id);
  }
});

test("log groups to which AWS delivers have names that do not lengthen the policy of CloudWatch Logs", () => {
  const name = new Map(
    all("AWS::Logs::LogGroup").map(([id, { Properties }]) => [id, flat(Properties.LogGroupName)]),
  );
  const machines = all("AWS::StepFunctions::StateMachine");
  assert.ok(machines.length >= 10, machines.map(([id]) => id).join());
  const delivered = new Set<string>();
  for (const [id, { Properties }] of machines) {
    for (const { CloudWatchLogsLogGroup } of Properties.LoggingConfiguration.Destinations) {
      const group: string = CloudWatchLogsLogGroup.LogGroupArn["Fn::GetAtt"][0];
      assert.match(name.get(group) ?? "", /^\/aws\/vendedlogs\/states\/tidegraph\/example\/[a-z-]+$/, id);
      delivered.add(group);
    }
  }
  const [ofBrokers] = ofType(state, "AWS::Logs::LogGroup", 1).map(([id]) => id);
  const { LoggingInfo } = only(state, "AWS::MSK::Cluster").Properties;
  assert.equal(LoggingInfo.BrokerLogs.CloudWatchLogs.LogGroup.Ref, ofBrokers);
  assert.match(name.get(ofBrokers ?? "") ?? "", /^\/aws\/vendedlogs\/msk\/tidegraph\/example\/brokers-/);
  for (const [id, { Type }] of [...all("AWS::Logs::LogGroup")]) {
    assert.equal(Type, "AWS::Logs::LogGroup");
    if (delivered.has(id) || id === ofBrokers) continue;
    assert.match(name.get(id) ?? "", /^\/tidegraph\/example\//, id);
  }
  assert.equal(new Set(name.values()).size, name.size, "two groups have one name");
});

test("the key lets CloudWatch Logs encrypt every log group", () => {
  const { Statement } = only(state, "AWS::KMS::Key").Properties.KeyPolicy;
  const logs = Statement.find(({ Sid }: { Sid?: string }) => Sid === "LogGroups");
  const patterns: string[] = logs.Condition.ArnLike["kms:EncryptionContext:aws:logs:arn"].map(
    (arn: unknown) => flat(arn).split(":log-group:")[1]?.replace(/\*$/, ""),
  );
  for (const [id, { Properties }] of all("AWS::Logs::LogGroup")) {
    assert.ok(Properties.KmsKeyId, id);
    const name = flat(Properties.LogGroupName);
    assert.ok(
      patterns.some((prefix) => name.startsWith(prefix)),
      `${id}: ${name}`,
    );
  }
});

test("in one stack with the service, buckets with objects do not stop the rollback of a creation", () => {
  const stack = new Stack(testApp(), "One");
  const own = new GraphState(stack, "State", { name: "example", deletionProtection: false });
  new GraphService(stack, "Service", { state: own, bundle: placeholders(), backup: {} });
  const template = Template.fromStack(stack);
  // Nodes write checkpoints and the logs of their start, and people may drop files.
  for (const [id, { DeletionPolicy, UpdateReplacePolicy }] of ofType(template, "AWS::S3::Bucket", 4)) {
    const isOfBackups = id.startsWith("ServiceBackup");
    assert.equal(DeletionPolicy, isOfBackups ? "RetainExceptOnCreate" : "Retain", id);
    assert.equal(UpdateReplacePolicy, "Retain", id);
  }
  // Apart, the state is complete before a process starts, and a creation that fails leaves no empty buckets.
  const apart = ofType(state, "AWS::S3::Bucket", 3).filter(([id]) => !id.startsWith("StateBucketsLogs"));
  for (const [id, { DeletionPolicy }] of apart) assert.equal(DeletionPolicy, "RetainExceptOnCreate", id);
});

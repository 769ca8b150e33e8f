/**
 * The runbook has a section for each alarm of the templates, and none for an alarm that does not exist. `grantOperate` allows
 * its commands.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Template } from "aws-cdk-lib/assertions";
import * as iam from "aws-cdk-lib/aws-iam";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { exampleWithEverything } from "./options.ts";
import { example, flat, named, ofType, placeholders, testApp } from "./support.ts";

const RUNBOOK = readFileSync(join(import.meta.dirname, "..", "..", "docs", "runbook.md"), "utf8");

/** Returns the sections by their names, as logical ids have them. */
function sections(): Map<string, string> {
  const [, ...found] = RUNBOOK.split(/^## /m);
  return new Map(
    found.map((section) => {
      const [name = "", ...text] = section.split("\n");
      return [name.replaceAll(/[^A-Za-z0-9]/g, ""), text.join("\n").trim()];
    }),
  );
}

test("each alarm has a section", () => {
  const { service } = exampleWithEverything();
  const ids = ["Alarm", "CompositeAlarm"].flatMap((type) => ofType(service, `AWS::CloudWatch::${type}`));
  const alarms = ids.map(([id]) =>
    // Each broker has an alarm of its own, and each window of an objective.
    id
      .replace(/^Service(Watch|Objectives|Autoscaling)/, "")
      .replace(/[0-9A-F]{8}$/, "")
      .replace(/\d+$/, ""),
  );
  const told = sections();
  assert.deepEqual([...new Set(alarms)].toSorted(), [...told.keys()].toSorted());
  for (const [name, text] of told) assert.ok(text.length > 100, name);
});

test("the log groups that it names exist", () => {
  const { service, state } = example({ backup: {}, encryption: {}, nodes: { most: 9 } });
  const groups = [...ofType(service, "AWS::Logs::LogGroup"), ...ofType(state, "AWS::Logs::LogGroup")];
  const names = groups.map(([, { Properties }]) => JSON.stringify(Properties.LogGroupName));
  for (const name of [
    ...["access", "query", "workers", "join", "nodes", "brokers", "rotation", "ingest-settle"],
    "certificates",
    ...["backup", "backup-machine", "resize", "drain"],
  ]) {
    assert.ok(RUNBOOK.includes(`\`${name}\``), name);
    assert.ok(
      names.some((one) => one.includes(`/${name}"`) || one.includes(`${name}-`)),
      name,
    );
  }
});

/** Actions of commands of AWS's command line whose names do not say them, and services that have other names in IAM. */
const ACTIONS: Readonly<Record<string, string>> = {
  "lambda invoke": "lambda:InvokeFunction",
  "s3api list-object-versions": "s3:ListBucketVersions",
};
const SERVICES: Readonly<Record<string, string>> = { stepfunctions: "states" };

/** Returns the action that a command needs, such as `ecs:DescribeServices` for `aws ecs describe-services`. */
function action(service: string, command: string): string {
  const name = command.replaceAll(/(^|-)([a-z])/g, (_, _dash, letter: string) => letter.toUpperCase());
  return ACTIONS[`${service} ${command}`] ?? `${SERVICES[service] ?? service}:${name}`;
}

test("an operator may run each command, and start each machine that it names", () => {
  const app = testApp();
  const { state } = new StateStack(app, "State", { name: "example", graph: "people" });
  const stack = new ServiceStack(app, "Service", {
    ...{ state, bundle: placeholders(), backup: {}, encryption: {}, nodes: { most: 9 } },
  });
  stack.service.grantOperate(new iam.Role(stack, "Operator", { assumedBy: new iam.AccountRootPrincipal() }));
  const template = Template.fromStack(stack);
  const { Statement } = named(template, "AWS::IAM::Policy", "OperatorDefaultPolicy").Properties
    .PolicyDocument;
  const allowed = new Map<string, string[]>();
  for (const { Action, Resource } of Statement as { Action: string | string[]; Resource: unknown }[])
    for (const one of [Action].flat())
      allowed.set(one, [...(allowed.get(one) ?? []), ...[Resource].flat().map(flat)]);
  const commands = [...RUNBOOK.matchAll(/\baws ([a-z0-9]+) ([a-z-]+)/g)].map(
    ([, service = "", command = ""]) => action(service, command),
  );
  assert.ok(new Set(commands).size >= 10, commands.join());
  for (const command of commands) assert.ok(allowed.has(command), `${command} is not granted`);
  // Machines are named by outputs of the stack.
  const outputs = Object.entries(template.toJSON().Outputs) as [string, { Value: unknown }][];
  const machines = new Set([...RUNBOOK.matchAll(/`([A-Z][a-z]+Machine)`/g)].map(([, name = ""]) => name));
  assert.deepEqual([...machines].toSorted(), [
    ...["BackupMachine", "DrainMachine", "SettleMachine", "UpgradeMachine"],
  ]);
  for (const name of machines) {
    const [, output] = outputs.find(([id]) => id.startsWith(`Service${name}`)) ?? [];
    const arn = flat(output?.Value);
    assert.ok(allowed.get("states:StartExecution")?.includes(arn), `${name}: ${arn}`);
    assert.ok(allowed.get("states:ListExecutions")?.includes(arn), name);
  }
  assert.equal(allowed.get("states:StartExecution")?.length, machines.size);
  // The data of graphs, shells and values of secrets are not among what it allows.
  for (const one of [
    "execute-api:Invoke",
    "s3:PutObject",
    "ssm:StartSession",
    "secretsmanager:GetSecretValue",
  ])
    assert.ok(!allowed.has(one), one);
  assert.ok(allowed.get("s3:GetObject")?.every((arn) => arn.endsWith("/machines/*")));
});

test("the quotas that a deployment needs are named where it is prepared, as the doctor names them", () => {
  const root = join(import.meta.dirname, "..", "..");
  const checks = readFileSync(join(root, "infra", "doctor", "checks", "account.ts"), "utf8");
  const [, before = ""] =
    /^## Prerequisites\n(.*?)^## /ms.exec(readFileSync(join(root, "docs", "deploy.md"), "utf8")) ?? [];
  for (const [name, service] of [
    ["STANDARD_VCPUS", "ec2"],
    ["FARGATE_VCPUS", "fargate"],
  ]) {
    const [, code = ""] = new RegExp(`${name} = "(L-[0-9A-F]+)"`).exec(checks) ?? [];
    assert.ok(code !== "" && before.includes(`--service-code ${service} --quota-code ${code}`), name);
  }
  // What helps if the group cannot be made; the name is that of the template.
  const { service } = example();
  const [[, group] = []] = ofType(service, "AWS::AutoScaling::AutoScalingGroup", 1);
  assert.equal(group?.Properties.AutoScalingGroupName, "example-nodes");
  assert.match(before, /delete-auto-scaling-group --force-delete --auto-scaling-group-name NAME-nodes/);
});

/** Backups on a schedule: the task and its rights, the state machine, the alarms, and nodes that wait for a restore. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Duration, Stack } from "aws-cdk-lib";
import * as s3 from "aws-cdk-lib/aws-s3";
import { AwsSolutionsChecks } from "cdk-nag";
import type { Definition } from "../draw/draw.ts";
import { InvalidProp } from "../lib/check.ts";
import type { BackupProps } from "../lib/index.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { check } from "./definitions.ts";
import { dependents, example, flat, hasFlag, named, ofType, only, placeholders, testApp } from "./support.ts";

const { app, service } = example({ backup: {} });
const SOURCES = join(import.meta.dirname, "..", "..", "services", "storage", "src");

/** Returns what a role may do, as `action resource`. */
function allowed(beginning: string): string[] {
  const { Statement } = named(service, "AWS::IAM::Policy", beginning).Properties.PolicyDocument;
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);
  const short = (text: string): string =>
    text
      .replaceAll(/<State(Buckets|Map|Log)?([A-Z][a-z]+)[0-9A-F]{8}(Arn|Ref)?[0-9A-F]*>/g, "<$2>")
      .replaceAll(/<Service([A-Z][A-Za-z]+?)[0-9A-F]{8}(?:\.Arn|(\.Name))?>/g, "<$1$2>")
      .replaceAll(/\{"Fn::Select".*\}(?=\/)/g, "CLUSTER");
  return Statement.flatMap(({ Action, Resource }: { Action: unknown; Resource: unknown }) =>
    list(Action).flatMap((action) => list(Resource).map((resource) => `${action} ${short(flat(resource))}`)),
  ).toSorted();
}

function container(): { Command: unknown[]; Environment?: unknown; ReadonlyRootFilesystem: boolean } {
  return named(service, "AWS::ECS::TaskDefinition", "ServiceBackup").Properties.ContainerDefinitions[0];
}

test("the task runs the command that backs up, with flags that it has", () => {
  const command = container().Command.map(flat);
  assert.equal(command[0], "backup");
  const after = (flag: string): string => command[command.indexOf(flag) + 1] ?? "";
  assert.match(after("--to"), /^s3:\/\/<ServiceBackupBucket/);
  assert.match(after("--objects"), /^s3:\/\/<StateBucketsData/);
  assert.deepEqual([after("--graph"), after("--keep")], ["people", "14"]);
  assert.equal(after("--kafka-iam-region"), "<AWS::Region>");
  const source = ["backup.rs", "connect.rs"]
    .map((name) => readFileSync(join(SOURCES, name), "utf8"))
    .join("");
  for (const flag of command.filter((word) => word.startsWith("--"))) assert.ok(hasFlag(source, flag), flag);
  assert.equal(container().Environment, undefined, "variables would be shown to everyone");
  assert.equal(container().ReadonlyRootFilesystem, true);
  const manifest = JSON.parse(readFileSync(join(app.outdir, "Service.assets.json"), "utf8"));
  assert.equal(Object.keys(manifest.dockerImages).length, 2);
});

test("the task reads the graph and writes only backups", () => {
  const kafka = "arn:<AWS::Partition>:kafka:<AWS::Region>:<AWS::AccountId>";
  const topic = `${kafka}:topic/CLUSTER/tidegraph-people`;
  assert.deepEqual(allowed("ServiceBackupRole"), [
    "dynamodb:GetItem <Table>",
    "dynamodb:Query <Table>",
    "dynamodb:Query <Table>/index/by-epoch",
    "kafka-cluster:Connect <Cluster>",
    `kafka-cluster:DescribeGroup ${kafka}:group/CLUSTER/tidegraph`,
    `kafka-cluster:DescribeTopic ${topic}`,
    `kafka-cluster:ReadData ${topic}`,
    "kms:Decrypt <BackupKey>",
    "kms:Decrypt <Key>",
    "kms:GenerateDataKey <BackupKey>",
    "kms:GenerateDataKey <Key>",
    "s3:AbortMultipartUpload <BackupBucket>/*",
    "s3:DeleteObject <BackupBucket>/*",
    "s3:GetObject <BackupBucket>/*",
    "s3:GetObject <Data>/*",
    "s3:ListBucket <BackupBucket>",
    "s3:ListBucket <Data>",
    "s3:PutObject <BackupBucket>/*",
  ]);
  const starts = allowed("ServiceBackupMachineRole").filter((one) => !one.startsWith("logs:"));
  const actions = [...new Set(starts.map((one) => one.split(" ")[0]))];
  assert.deepEqual(actions, [
    ...["ecs:DescribeTasks", "ecs:RunTask", "ecs:StopTask"],
    ...["events:DescribeRule", "events:PutRule", "events:PutTargets", "iam:PassRole"],
  ]);
});

test("what runs is stopped before it is deleted, after the schedule is gone", () => {
  const [[teardown = "", resource] = []] = ofType(service, "Custom::TidegraphBackupTeardown", 1);
  const of = (type: string, name: string): string => {
    const [[id = ""] = []] = ofType(service, type).filter(([one]) => one.startsWith(`ServiceBackup${name}`));
    assert.ok(id, `${type} ${name}`);
    return id;
  };
  // Created after these, so deleted before them; its permissions and its log outlive it.
  for (const id of [
    of("AWS::ECS::Cluster", "Cluster"),
    of("AWS::EC2::SecurityGroup", "SecurityGroup"),
    of("AWS::StepFunctions::StateMachine", "Machine"),
    of("AWS::Lambda::Function", "Teardown"),
    of("AWS::IAM::Policy", "Teardown"),
    of("AWS::Logs::LogGroup", "Teardown"),
  ])
    assert.ok(dependents(service, id).has(teardown), id);
  assert.ok(
    dependents(service, teardown).has(of("AWS::Events::Rule", "Schedule")),
    "nothing starts after it",
  );
  assert.deepEqual(Object.keys(resource?.Properties).toSorted(), [
    ...["Cluster", "Machine", "ServiceTimeout", "ServiceToken"],
  ]);
  const { Timeout } = named(service, "AWS::Lambda::Function", "ServiceBackupTeardown").Properties;
  assert.ok(Number(resource?.Properties.ServiceTimeout) > Timeout, "an answer has time to arrive");
});

test("the function that stops backups stops nothing else", () => {
  const actions = allowed("ServiceBackupTeardownRole").filter((one) => !one.startsWith("logs:"));
  const arn = (service: string): string => `arn:<AWS::Partition>:${service}:<AWS::Region>:<AWS::AccountId>`;
  assert.deepEqual(actions, [
    `ecs:DescribeTasks ${arn("ecs")}:task/<BackupCluster>/*`,
    "ecs:ListTasks *",
    `ecs:StopTask ${arn("ecs")}:task/<BackupCluster>/*`,
    "states:ListExecutions <BackupMachine>",
    `states:StopExecution ${arn("states")}:execution:<BackupMachine.Name>:*`,
  ]);
  const { Statement } = named(service, "AWS::IAM::Policy", "ServiceBackupTeardownRole").Properties
    .PolicyDocument;
  const list = Statement.find(({ Action }: { Action: unknown }) => Action === "ecs:ListTasks");
  assert.match(flat(list.Condition.ArnEquals["ecs:cluster"]), /^<ServiceBackupCluster/);
});

/** Returns the text that the machines of nodes run at their first start. */
function userData(template: typeof service): string {
  return flat(
    only(template, "AWS::EC2::LaunchTemplate").Properties.LaunchTemplateData.UserData["Fn::Base64"],
  );
}

/** Returns what the nodes' role may do with a bucket or a key whose name matches. */
function ofNodes(template: typeof service, name: RegExp): string[] {
  const { Statement } = named(template, "AWS::IAM::Policy", "ServiceNodesRole").Properties.PolicyDocument;
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);
  return Statement.flatMap(({ Action, Resource }: { Action: unknown; Resource: unknown }) =>
    list(Action).flatMap((action) => list(Resource).map((resource) => `${action} ${flat(resource)}`)),
  )
    .filter((one: string) => name.test(one))
    .map((one: string) => one.replaceAll(/<ServiceBackup(Bucket|Key)[0-9A-F]*\.Arn>/g, "<$1>"))
    .toSorted();
}

test("nodes archive the log: they read backups, add archives, and delete and change no backup", () => {
  assert.match(userData(service), /^TIDEGRAPH_ARCHIVE_TO=s3:\/\/<ServiceBackupBucket/m);
  assert.match(userData(service), /^TIDEGRAPH_ARCHIVE_EVERY_S=300$/m);
  const source = readFileSync(join(SOURCES, "archive.rs"), "utf8");
  for (const [, name] of userData(service).matchAll(/^(TIDEGRAPH_ARCHIVE\w+)=/gm))
    assert.ok(source.includes(`env = "${name}"`), name);
  assert.deepEqual(ofNodes(service, /ServiceBackup/), [
    "kms:Decrypt <Key>",
    "kms:GenerateDataKey <Key>",
    "s3:AbortMultipartUpload <Bucket>/people/archives/*",
    "s3:GetObject <Bucket>/people/*",
    "s3:ListBucket <Bucket>",
    "s3:PutObject <Bucket>/people/archives/*",
  ]);
  const several = example({ graphs: [{ name: "orders" }], backup: { archiveEvery: Duration.seconds(30) } });
  assert.match(userData(several.service), /^TIDEGRAPH_ARCHIVE_EVERY_S=30$/m);
  assert.deepEqual(
    ofNodes(several.service, /^s3:(Put|Delete).*ServiceBackup/),
    ["orders", "people"].map((graph) => `s3:PutObject <Bucket>/${graph}/archives/*`),
  );
});

test("an alarm tells when writes are not archived, unless nothing is to be archived", () => {
  const alarm = named(service, "AWS::CloudWatch::Alarm", "ServiceWatchNotArchived").Properties;
  assert.deepEqual(
    [alarm.MetricName, alarm.Statistic, alarm.Threshold, alarm.EvaluationPeriods],
    ["tidegraph_archive_lag_seconds", "Maximum", 1200, 5],
  );
  // Nodes write the metric as long as they archive, so none at all says that they do not.
  assert.deepEqual([alarm.ComparisonOperator, alarm.TreatMissingData], ["GreaterThanThreshold", "breaching"]);
  assert.match(userData(service), /\^tidegraph_archive_lag_seconds\$/);
  const { service: none } = example({ backup: { archiveEvery: Duration.seconds(0) } });
  assert.doesNotMatch(userData(none), /ARCHIVE|archive_lag/);
  assert.deepEqual(ofNodes(none, /ServiceBackup/), []);
  const alarms = ofType(none, "AWS::CloudWatch::Alarm").map(([id]) => id);
  assert.ok(alarms.some((id) => id.startsWith("ServiceWatchNoBackup")));
  assert.ok(!alarms.some((id) => id.startsWith("ServiceWatchNotArchived")));
});

test("the bucket and its key outlive the stack", () => {
  for (const [type, id] of [
    ["AWS::S3::Bucket", "ServiceBackupBucket"],
    ["AWS::KMS::Key", "ServiceBackupKey"],
  ] as const) {
    const { DeletionPolicy, UpdateReplacePolicy } = named(service, type, id);
    assert.equal(DeletionPolicy, "RetainExceptOnCreate", id);
    assert.equal(UpdateReplacePolicy, "Retain", id);
  }
  const { Properties } = named(service, "AWS::S3::Bucket", "ServiceBackupBucket");
  assert.equal(Properties.VersioningConfiguration.Status, "Enabled");
  assert.ok(Object.values(Properties.PublicAccessBlockConfiguration).every((one) => one === true));
});

test("a rule starts the machine, which waits for the task and tries it again", () => {
  const rule = named(service, "AWS::Events::Rule", "ServiceBackupSchedule").Properties;
  assert.equal(rule.ScheduleExpression, "rate(1 day)");
  const machine = named(service, "AWS::StepFunctions::StateMachine", "ServiceBackup").Properties;
  const definition: Definition = JSON.parse(flat(machine.DefinitionString));
  check("backup", definition);
  const [[, step] = ["", undefined]] = Object.entries(definition.States);
  assert.match(flat(step?.Resource), /:states:::ecs:runTask\.sync$/);
  assert.equal(step?.TimeoutSeconds, 6 * 3600);
  assert.ok(step?.Retry);
  assert.ok((definition.TimeoutSeconds ?? 0) > 3 * 6 * 3600);
});

test("alarms tell of a backup that failed, and of none for longer than a day", () => {
  // `watch.test.ts` has its metrics.
  named(service, "AWS::CloudWatch::Alarm", "ServiceWatchBackupFailed");
  const none = named(service, "AWS::CloudWatch::Alarm", "ServiceWatchNoBackup").Properties;
  assert.deepEqual(
    [none.MetricName, none.Period, none.EvaluationPeriods, none.DatapointsToAlarm, none.Threshold],
    ["ExecutionsSucceeded", 3600, 26, 26, 1],
  );
  assert.deepEqual([none.ComparisonOperator, none.TreatMissingData], ["LessThanThreshold", "breaching"]);
});

test("the task reaches the brokers, the endpoints and S3, and nothing reaches the task", () => {
  const group = named(service, "AWS::EC2::SecurityGroup", "ServiceBackupSecurityGroup").Properties;
  assert.equal(group.SecurityGroupIngress, undefined);
  const inbound = ofType(service, "AWS::EC2::SecurityGroupIngress").map(([, { Properties }]) => Properties);
  const from = inbound.filter(({ SourceSecurityGroupId }) =>
    /ServiceBackup/.test(flat(SourceSecurityGroupId)),
  );
  assert.deepEqual(from.map(({ FromPort }) => FromPort).toSorted(), [443, 9098]);
  const endpoints = ofType(service, "AWS::EC2::VPCEndpoint").map(([, { Properties }]) => Properties);
  const objects = endpoints.find(({ ServiceName }) => /\.s3$/.test(flat(ServiceName)));
  const written = objects.PolicyDocument.Statement.find(({ Action }: { Action: unknown }) =>
    JSON.stringify(Action).includes("s3:PutObject"),
  );
  assert.match(JSON.stringify(written.Resource), /ServiceBackupBucket/);
});

test("backups pass AWS's rules, also without workers and into a given bucket", () => {
  assert.deepEqual(new AwsSolutionsChecks(app).validateScope(app).violations, []);
  const lean = example({ workers: false, backup: { every: Duration.hours(6), keep: 3 } });
  const images = ofType(lean.service, "AWS::EC2::VPCEndpoint").filter(([id]) => /Ecr|Images/.test(id));
  assert.equal(images.length, 2, "the task needs its image");
  const rule = named(lean.service, "AWS::Events::Rule", "ServiceBackupSchedule").Properties;
  assert.equal(rule.ScheduleExpression, "rate(6 hours)");
  const away = s3.Bucket.fromBucketName(new Stack(), "Away", "backups-elsewhere");
  const given = example({ backup: { bucket: away } });
  assert.equal(ofType(given.service, "AWS::S3::Bucket").length, 0);
  const task = named(given.service, "AWS::ECS::TaskDefinition", "ServiceBackup").Properties;
  assert.ok(task.ContainerDefinitions[0].Command.includes("s3://backups-elsewhere"));
  assert.deepEqual(new AwsSolutionsChecks(given.app).validateScope(given.app).violations, []);
});

const KEY = "arn:aws:kms:eu-west-1:222233334444:key/11111111-2222-3333-4444-555555555555";

test("the roles may use the key of a bucket that is given by its name, and the outputs name the roles", () => {
  const bucket = s3.Bucket.fromBucketName(new Stack(), "Away", "backups-elsewhere");
  const given = example({ backup: { bucket, keyArn: KEY } });
  for (const role of ["ServiceBackupRole", "ServiceNodesRole"]) {
    const { Statement } = named(given.service, "AWS::IAM::Policy", role).Properties.PolicyDocument;
    const ofKey = Statement.filter(({ Resource }: { Resource: unknown }) => Resource === KEY);
    assert.equal(ofKey.length, 1, role);
    assert.deepEqual(ofKey[0].Action, ["kms:Decrypt", "kms:GenerateDataKey"], role);
    assert.equal(
      flat(ofKey[0].Condition.StringEquals["kms:ViaService"]),
      "s3.<AWS::Region>.<AWS::URLSuffix>",
      role,
    );
  }
  assert.deepEqual(new AwsSolutionsChecks(given.app).validateScope(given.app).violations, []);
  const outputs = Object.entries(given.service.toJSON().Outputs as Record<string, { Value: unknown }>);
  for (const [name, role] of [
    ["ServiceBackupRole", "ServiceBackupRole"],
    ["ServiceNodesRole", "ServiceNodesRole"],
  ] as const) {
    const found = outputs.filter(([id]) => new RegExp(`^${name}[0-9A-F]{8}$`).test(id));
    assert.equal(found.length, 1, name);
    assert.match(flat(found[0]?.[1].Value), new RegExp(`^<${role}[0-9A-F]{8}\\.Arn>$`));
  }
});

test("a bucket of another region is told to the task and to nodes, and refused where no route leads to it", () => {
  const bucket = s3.Bucket.fromBucketAttributes(new Stack(), "Far", {
    bucketName: "backups-far-away",
    region: "eu-north-1",
  });
  const far = example({ backup: { bucket } });
  const [task] = named(far.service, "AWS::ECS::TaskDefinition", "ServiceBackup").Properties
    .ContainerDefinitions;
  assert.equal(task.Command[task.Command.indexOf("--backups-region") + 1], "eu-north-1");
  assert.match(userData(far.service), /^TIDEGRAPH_BACKUPS_REGION=eu-north-1$/m);
  const source = readFileSync(join(SOURCES, "backup.rs"), "utf8");
  assert.match(source, /env = "TIDEGRAPH_BACKUPS_REGION"\)\]\s*backups_region: /);
  assert.doesNotMatch(userData(service), /BACKUPS_REGION/);
  const stack = (region: string) => {
    const env = { account: "111122223333", region };
    const app = testApp();
    const { state } = new StateStack(app, "State", { name: "example", env });
    return new ServiceStack(app, "Service", { state, bundle: placeholders(), backup: { bucket }, env });
  };
  stack("eu-north-1");
  assert.throws(
    () => stack("eu-west-1"),
    (error) =>
      error instanceof InvalidProp &&
      error.prop === "backup.bucket" &&
      /bucket in eu-west-1/.test(error.message),
  );
});

test("what cannot be is refused with the fix", () => {
  const wrong: [BackupProps, string, string][] = [
    [{ every: Duration.minutes(90) }, "backup.every", "whole hours, from 1 to 166"],
    [{ every: Duration.days(7) }, "backup.every", "whole hours, from 1 to 166"],
    [{ keep: 0 }, "backup.keep", "from 1 to 10000"],
    [{ archiveEvery: Duration.seconds(5) }, "backup.archiveEvery", "from 10 seconds to 1 hour"],
    [{ archiveEvery: Duration.hours(2) }, "backup.archiveEvery", "from 10 seconds to 1 hour"],
    [{ archiveEvery: Duration.millis(90_500) }, "backup.archiveEvery", "whole seconds"],
    [{ longest: Duration.minutes(5) }, "backup.longest", "from 10 minutes to 14 days"],
    [{ keyArn: KEY }, "backup.keyArn", "with a bucket that is given without its key"],
    [
      { bucket: s3.Bucket.fromBucketName(new Stack(), "Named", "a-bucket"), keyArn: "alias/mine" },
      "backup.keyArn",
      "the ARN of a key",
    ],
    [{ cpu: 512 as 1024 }, "backup.cpu", "one of 1024, 2048, 4096, 8192"],
    [{ baseImage: "amazonlinux:latest" }, "backup.baseImage", "by its digest"],
  ];
  for (const [backup, prop, fix] of wrong) {
    assert.throws(
      () => example({ backup }),
      (error) => error instanceof InvalidProp && error.prop === prop && error.message.includes(fix),
      prop,
    );
  }
});

test("nodes wait for a restore, and may read the backups", () => {
  const bucket = s3.Bucket.fromBucketName(new Stack(), "Away", "backups-elsewhere");
  const { service: waiting } = example({ restoreFrom: bucket });
  const script = flat(
    only(waiting, "AWS::EC2::LaunchTemplate").Properties.LaunchTemplateData.UserData["Fn::Base64"],
  );
  assert.match(script, /^TIDEGRAPH_AWAIT_RESTORE=true$/m);
  const admin = readFileSync(join(SOURCES, "admin.rs"), "utf8");
  assert.ok(admin.includes('env = "TIDEGRAPH_AWAIT_RESTORE"'));
  const role = JSON.stringify(named(waiting, "AWS::IAM::Policy", "ServiceNodesRole").Properties);
  assert.match(role, /backups-elsewhere\/\*/);
  const none = flat(
    only(example().service, "AWS::EC2::LaunchTemplate").Properties.LaunchTemplateData.UserData["Fn::Base64"],
  );
  assert.doesNotMatch(none, /AWAIT_RESTORE/);
});

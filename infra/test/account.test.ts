/** What a customer's account asks for: tags, a permissions boundary, a key of its own, drops from other accounts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PermissionsBoundary, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import * as kms from "aws-cdk-lib/aws-kms";
import type { GraphStateProps } from "../lib/constructs/state.ts";
import { TAG } from "../lib/names.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { example, flat, named, ofType, placeholders, resources, testApp } from "./support.ts";

/** Resources that AWS charges for, and that can have tags. */
const PAID = [
  "AWS::AutoScaling::AutoScalingGroup",
  "AWS::CloudWatch::Alarm",
  "AWS::DynamoDB::Table",
  "AWS::EC2::LaunchTemplate",
  "AWS::EC2::VPCEndpoint",
  "AWS::ECS::Service",
  "AWS::ElasticLoadBalancingV2::LoadBalancer",
  "AWS::KMS::Key",
  "AWS::Lambda::Function",
  "AWS::Logs::LogGroup",
  "AWS::MSK::Cluster",
  "AWS::S3::Bucket",
  "AWS::SecretsManager::Secret",
  "AWS::StepFunctions::StateMachine",
];

test("everything that costs has the tag of the deployment, machines and workers too", () => {
  const { state, service } = example({ backup: {} });
  let found = 0;
  for (const [id, { Type, Properties }] of [...resources(state), ...resources(service)]) {
    if (!PAID.includes(Type)) continue;
    const text = JSON.stringify(Properties.Tags ?? Properties.TagSpecifications ?? []);
    assert.ok(text.includes(TAG) && text.includes("example"), `${id} of ${Type}: ${text}`);
    found += 1;
  }
  assert.ok(found > 50, String(found));
  const { Tags } = named(service, "AWS::AutoScaling::AutoScalingGroup", "ServiceNodes").Properties;
  assert.ok(
    Tags.some((tag: { Key: string; PropagateAtLaunch: boolean }) => tag.Key === TAG && tag.PropagateAtLaunch),
  );
  const { LaunchTemplateData } = named(service, "AWS::EC2::LaunchTemplate", "ServiceNodes").Properties;
  const launched = LaunchTemplateData.TagSpecifications.filter((one: object) =>
    JSON.stringify(one).includes(TAG),
  );
  assert.deepEqual(launched.map(({ ResourceType }: { ResourceType: string }) => ResourceType).toSorted(), [
    "instance",
    "volume",
  ]);
  assert.equal(named(service, "AWS::ECS::Service", "ServiceWorkers").Properties.PropagateTags, "SERVICE");
});

test("a permissions boundary of the stacks is on every role", () => {
  const app = testApp();
  const permissionsBoundary = PermissionsBoundary.fromName("limits");
  const { state } = new StateStack(app, "State", { name: "example", permissionsBoundary });
  const service = new ServiceStack(app, "Service", {
    state,
    bundle: placeholders(),
    backup: {},
    permissionsBoundary,
  });
  const roles = ofType(Template.fromStack(service), "AWS::IAM::Role");
  assert.ok(roles.length > 15, String(roles.length));
  for (const [id, { Properties }] of roles)
    assert.match(flat(Properties.PermissionsBoundary), /:policy\/limits$/, id);
});

/** Makes a state, and returns its template. */
function stateWith(props: Partial<GraphStateProps>): Template {
  const { state } = new StateStack(testApp(), "State", { name: "example", graph: "people", ...props });
  return Template.fromStack(Stack.of(state));
}

test("a key of one's own encrypts everything, and no other key is made", () => {
  const arn = "arn:aws:kms:eu-west-1:111122223333:key/0";
  const key = kms.Key.fromKeyArn(new Stack(testApp(), "Elsewhere"), "Key", arn);
  const app = testApp();
  const stack = new StateStack(app, "State", { name: "example", key });
  const made = new ServiceStack(app, "Service", { state: stack.state, bundle: placeholders() });
  const own = new Stack(app, "Own");
  new StateStack(app, "Other", { name: "other", key: new kms.Key(own, "Key") });
  const template = Template.fromStack(stack);
  template.resourceCountIs("AWS::KMS::Key", 0);
  const [[, cluster] = ["", undefined]] = ofType(template, "AWS::MSK::Cluster", 1);
  assert.equal(cluster?.Properties.EncryptionInfo.EncryptionAtRest.DataVolumeKMSKeyId, arn);
  const [[, table] = ["", undefined]] = ofType(template, "AWS::DynamoDB::Table", 1);
  assert.equal(table?.Properties.SSESpecification.KMSMasterKeyId, arn);
  for (const [id, { Properties }] of ofType(template, "AWS::S3::Bucket")) {
    const [rule] = Properties.BucketEncryption.ServerSideEncryptionConfiguration;
    const used = rule.ServerSideEncryptionByDefault.KMSMasterKeyID;
    assert.equal(used, /Logs/.test(id) ? undefined : arn, id);
  }
  const service = Template.fromStack(made);
  const { KmsKeyId } = named(service, "AWS::SecretsManager::Secret", "ServiceSecretsFleet").Properties;
  assert.equal(KmsKeyId, arn);
  // A key of the same app gets what services need.
  const [[, theirs] = ["", undefined]] = ofType(Template.fromStack(own), "AWS::KMS::Key", 1);
  const sids = theirs?.Properties.KeyPolicy.Statement.map(({ Sid }: { Sid?: string }) => Sid);
  assert.deepEqual(sids.filter(Boolean), ["LogGroups", "Alarms", "Events"]);
});

test("other accounts drop files of this graph and read the reports, and nothing else", () => {
  const template = stateWith({ dropFrom: ["444455556666", "777788889999"] });
  const policies = ofType(template, "AWS::S3::BucketPolicy");
  const statements = policies.flatMap(([id, { Properties }]) =>
    Properties.PolicyDocument.Statement.map((one: Record<string, unknown>) => [id, one] as const),
  );
  const theirs = statements.filter(([, one]) => JSON.stringify(one.Principal).includes("444455556666"));
  assert.deepEqual(
    theirs.map(([id, { Action, Resource, Effect }]) => [
      id.replace(/[0-9A-F]{8}$/, ""),
      Effect,
      Action,
      flat(Resource).replace(/^<.*>/, ""),
    ]),
    [
      ["StateBucketsDropPolicy", "Allow", ["s3:AbortMultipartUpload", "s3:PutObject"], "/drop/people/*"],
      ["StateBucketsDropPolicy", "Allow", "s3:GetObject", "/reports/people/*"],
    ],
  );
  for (const [, one] of theirs) assert.ok(JSON.stringify(one.Principal).includes("777788889999"));
  const [[, key] = ["", undefined]] = ofType(template, "AWS::KMS::Key", 1);
  const use = key?.Properties.KeyPolicy.Statement.find(({ Sid }: { Sid?: string }) => Sid === "OthersDrop");
  assert.deepEqual(use.Action, ["kms:Decrypt", "kms:GenerateDataKey"]);
  assert.match(flat(use.Condition.StringEquals["kms:ViaService"]), /^s3\./);
  // Without the prop nobody else is named.
  assert.ok(!JSON.stringify(stateWith({}).toJSON()).includes("OthersDrop"));
});

/** The stack with the durable state of a graph. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Duration, Stack } from "aws-cdk-lib";
import { Match, Template } from "aws-cdk-lib/assertions";
import { GraphState } from "../lib/constructs/state.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { flat, named, ofType, only, resources, testApp } from "./support.ts";

const stack = new StateStack(testApp(), "State", { name: "example", graph: "people" });
const template = Template.fromStack(stack);

/** The first eight digits of the id that AWS draws for a stack. */
const UNIQUE =
  /\{"Fn::Select":\[0,\{"Fn::Split":\["-",\{"Fn::Select":\[2,.*?"AWS::StackId"\}\]\}\]\}\]\}\]\}/;

test("resources with data are retained when the stack is deleted, and not when their creation is rolled back", () => {
  assert.equal(stack.terminationProtection, true);
  const kept = [
    "AWS::DynamoDB::Table",
    "AWS::EC2::RouteTable",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::Subnet",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPC",
    "AWS::KMS::Key",
    "AWS::Logs::LogGroup",
    "AWS::MSK::Cluster",
    "AWS::MSK::Configuration",
    "AWS::S3::Bucket",
  ];
  for (const type of kept) {
    const found = ofType(template, type);
    assert.ok(found.length > 0, type);
    for (const [id, resource] of found) {
      // CloudFormation cannot delete a bucket with access logs in it, so the rollback does not try.
      const isNeverEmpty = id.startsWith("StateBucketsLogs");
      assert.equal(resource.DeletionPolicy, isNeverEmpty ? "Retain" : "RetainExceptOnCreate", id);
      assert.equal(resource.UpdateReplacePolicy, "Retain", id);
    }
  }
  assert.equal(only(template, "AWS::DynamoDB::Table").Properties.DeletionProtectionEnabled, true);
});

test("what a retained resource refers to is retained too, so that the stack can be deleted", () => {
  // A key's alias and a bucket's policy refer to what stays, which is no hindrance.
  for (const [id, { Properties, DeletionPolicy }] of resources(template)) {
    if (!/^Retain/.test(DeletionPolicy ?? "")) continue;
    for (const other of referred(Properties)) {
      const needed = resources(template).get(other);
      assert.match(needed?.DeletionPolicy ?? "Delete", /^Retain/, `${id} stays and needs ${other}`);
    }
  }
  const given = new Stack(testApp(), "Given");
  new GraphState(given, "State", { name: "example", log: { addresses: "b-1.example.com:9094" } });
  // Nothing stays in the VPC then, so that it is deleted.
  for (const type of ["AWS::EC2::VPC", "AWS::EC2::Subnet"])
    for (const [id, { DeletionPolicy }] of ofType(Template.fromStack(given), type))
      assert.equal(DeletionPolicy, undefined, id);
});

/** Returns the logical ids to which a value refers. */
function referred(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  const { Ref, "Fn::GetAtt": get } = value as { Ref?: string; "Fn::GetAtt"?: [string, string] };
  if (Ref !== undefined) return Ref.startsWith("AWS::") ? [] : [Ref];
  return get ? [get[0]] : Object.values(value).flatMap(referred);
}

test("no resource keeps a name that the next attempt to create the stack needs", () => {
  const named = {
    "AWS::DynamoDB::Table": "TableName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::MSK::Cluster": "ClusterName",
    "AWS::MSK::Configuration": "Name",
  };
  for (const [type, property] of Object.entries(named)) {
    const name = flat(only(template, type).Properties[property]);
    assert.match(name, UNIQUE, `${type}: ${name}`);
    assert.match(name, /example/, type);
  }
  for (const [id, { Properties }] of ofType(template, "AWS::S3::Bucket"))
    assert.equal(Properties.BucketName, undefined, id);
  // Other names are none that AWS keeps for the account, or their resource is deleted with the stack.
  for (const [id, { Type, Properties, DeletionPolicy }] of resources(template)) {
    const names = Object.keys(Properties ?? {}).filter((property) => /Name$/.test(property));
    if (Type in named || names.length === 0) continue;
    assert.ok(DeletionPolicy !== "Retain" || id.startsWith("StateBucketsLogs"), `${id}: ${names.join()}`);
  }
});

test("a first deployment has no protection that would keep it from being rolled back", () => {
  const first = new StateStack(testApp(), "State", {
    name: "example",
    terminationProtection: false,
    deletionProtection: false,
  });
  assert.equal(first.terminationProtection, false);
  const table = only(Template.fromStack(first), "AWS::DynamoDB::Table");
  assert.equal(table.Properties.DeletionProtectionEnabled, false);
});

test("the table is the one that the daemons expect", () => {
  template.hasResourceProperties("AWS::DynamoDB::Table", {
    TableName: { "Fn::Join": ["", ["example-", Match.anyValue(), "-map"]] },
    KeySchema: [
      { AttributeName: "graph", KeyType: "HASH" },
      { AttributeName: "item", KeyType: "RANGE" },
    ],
    AttributeDefinitions: Match.arrayWith([
      { AttributeName: "graph", AttributeType: "S" },
      { AttributeName: "item", AttributeType: "S" },
      { AttributeName: "changedAt", AttributeType: "N" },
    ]),
    LocalSecondaryIndexes: [
      {
        IndexName: "by-epoch",
        KeySchema: [
          { AttributeName: "graph", KeyType: "HASH" },
          { AttributeName: "changedAt", KeyType: "RANGE" },
        ],
        Projection: { ProjectionType: "ALL" },
      },
    ],
    BillingMode: "PAY_PER_REQUEST",
    PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    SSESpecification: { SSEEnabled: true, SSEType: "KMS" },
  });
});

test("the disks of brokers grow before the alarm, and metrics of brokers cost nothing", () => {
  const target = only(template, "AWS::ApplicationAutoScaling::ScalableTarget").Properties;
  assert.equal(target.ScalableDimension, "kafka:broker-storage:VolumeSize");
  assert.equal(target.ServiceNamespace, "kafka");
  assert.match(flat(target.ResourceId), /^<StateLogCluster/);
  const cluster = only(template, "AWS::MSK::Cluster").Properties;
  const size = cluster.BrokerNodeGroupInfo.StorageInfo.EBSStorageInfo.VolumeSize;
  assert.deepEqual([size, target.MinCapacity, target.MaxCapacity], [100, 1, 1000]);
  assert.equal(cluster.EnhancedMonitoring, "DEFAULT");
  const policy = only(template, "AWS::ApplicationAutoScaling::ScalingPolicy").Properties;
  const tracking = policy.TargetTrackingScalingPolicyConfiguration;
  assert.deepEqual(tracking.PredefinedMetricSpecification, {
    PredefinedMetricType: "KafkaBrokerStorageUtilization",
  });
  assert.deepEqual([tracking.TargetValue, tracking.DisableScaleIn], [60, true]);
});

test("disks that may not grow have no policy", () => {
  const stack = new Stack(testApp(), "Fixed");
  new GraphState(stack, "State", { name: "example", log: { volumeGib: 200, mostVolumeGib: 200 } });
  Template.fromStack(stack).resourceCountIs("AWS::ApplicationAutoScaling::ScalableTarget", 0);
});

test("buckets are closed, encrypted, and refuse requests without TLS", () => {
  const buckets = ofType(template, "AWS::S3::Bucket", 3);
  for (const [id, { Properties }] of buckets) {
    assert.deepEqual(
      Properties.PublicAccessBlockConfiguration,
      { BlockPublicAcls: true, BlockPublicPolicy: true, IgnorePublicAcls: true, RestrictPublicBuckets: true },
      id,
    );
    const [rule] = Properties.BucketEncryption.ServerSideEncryptionConfiguration;
    const algorithm = rule.ServerSideEncryptionByDefault.SSEAlgorithm;
    // Log delivery does not accept our key.
    assert.equal(algorithm, id.includes("Logs") ? "AES256" : "aws:kms", id);
    assert.ok(Properties.LifecycleConfiguration.Rules[0].AbortIncompleteMultipartUpload, id);
    const policy = ofType(template, "AWS::S3::BucketPolicy").find(
      ([, { Properties: of }]) => of.Bucket.Ref === id,
    );
    const denied = policy?.[1].Properties.PolicyDocument.Statement.filter(
      (statement: { Effect: string }) => statement.Effect === "Deny",
    );
    assert.deepEqual(
      denied?.map((statement: { Condition: object }) => statement.Condition),
      [{ Bool: { "aws:SecureTransport": "false" } }, { NumericLessThan: { "s3:TlsVersion": 1.2 } }],
      id,
    );
  }
  const data = named(template, "AWS::S3::Bucket", "StateBucketsData").Properties;
  assert.equal(data.VersioningConfiguration.Status, "Enabled");
  assert.equal(data.LifecycleConfiguration.Rules[0].NoncurrentVersionExpiration.NoncurrentDays, 1);
  assert.equal(data.LifecycleConfiguration.Rules[0].ExpirationInDays, undefined);
});

test("the drop bucket sends events without a custom resource, and keeps files by default", () => {
  const drop = named(template, "AWS::S3::Bucket", "StateBucketsDrop").Properties;
  assert.deepEqual(drop.NotificationConfiguration, {
    EventBridgeConfiguration: { EventBridgeEnabled: true },
  });
  assert.equal(drop.LifecycleConfiguration.Rules[0].ExpirationInDays, undefined);
  assert.equal(ofType(template, "AWS::Lambda::Function").length, 0);
  const short = new StateStack(testApp(), "State", { name: "example", dropExpiration: Duration.days(30) });
  const rules = named(Template.fromStack(short), "AWS::S3::Bucket", "StateBucketsDrop").Properties;
  assert.equal(rules.LifecycleConfiguration.Rules[0].ExpirationInDays, 30);
});

test("brokers accept only IAM over TLS, and never delete records by themselves", () => {
  template.hasResourceProperties("AWS::MSK::Cluster", {
    NumberOfBrokerNodes: 3,
    ClientAuthentication: {
      Sasl: { Iam: { Enabled: true }, Scram: Match.absent() },
      Tls: Match.absent(),
      Unauthenticated: { Enabled: false },
    },
    EncryptionInfo: {
      EncryptionInTransit: { ClientBroker: "TLS", InCluster: true },
      EncryptionAtRest: {
        DataVolumeKMSKeyId: { "Fn::GetAtt": [Match.stringLikeRegexp("^StateKey"), "Arn"] },
      },
    },
    BrokerNodeGroupInfo: { ConnectivityInfo: { PublicAccess: { Type: "DISABLED" } } },
    LoggingInfo: { BrokerLogs: { CloudWatchLogs: { Enabled: true } } },
  });
  const { ServerProperties } = only(template, "AWS::MSK::Configuration").Properties;
  assert.deepEqual(ServerProperties.split("\n").toSorted(), [
    "auto.create.topics.enable=false",
    "default.replication.factor=3",
    "log.cleanup.policy=delete",
    "log.retention.bytes=-1",
    "log.retention.ms=-1",
    "min.insync.replicas=2",
    "unclean.leader.election.enable=false",
  ]);
});

test("the VPC has no route to the internet", () => {
  const without = [
    "AWS::EC2::InternetGateway",
    "AWS::EC2::NatGateway",
    "AWS::EC2::EgressOnlyInternetGateway",
    "AWS::EC2::EIP",
    "AWS::EC2::Route",
  ];
  for (const type of without) template.resourceCountIs(type, 0);
  const subnets = ofType(template, "AWS::EC2::Subnet", 3);
  for (const [id, { Properties }] of subnets) assert.equal(Properties.MapPublicIpOnLaunch, false, id);
  assert.equal(new Set(subnets.map(([, { Properties }]) => flat(Properties.AvailabilityZone))).size, 3);
  // The stack of processes adds the ingress rules.
  const brokers = only(template, "AWS::EC2::SecurityGroup").Properties;
  assert.equal(brokers.SecurityGroupIngress, undefined);
  assert.deepEqual(
    brokers.SecurityGroupEgress.map((rule: { CidrIp: string }) => rule.CidrIp),
    ["255.255.255.255/32"],
    "nothing goes out",
  );
});

test("the key is rotated, and services use it only for this deployment", () => {
  const key = only(template, "AWS::KMS::Key").Properties;
  assert.equal(key.EnableKeyRotation, true);
  for (const statement of key.KeyPolicy.Statement) {
    if (statement.Principal.AWS !== undefined) {
      // CDK's default leaves access to the account's own policies.
      assert.match(flat(statement.Principal.AWS), /:root$/);
      continue;
    }
    assert.ok(statement.Condition, statement.Sid);
    for (const action of [statement.Action].flat()) assert.ok(!action.includes("*"), action);
  }
  const find = (sid: string) => key.KeyPolicy.Statement.find(({ Sid }: { Sid?: string }) => Sid === sid);
  // AWS: "not supported for EventBridge-to-encrypted topics"; with them no event would reach the topic.
  assert.doesNotMatch(JSON.stringify(find("Events")), /aws:Source/);
  const topics = find("Events").Condition.ArnLike["kms:EncryptionContext:aws:sns:topicArn"];
  assert.match(flat(topics), /:sns:<?AWS::Region>?:<?AWS::AccountId>?:\*$/);
  const groups = find("LogGroups");
  const prefixes = Object.values(groups.Condition.ArnLike)
    .flat()
    .map((arn) => flat(arn).split(":log-group:")[1]);
  assert.deepEqual(prefixes, [
    "/tidegraph/example/*",
    "/aws/vendedlogs/states/tidegraph/example/*",
    "/aws/vendedlogs/msk/tidegraph/example/*",
  ]);
});

test("the stack has no resource of a process", () => {
  const types = new Set([...resources(template).values()].map((resource) => resource.Type));
  for (const type of types) assert.doesNotMatch(type, /^AWS::(IAM|Lambda|ECS|AutoScaling|ApiGateway)/);
});

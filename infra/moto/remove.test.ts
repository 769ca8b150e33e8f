/**
 * `tidegraph-remove` against moto: each resource that the template of the state retains is made with the template's name and
 * tags, and objects are put into the buckets. The command then leaves nothing but keys that AWS deletes later, and nothing
 * that belongs to somebody else goes.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import * as dynamodb from "@aws-sdk/client-dynamodb";
import * as ec2 from "@aws-sdk/client-ec2";
import * as iam from "@aws-sdk/client-iam";
import * as kafka from "@aws-sdk/client-kafka";
import * as kms from "@aws-sdk/client-kms";
import * as s3 from "@aws-sdk/client-s3";
import * as sm from "@aws-sdk/client-secrets-manager";
import { UsageError } from "../doctor/deployment.ts";
import { readArguments } from "../remove/arguments.ts";
import { remove } from "../remove/remove.ts";
import { example, flat, ofType, type Resource, resources } from "../test/support.ts";
import { Account } from "./account.ts";
import { REGION } from "./create.ts";

const { state, service } = example({ backup: {} });
const UNIQUE = "0a1b2c3d";
const CREDENTIALS = { accessKeyId: "test", secretAccessKey: "test" };
let account: Account;
let table: dynamodb.DynamoDBClient;
let network: ec2.EC2Client;
let brokers: kafka.KafkaClient;
let roles: iam.IAMClient;
let keys: kms.KMSClient;
let objects: s3.S3Client;
let secrets: sm.SecretsManagerClient;
const configurations = new Map([["arn:aws:kafka:x:configuration/other/1", "other-log-0a1b2c3d"]]);

before(async () => {
  account = await Account.start({ configurations });
  // Resources are made in moto itself, and the command reaches it through the server in front of it.
  const options = { endpoint: account.moto.endpoint, region: REGION, credentials: CREDENTIALS };
  table = new dynamodb.DynamoDBClient(options);
  network = new ec2.EC2Client(options);
  brokers = new kafka.KafkaClient({ ...options, endpoint: account.endpoint });
  roles = new iam.IAMClient(options);
  keys = new kms.KMSClient(options);
  objects = new s3.S3Client({ ...options, forcePathStyle: true });
  secrets = new sm.SecretsManagerClient(options);
  Object.assign(process.env, {
    AWS_ENDPOINT_URL: account.endpoint,
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_REGION: REGION,
  });
});
after(async () => {
  for (const client of [table, network, brokers, roles, keys, objects, secrets]) client.destroy();
  await account.stop();
});

/** Returns a name of the template, with digits in the place of the stack's id. */
const named = (value: unknown): string => flat(value).replace(/\{"Fn::Select".*\}(?=-|$)/, UNIQUE);

/** Returns the tags of a resource in the template. Those of a cluster are an object. */
function tagsOf({ Properties }: Resource): { Key: string; Value: string }[] {
  const { Tags = [] } = Properties;
  const all = Array.isArray(Tags) ? Tags : Object.entries(Tags).map(([Key, Value]) => ({ Key, Value }));
  return all.map(({ Key, Value }: { Key: string; Value: unknown }) => ({ Key, Value: flat(Value) }));
}

/** Asks CloudWatch Logs of moto, which checks no signature. */
async function logs(operation: string, input: object): Promise<{ logGroups?: { logGroupName: string }[] }> {
  const authorization = `AWS4-HMAC-SHA256 Credential=test/20260101/${REGION}/logs/aws4_request, SignedHeaders=host, Signature=0`;
  const headers = {
    authorization,
    "content-type": "application/x-amz-json-1.1",
    "x-amz-target": `Logs_20140328.${operation}`,
  };
  const answer = await fetch(account.moto.endpoint, { method: "POST", headers, body: JSON.stringify(input) });
  const text = await answer.text();
  assert.ok(answer.ok, `${operation}: ${text}`);
  return text === "" ? {} : JSON.parse(text);
}

const tagged = (ResourceType: ec2.ResourceType, resource: Resource) => ({
  TagSpecifications: [{ ResourceType, Tags: tagsOf(resource) }],
});
let vpc = "";
let subnets = 0;

/** Makers by type of what the template of the state retains. */
const MAKERS: Readonly<Record<string, (id: string, resource: Resource) => Promise<unknown>>> = {
  "AWS::EC2::VPC": async (_, resource) => {
    const made = { CidrBlock: "10.42.0.0/16", ...tagged("vpc", resource) };
    vpc = (await network.send(new ec2.CreateVpcCommand(made))).Vpc?.VpcId ?? "";
  },
  "AWS::EC2::Subnet": async (_, resource) => {
    subnets += 1;
    const made = { VpcId: vpc, CidrBlock: `10.42.${subnets}.0/24`, ...tagged("subnet", resource) };
    await network.send(new ec2.CreateSubnetCommand(made));
  },
  "AWS::EC2::RouteTable": (_, resource) =>
    network.send(new ec2.CreateRouteTableCommand({ VpcId: vpc, ...tagged("route-table", resource) })),
  // They go with their subnets.
  "AWS::EC2::SubnetRouteTableAssociation": async () => {},
  "AWS::EC2::SecurityGroup": (id, resource) => {
    const made = { GroupName: id, Description: id, VpcId: vpc, ...tagged("security-group", resource) };
    return network.send(new ec2.CreateSecurityGroupCommand(made));
  },
  "AWS::MSK::Cluster": (_, { Properties }) => {
    const group = { InstanceType: "kafka.m7g.large", ClientSubnets: ["subnet-1"] };
    const made = {
      ClusterName: named(Properties.ClusterName),
      KafkaVersion: "3.9.x.kraft",
      NumberOfBrokerNodes: 3,
      BrokerNodeGroupInfo: group,
    };
    return brokers.send(new kafka.CreateClusterCommand(made));
  },
  "AWS::MSK::Configuration": async (id, { Properties }) => {
    configurations.set(`arn:aws:kafka:x:configuration/${id}/1`, named(Properties.Name));
  },
  "AWS::DynamoDB::Table": (_, resource) => {
    const { KeySchema, AttributeDefinitions, LocalSecondaryIndexes, TableName } = resource.Properties;
    const made = {
      TableName: named(TableName),
      ...{ KeySchema, AttributeDefinitions, LocalSecondaryIndexes },
      BillingMode: "PAY_PER_REQUEST" as const,
      DeletionProtectionEnabled: true,
    };
    return table.send(new dynamodb.CreateTableCommand(made));
  },
  "AWS::KMS::Key": (_, resource) => {
    const Tags = tagsOf(resource).map(({ Key, Value }) => ({ TagKey: Key, TagValue: Value }));
    return keys.send(new kms.CreateKeyCommand({ Tags }));
  },
  "AWS::Logs::LogGroup": (_, { Properties }) =>
    logs("CreateLogGroup", { logGroupName: named(Properties.LogGroupName) }),
  "AWS::IAM::Role": (id, resource) => makeRole(id, resource, tagsOf(resource)),
  "AWS::S3::Bucket": async (id, resource) => {
    const Bucket = id.toLowerCase();
    const at = { LocationConstraint: REGION } as const;
    await objects.send(new s3.CreateBucketCommand({ Bucket, CreateBucketConfiguration: at }));
    const { VersioningConfiguration } = resource.Properties;
    if (VersioningConfiguration)
      await objects.send(new s3.PutBucketVersioningCommand({ Bucket, VersioningConfiguration }));
    await objects.send(new s3.PutBucketTaggingCommand({ Bucket, Tagging: { TagSet: tagsOf(resource) } }));
    for (const Key of ["a", "a", "folder/b"])
      await objects.send(new s3.PutObjectCommand({ Bucket, Key, Body: createHash("sha256").digest() }));
    await objects.send(new s3.DeleteObjectCommand({ Bucket, Key: "a" }));
    await objects.send(new s3.CreateMultipartUploadCommand({ Bucket, Key: "unfinished" }));
  },
};

/** Makes a role as the template has it, and returns its ARN. */
async function makeRole(RoleName: string, { Properties }: Resource, tags: iam.Tag[]): Promise<string> {
  const AssumeRolePolicyDocument = JSON.stringify(Properties.AssumeRolePolicyDocument);
  const Tags = tags.map(({ Key, Value = "" }) => ({ Key, Value: Value.replace("<AWS::Region>", REGION) }));
  const made = new iam.CreateRoleCommand({ RoleName, AssumeRolePolicyDocument, Tags });
  const { Role } = await roles.send(made);
  for (const policy of Properties.ManagedPolicyArns) {
    // moto has none of AWS's own policies.
    const PolicyName = `${RoleName}-${flat(policy).replace(/^.*\//, "")}`;
    const Statement = [{ Effect: "Allow", Action: "logs:*", Resource: "*" }];
    const PolicyDocument = JSON.stringify({ Version: "2012-10-17", Statement });
    const { Policy } = await roles.send(new iam.CreatePolicyCommand({ PolicyName, PolicyDocument }));
    await roles.send(new iam.AttachRolePolicyCommand({ RoleName, PolicyArn: Policy?.Arn }));
  }
  return Role?.Arn ?? "";
}

/** What is retained, and not for the command to remove. */
const STAYS: Readonly<Record<string, string>> = {
  "AWS::ApiGateway::Account": "the account has one, for all APIs",
  "AWS::Lambda::Version": "versions go with their function",
};

/** Makes everything that a template retains. */
async function makeRetained(template: typeof state): Promise<string[]> {
  const kept = [...resources(template)].filter(([, { DeletionPolicy }]) =>
    /^Retain/.test(DeletionPolicy ?? ""),
  );
  // The VPC first, because others are in it.
  const inOrder = kept.toSorted(
    ([, a], [, b]) => Number(b.Type === "AWS::EC2::VPC") - Number(a.Type === "AWS::EC2::VPC"),
  );
  for (const [id, resource] of inOrder) {
    if (resource.Type in STAYS) continue;
    const make = MAKERS[resource.Type];
    assert.ok(make, `${id} of ${resource.Type} is retained, and nothing removes it`);
    await make(id, resource);
  }
  return kept.map(([id]) => id);
}

/** Makes what belongs to somebody else, with names that are nearly ours. */
async function makeOthers(): Promise<void> {
  const other = (Value: string) => [{ Key: "tidegraph:deployment", Value }];
  for (const Bucket of ["others", "of-another-deployment"]) {
    const at = { LocationConstraint: REGION } as const;
    await objects.send(new s3.CreateBucketCommand({ Bucket, CreateBucketConfiguration: at }));
    await objects.send(new s3.PutObjectCommand({ Bucket, Key: "kept", Body: "kept" }));
  }
  const TagSet = other("example-2");
  await objects.send(
    new s3.PutBucketTaggingCommand({ Bucket: "of-another-deployment", Tagging: { TagSet } }),
  );
  await table.send(
    new dynamodb.CreateTableCommand({
      TableName: `example-2-${UNIQUE}-map`,
      BillingMode: "PAY_PER_REQUEST",
      KeySchema: [{ AttributeName: "graph", KeyType: "HASH" }],
      AttributeDefinitions: [{ AttributeName: "graph", AttributeType: "S" }],
    }),
  );
  await logs("CreateLogGroup", { logGroupName: "/tidegraph/example-2/nodes" });
  await keys.send(
    new kms.CreateKeyCommand({ Tags: [{ TagKey: "tidegraph:deployment", TagValue: "example-2" }] }),
  );
  await network.send(
    new ec2.CreateVpcCommand({
      CidrBlock: "10.43.0.0/16",
      TagSpecifications: [{ ResourceType: "vpc", Tags: other("example-2") }],
    }),
  );
  for (const [Name, Value] of [
    ["fleet", "example"],
    ["theirs", "example-2"],
  ] as const)
    await secrets.send(new sm.CreateSecretCommand({ Name, SecretString: "x", Tags: other(Value) }));
}

/** Returns what the account has, as kinds and names. */
async function everything(): Promise<string[]> {
  const { Buckets = [] } = await objects.send(new s3.ListBucketsCommand({}));
  const { TableNames = [] } = await table.send(new dynamodb.ListTablesCommand({}));
  const { ClusterInfoList = [] } = await brokers.send(new kafka.ListClustersV2Command({}));
  const { Vpcs = [] } = await network.send(new ec2.DescribeVpcsCommand({}));
  const { logGroups = [] } = await logs("DescribeLogGroups", {});
  const { SecretList = [] } = await secrets.send(new sm.ListSecretsCommand({}));
  const { Keys = [] } = await keys.send(new kms.ListKeysCommand({}));
  const states = await Promise.all(
    Keys.map(async ({ KeyId }) => (await keys.send(new kms.DescribeKeyCommand({ KeyId }))).KeyMetadata),
  );
  const count = async (kind: string, list: Promise<object[] | undefined>) =>
    `${kind} ${(await list)?.length}`;
  return [
    ...Buckets.map(({ Name }) => `bucket ${Name}`),
    ...TableNames.map((name) => `table ${name}`),
    ...ClusterInfoList.map(({ ClusterName }) => `brokers ${ClusterName}`),
    ...[...configurations.values()].map((name) => `configuration ${name}`),
    ...logGroups.map(({ logGroupName }) => `log group ${logGroupName}`),
    ...SecretList.map(({ Name }) => `secret ${Name}`),
    ...Vpcs.filter(({ IsDefault }) => !IsDefault).map(({ CidrBlock }) => `vpc ${CidrBlock}`),
    ...states.map((key) => `key ${key?.KeyState}`),
    await count(
      "subnets",
      network.send(new ec2.DescribeSubnetsCommand({})).then(({ Subnets }) => Subnets),
    ),
    await count(
      "route tables",
      network.send(new ec2.DescribeRouteTablesCommand({})).then(({ RouteTables }) => RouteTables),
    ),
    await count(
      "groups",
      network.send(new ec2.DescribeSecurityGroupsCommand({})).then(({ SecurityGroups }) => SecurityGroups),
    ),
  ].toSorted();
}

const run = async (...flags: string[]): Promise<{ left: number; said: string[] }> => {
  const said: string[] = [];
  const args = readArguments(["--name", "example", "--region", REGION, ...flags]);
  assert.ok(args !== "help");
  const left = await remove(args, { say: (text) => said.push(text), pauseMs: 1 });
  return { left: left.length, said };
};

test("what the templates retain is removed in order, once it is confirmed, and nothing of others", async () => {
  await makeOthers();
  const before = (await everything()).filter((one) => one !== "secret fleet");
  await makeRetained(state);
  const whole = await everything();
  const shown = await run();
  assert.equal(shown.left, shown.said.filter((line) => line.startsWith("  ")).length);
  assert.match(shown.said.at(-1) ?? "", /nothing was removed/);
  assert.deepEqual(await everything(), whole, "without --confirm everything stays");
  const kinds = shown.said.filter((line) => line.startsWith("  ")).map((line) => line.trim().split("  ")[0]);
  assert.deepEqual(
    [...new Set(kinds)],
    [
      ...["brokers", "configuration of brokers", "table", "bucket", "log group", "secret"],
      ...["security group", "subnet", "route table", "VPC", "key, in 30 days"],
    ],
  );
  // A run that dies on the way is repeated: here after the brokers.
  account.situation.denied.add("kafka:DeleteConfiguration");
  await assert.rejects(run("--confirm", "example"), /DeleteConfiguration/);
  account.situation.denied.clear();
  assert.ok(!(await everything()).some((one) => one.startsWith("brokers")));
  assert.equal((await run("--confirm", "example", "--key-days", "7")).left, 0);
  assert.deepEqual(await everything(), [...before, "key PendingDeletion"].toSorted());
  const { said } = await run("--confirm", "example");
  assert.deepEqual(said, [`nothing of example is left in ${REGION}`]);
});

test("backups and their key stay unless they are named", async () => {
  await makeRetained(service);
  const bucket = "servicebackup";
  const has = async (): Promise<boolean> => (await everything()).some((one) => one.includes(bucket));
  assert.ok(await has());
  assert.equal((await run("--confirm", "example")).left, 0);
  assert.ok(await has(), "the bucket of backups is gone");
  const enabled = (await everything()).filter((one) => one === "key Enabled").length;
  assert.equal((await run("--confirm", "example", "--backups")).left, 0);
  assert.ok(!(await has()));
  assert.equal((await everything()).filter((one) => one === "key Enabled").length, enabled - 1);
});

test("the role of API Gateway's logs goes unless other APIs need it", async () => {
  const [[, role] = assert.fail()] = ofType(service, "AWS::ApiGateway::Account").map(([, { Properties }]) => {
    const id = Properties.CloudWatchRoleArn["Fn::GetAtt"][0];
    return [id, resources(service).get(id) ?? assert.fail()] as const;
  });
  const mine = tagsOf(role);
  const elsewhere = mine.map((tag) => (tag.Value === "<AWS::Region>" ? { ...tag, Value: "us-east-1" } : tag));
  const theirs = mine.map((tag) => (tag.Value === "example" ? { ...tag, Value: "example-2" } : tag));
  assert.notDeepEqual(elsewhere, mine);
  assert.notDeepEqual(theirs, mine);
  await makeRole("of-an-earlier-stack", role, mine);
  await makeRole("of-another-region", role, elsewhere);
  await makeRole("of-another-deployment", role, theirs);
  const { gateway } = account.situation;
  gateway.role = await makeRole("in-use", role, mine);
  gateway.apis.push({ id: "ofsomebody" });
  const names = async (): Promise<string[]> => {
    const { Roles = [] } = await roles.send(new iam.ListRolesCommand({}));
    return Roles.map(({ RoleName = "" }) => RoleName).toSorted();
  };
  const { left, said } = await run("--confirm", "example");
  assert.equal(left, 0);
  assert.ok(
    said.some((line) => /^the role in-use stays: .*other APIs in/.test(line)),
    said.join("\n"),
  );
  assert.deepEqual(await names(), ["in-use", "of-another-deployment", "of-another-region"]);
  assert.match(gateway.role, /in-use$/);
  gateway.apis.pop();
  assert.equal((await run("--confirm", "example")).left, 0);
  assert.deepEqual(await names(), ["of-another-deployment", "of-another-region"]);
  assert.equal(gateway.role, "");
});

test("as long as a stack is there, nothing is removed", async () => {
  const templates = {
    State: state.toJSON() as { Resources: Record<string, Resource> },
    Service: service.toJSON() as { Resources: Record<string, Resource> },
  };
  // Stacks without outputs suffice.
  const bare = ({ Resources }: { Resources: Record<string, Resource> }) => ({ Resources });
  account.deploy({ State: bare(templates.State), Service: bare(templates.Service) }, undefined as never);
  await assert.rejects(
    run("--stack", "tidegraph-service", "--confirm", "example"),
    (error) => error instanceof UsageError && /tidegraph-service is there.*delete-stack/.test(error.message),
  );
  account.situation.stackStatus = "DELETE_COMPLETE";
  assert.equal((await run("--stack", "tidegraph-service", "--confirm", "example")).left, 0);
});

test("flags that cannot be are refused with the value", () => {
  for (const [flags, message] of [
    [[], /Give --name/],
    [["--name", "Wrong_Name"], /Wrong_Name/],
    [["--name", "example", "--confirm", "exmaple"], /exmaple.*nothing was removed/],
    [["--name", "example", "--key-days", "5"], /5.*from 7 to 30/],
    [["--name", "example", "--region", "moon"], /"moon" is no region/],
    [["--name", "example", "--force"], /--force/],
  ] as const)
    assert.throws(
      () => readArguments(flags),
      (error) => error instanceof UsageError && message.test(error.message),
      String(message),
    );
});

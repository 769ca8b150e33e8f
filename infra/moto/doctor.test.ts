/**
 * `tidegraph-doctor` (`infra/doctor/`) against moto, in which the resources of the example are made from its templates:
 * each check once as it should be and once not, with the permissions that its policy gives and without some. What moto
 * does not have is answered by `Account`.
 *
 * The map is written here, by its schemas, because the machines of moto run nothing.
 */
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, mock, test } from "node:test";
import * as acm from "@aws-sdk/client-acm";
import * as asg from "@aws-sdk/client-auto-scaling";
import * as cw from "@aws-sdk/client-cloudwatch";
import * as ec2 from "@aws-sdk/client-ec2";
import * as elb from "@aws-sdk/client-elastic-load-balancing-v2";
import * as iam from "@aws-sdk/client-iam";
import * as lambda from "@aws-sdk/client-lambda";
import * as s3 from "@aws-sdk/client-s3";
import * as sm from "@aws-sdk/client-secrets-manager";
import * as sns from "@aws-sdk/client-sns";
import { Duration, Stack } from "aws-cdk-lib";
import { Certificate } from "aws-cdk-lib/aws-certificatemanager";
import { CHECKS } from "../doctor/checks/index.ts";
import { look, type Report } from "../doctor/doctor.ts";
import type { Result } from "../doctor/finding.ts";
import { policy } from "../doctor/policy.ts";
import { temporaryFolder } from "../lib/temporary.ts";
import { packDoctor } from "../package/pack.ts";
import { example, testApp } from "../test/support.ts";
import { Account, type Situation, STACKS } from "./account.ts";
import { Clients, Creation, REGION } from "./create.ts";
import { breakResources, GROUP } from "./doctor-damage.ts";
import { withKeyPolicies } from "./doctor-keys.ts";
import { DurableClients, durable, EMPTY_ZIP } from "./durable.ts";
import { beat, checkpoint, FleetMap, node, part, VERSION } from "./fleet-map.ts";
import { roles } from "./roles.ts";
import type { Template } from "./templates.ts";

const RELEASE = "0.1.0";
const PATIENCE = { pauseMs: 1_000, checkMs: 60_000 };
const CREDENTIALS = { accessKeyId: "test", secretAccessKey: "test" };
const TOPIC = [
  "cleanup.policy=delete",
  "retention.ms=-1",
  "retention.bytes=-1",
  "min.insync.replicas=2",
  "unclean.leader.election.enable=false",
];

let account: Account;
let clients: Clients;
let stored: DurableClients;
let certificates: acm.ACMClient;
let certificate: string;
let templates: Record<"State" | "Service", Template>;
let map: FleetMap;
let machines: string[];

/** Returns the physical name of the only resource of a type whose logical id ends so. */
async function physical(stack: "State" | "Service", type: string, ending: string): Promise<string> {
  const found = Object.entries(templates[stack].Resources).filter(
    ([id, { Type }]) => Type === type && id.replace(/[0-9A-F]{8}$/, "").endsWith(ending),
  );
  assert.equal(found.length, 1, `${type} ${ending}`);
  return (await account.creation?.physical(stack, found[0]?.[0] ?? "")) ?? "";
}

/** Imports a certificate that ends in some days, in place of the one before. */
async function importCertificate(days: number, CertificateArn?: string): Promise<string> {
  const folder = temporaryFolder("certificate");
  const [key, pem] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  const subject = ["-subj", "/CN=graph.example.com", "-days", String(days)];
  const files = ["-nodes", "-newkey", "rsa:2048", "-keyout", key, "-out", pem];
  execFileSync("openssl", ["req", "-x509", ...files, ...subject], { stdio: "ignore" });
  const given = { Certificate: readFileSync(pem), PrivateKey: readFileSync(key), CertificateArn };
  const made = await certificates.send(new acm.ImportCertificateCommand(given));
  return made.CertificateArn ?? "";
}

async function diskUsed(percent: number): Promise<void> {
  const MetricData = ["1", "2", "3"].map((broker) => ({
    MetricName: "KafkaDataLogsDiskUsed",
    Dimensions: [
      { Name: "Cluster Name", Value: "example-log-0123abcd" },
      { Name: "Broker ID", Value: broker },
    ],
    Timestamp: new Date(Date.now() - 60_000),
    Value: percent,
  }));
  await stored.cw.send(new cw.PutMetricDataCommand({ Namespace: "AWS/Kafka", MetricData }));
}

before(async () => {
  const situation: Situation = {
    stackStatus: "UPDATE_COMPLETE",
    protects: true,
    quota: 64,
    fargate: 6,
    functions: 1000,
    topic: { partitions: 1, copies: 3, configs: TOPIC.join("\n") },
    brokerSettings: "",
    clusterState: "ACTIVE",
    eventBridge: true,
    workers: 2,
    status: { code: 200, body: { status: "healthy", dbEngineVersion: RELEASE } },
    denied: new Set(),
    ahead: 0,
    controls: undefined,
    gateway: { role: "", apis: [] },
    apart: new Set(),
  };
  account = await Account.start(situation);
  const { endpoint } = account.moto;
  certificates = new acm.ACMClient({ endpoint, region: REGION, credentials: CREDENTIALS });
  certificate = await importCertificate(400);
  const elsewhere = new Stack(testApp(), "Elsewhere");
  const given = { certificate: Certificate.fromCertificateArn(elsewhere, "Certificate", certificate) };
  const { state, service } = example({
    ...{ backup: {}, encryption: {}, workers: given, nodes: { most: 9, sessionManager: true } },
    objectives: { latency: Duration.seconds(2) },
  });
  templates = { State: state.toJSON() as Template, Service: service.toJSON() as Template };
  const [configuration] = Object.values(state.findResources("AWS::MSK::Configuration"));
  situation.brokerSettings = configuration?.Properties.ServerProperties;
  clients = new Clients(endpoint);
  stored = new DurableClients(endpoint);
  account.deploy(templates, new Creation(clients, templates, { ...durable(stored), ...roles(stored.iam) }));
  const { accessKeyId, secretAccessKey } = CREDENTIALS;
  Object.assign(process.env, {
    AWS_ENDPOINT_URL: account.endpoint,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_REGION: REGION,
    AWS_EC2_METADATA_DISABLED: "true",
  });
});
after(async () => {
  map?.stop();
  for (const made of [clients, stored, certificates]) made?.destroy();
  await account?.stop();
});

/** Does what people and processes do after a deployment, so that everything holds. */
async function makeWhole(): Promise<void> {
  await physical("Service", "AWS::AutoScaling::AutoScalingGroup", "NodesGroupASG");
  machines = ((await group()).Instances ?? []).map(({ InstanceId = "" }) => InstanceId);
  const table = await physical("State", "AWS::DynamoDB::Table", "MapTable");
  map = new FleetMap(stored.dynamodb, table, "people");
  await map.serve(machines, RELEASE);
  const SecretId = await physical("Service", "AWS::SecretsManager::Secret", "SecretsFleet");
  const RotationRules = { AutomaticallyAfterDays: 30 };
  await stored.sm.send(new sm.RotateSecretCommand({ SecretId, RotationRules }));
  for (const kind of ["Nodes", "Workers", "Functions"]) {
    const SecretId = await physical("Service", "AWS::SecretsManager::Secret", `Encryption${kind}`);
    await stored.sm.send(new sm.PutSecretValueCommand({ SecretId, SecretString: "{}" }));
  }
  const TargetGroupArn = await physical(
    "Service",
    "AWS::ElasticLoadBalancingV2::TargetGroup",
    "WorkersGroup",
  );
  const Targets = [{ Id: "10.0.0.11" }, { Id: "10.0.0.12" }];
  await clients.elb.send(new elb.RegisterTargetsCommand({ TargetGroupArn, Targets }));
  const TopicArn = await physical("Service", "AWS::SNS::Topic", "WatchTopic");
  const mail = { TopicArn, Protocol: "sqs", Endpoint: `arn:aws:sqs:${REGION}:123456789012:people` };
  await stored.sns.send(new sns.SubscribeCommand(mail));
  const Bucket = await physical("Service", "AWS::S3::Bucket", "BackupBucket");
  const Key = "people/manifests/20261126T050000Z-1f0c9a3e.json";
  await stored.s3.send(new s3.PutObjectCommand({ Bucket, Key, Body: "{}" }));
  await diskUsed(20);
}

async function group(): Promise<asg.AutoScalingGroup> {
  const asked = new asg.DescribeAutoScalingGroupsCommand({ AutoScalingGroupNames: [GROUP] });
  const [found] = (await clients.asg.send(asked)).AutoScalingGroups ?? [];
  assert.ok(found);
  return found;
}

const examine = (only: readonly string[] = [], release = RELEASE): Promise<Report> => {
  account.simulation.forget();
  return look({ stacks: Object.values(STACKS), json: false, only }, release, PATIENCE);
};

/** Returns the results of a check. */
function of(report: Report, id: string): readonly Result[] {
  const found = report.results.filter((one) => one.id === id);
  assert.notEqual(found.length, 0, `no result of ${id}`);
  return found;
}

/** Checks that a check says so, and what to do about it. */
function says(report: Report, id: string, status: Result["status"], seen: RegExp): void {
  const found = of(report, id).filter((one) => one.status === status && seen.test(one.seen));
  assert.notEqual(found.length, 0, `${id}: ${JSON.stringify(of(report, id), null, 1)}`);
  for (const { wanted, remedy } of found)
    if (status === "failed" || status === "warning") assert.ok(wanted && remedy, `${id} says what to do`);
}

test("a deployment that has just been made, before anybody did the rest", async () => {
  const report = await examine();
  says(report, "map.graph", "failed", /there is no graph people/);
  says(report, "map.nodes", "unknown", /the map of people does not exist/);
  says(report, "checkpoints.age", "unknown", /map\.graph/);
  says(report, "log.disks", "unknown", /CloudWatch has no KafkaDataLogsDiskUsed/);
  says(report, "secrets.rotation", "failed", /off/);
  says(report, "certificates.fleet", "failed", /no certificate was made/);
  says(report, "backups.age", "failed", /there is no backup yet/);
  says(report, "workers.targets", "failed", /0 healthy/);
  says(report, "alarms.topic", "failed", /nobody is told/);
  says(report, "nodes.size", "ok", /3 in service/);
});

test("a deployment that is as it should be", async () => {
  await makeWhole();
  const report = await examine();
  const others = report.results.filter(({ status }) => status !== "ok");
  assert.deepEqual(others, []);
  const ids = [...CHECKS.map(({ id }) => id), "caller.permissions"];
  assert.deepEqual(new Set(report.results.map(({ id }) => id)), new Set(ids));
  assert.deepEqual(account.unsigned, [], "the API is asked with a signature");
  assert.equal(report.counts.failed, 0);
  says(report, "map.graph", "ok", /people: 8 partitions, 1 shards, 2 replicas/);
  says(report, "release.nodes", "ok", /0\.1\.0 on 3 nodes: protocol \d+, log \d+/);
  says(report, "log.disks", "ok", /broker 1 20 %, .* of 100 GiB, which grow up to 1000 GiB/);
});

/** Looks as if it were later. */
async function later(ms: number, only: readonly string[]): Promise<Report> {
  mock.timers.enable({ apis: ["Date"], now: Date.now() + ms });
  try {
    return await examine(only);
  } finally {
    mock.timers.reset();
  }
}

const HOUR = 3_600_000;

test("checkpoints, backups, rotations and certificates have ages", async () => {
  const Bucket = await physical("State", "AWS::S3::Bucket", "BucketsData");
  const Key = "checkpoints/p00003/n-1-3/manifest-00000000000000004700-000000";
  await stored.s3.send(new s3.PutObjectCommand({ Bucket, Key, Body: "" }));
  await map.put(checkpoint(3, VERSION - 11));
  says(await examine(["checkpoints"]), "checkpoints.age", "ok", /1 of 8 partitions have newer versions/);
  const areas = ["checkpoints", "backups", "secrets", "certificates"];
  says(await later(HOUR / 2, areas), "checkpoints.age", "warning", /3\d min old \(partition 3\)/);
  says(await later(2 * HOUR, areas), "checkpoints.age", "failed", /2 h old/);
  says(await later(2 * HOUR, areas), "backups.age", "ok", /1 backups, the newest is 2 h old/);
  const days = await later(40 * 24 * HOUR, areas);
  says(days, "backups.age", "failed", /40 days old \(20261126T050000Z-1f0c9a3e\)/);
  says(days, "secrets.rotation", "failed", /rotated last 40 days ago/);
  says(days, "certificates.fleet", "failed", /written 40 days ago/);
  says(await later(4 * 24 * HOUR, areas), "certificates.fleet", "warning", /written 4 days ago/);
  says(await later(380 * 24 * HOUR, areas), "certificates.dates", "warning", /(19|20) days left, imported/);
  says(await later(500 * 24 * HOUR, areas), "certificates.dates", "failed", /expired/);
  await map.put(checkpoint(3, VERSION));
});

test("a fleet that does not serve as it should", async () => {
  const [one = "", two = "", three = ""] = machines;
  map.alive.delete(three);
  map.leader = undefined;
  await map.put(node(two, "draining"));
  await map.put(part(5, { [one]: "restoring", [two]: "catching-up" }));
  await map.put(part(6, { [one]: "serving", [two]: "restoring" }));
  await map.put({ item: `release#${two}`, generation: 1, release: "0.0.9" });
  const reason = "an edge has no end";
  await map.put(beat(three, 1, { diskFull: true, stuck: [{ partition: 2, version: 4712, reason }] }));
  await map.put({
    item: "upgrade",
    ...{ serial: 3, release: RELEASE, state: "stopped", holder: "run-1", capacity: 3, launched: false },
    reason: "the alarm ApiErrors went off",
  });
  const areas = ["map", "release"];
  const report = await examine(areas);
  says(report, "map.nodes", "warning", new RegExp(`2 up, ${two} is draining`));
  says(
    report,
    "map.beats",
    "failed",
    new RegExp(`no heartbeat within 1 s: ${three}; disk is full: ${three}`),
  );
  says(report, "map.lease", "failed", new RegExp(`${one}-.*, did not renew it`));
  says(
    report,
    "map.replicas",
    "failed",
    /no replica serves 1 partitions \(5\); 1 partitions have fewer than 2 \(6\)/,
  );
  says(report, "map.stuck", "failed", new RegExp(`partition 2 on ${three} at version 4712: ${reason}`));
  says(report, "release.nodes", "failed", /0\.0\.9 on 1 nodes/);
  says(report, "release.command", "failed", /this command is 0\.1\.0/);
  says(report, "release.upgrade", "failed", /stopped: the alarm ApiErrors went off/);
  await map.put(part(5, { [one]: "serving", [two]: "serving" }));
  says(await examine(areas), "map.replicas", "warning", /1 partitions have fewer/);

  // A release of the same line, and one that states none.
  await map.put({ item: `release#${two}`, generation: 1, release: "0.1.7" });
  await map.put({ item: `release#${three}`, generation: 9, release: RELEASE });
  const mixed = await examine(areas);
  says(mixed, "release.nodes", "warning", /0\.1\.7 on 1 nodes.*; i-\w+ state none/);
  says(mixed, "release.command", "warning", /this command is 0\.1\.0/);
  map.stop();
  await map.serve(machines, RELEASE);
  await map.spoil({ ...checkpoint(7, 1), prefix: "", size: 3 });
  await map.spoil({ item: "note", text: "somebody was here" });
  const spoiled = await examine(areas);
  says(spoiled, "map.items", "failed", /checkpoint#00007: .*additional properties \(size\)/);
  says(spoiled, "map.items", "failed", /note: no item of the map has such a name/);
  await map.remove("note");
  await map.put(checkpoint(7, VERSION));
  const upgrade = { serial: 4, release: RELEASE, holder: "run-2", capacity: 3, launched: true, reason: "" };
  await map.put({ item: "upgrade", ...upgrade, state: "running" });
  says(await examine(areas), "release.upgrade", "warning", /running in run-2/);
  await map.put({ item: "upgrade", ...upgrade, state: "finished" });
  assert.deepEqual((await examine(areas)).counts.failed, 0);
});

test("a graph that is not there, a log that is lost, a rotation that died", async () => {
  const { situation } = account;
  const { topic } = situation;
  situation.topic = undefined;
  says(await examine(["log"]), "log.topic", "failed", /does not exist, and the map has a graph/);
  situation.topic = { partitions: 1, copies: 3, configs: "" };
  says(await examine(["log"]), "log.topic", "ok", /2 in sync/);
  situation.topic = topic;
  situation.clusterState = "REBOOTING_BROKER";
  says(await examine(["log"]), "log.cluster", "warning", /REBOOTING_BROKER/);
  situation.clusterState = "ACTIVE";
  const SecretId = await physical("Service", "AWS::SecretsManager::Secret", "SecretsFleet");
  const pending = { SecretId, SecretString: "another-one", VersionStages: ["AWSPENDING"] };
  await stored.sm.send(new sm.PutSecretValueCommand(pending));
  says(await examine(["secrets"]), "secrets.versions", "failed", /has not ended/);
  const { Properties } = query();
  Properties.Environment.Variables.TIDEGRAPH_GRAPH = "others";
  const report = await examine();
  says(report, "map.graph", "failed", /there is no graph others/);
  says(report, "map.beats", "unknown", /the map of others does not exist/);
  says(report, "release.nodes", "unknown", /map\.graph/);
  Properties.Environment.Variables.TIDEGRAPH_GRAPH = "people,others";
  const of = (await examine()).results.filter(({ id }) => id === "map.graph");
  assert.deepEqual(
    of.map(({ status, subject }) => [status, subject?.replace(/^.*, /, "")]),
    [
      ["ok", "graph people"],
      ["failed", "graph others"],
    ],
  );
  Properties.Environment.Variables.TIDEGRAPH_GRAPH = "people";
});

function query(): Template["Resources"][string] {
  const [, found] =
    Object.entries(templates.Service.Resources).find(([id]) => /QueryFunction[0-9A-F]{8}$/.test(id)) ?? [];
  assert.ok(found);
  return found;
}

test("an endpoint that lost a subnet", async () => {
  const VpcEndpointId = await physical("Service", "AWS::EC2::VPCEndpoint", "EndpointsSecrets");
  const { VpcEndpoints: [endpoint] = [] } = await clients.ec2.send(
    new ec2.DescribeVpcEndpointsCommand({ VpcEndpointIds: [VpcEndpointId] }),
  );
  const lost = endpoint?.SubnetIds?.slice(0, 1);
  says(await examine(["endpoints"]), "endpoints.state", "ok", /available, with private DNS, in 3 subnets/);
  says(await examine(["endpoints"]), "endpoints.state", "ok", /available, in 3 route tables/);
  await clients.ec2.send(new ec2.ModifyVpcEndpointCommand({ VpcEndpointId, RemoveSubnetIds: lost }));
  says(await examine(["endpoints"]), "endpoints.state", "failed", /with private DNS, in 2 subnets/);
  await clients.ec2.send(new ec2.ModifyVpcEndpointCommand({ VpcEndpointId, AddSubnetIds: lost }));
  assert.equal((await examine(["endpoints"])).counts.failed, 0);
});

test("a clock that is wrong, and machines that no zone has", async () => {
  account.situation.ahead = 60;
  says(await examine(["clock"]), "clock.here", "warning", /60 s behind AWS/);
  account.situation.ahead = -3600;
  says(await examine(["clock"]), "clock.here", "failed", /60 min ahead of AWS/);
  account.situation.ahead = 0;
  const found = Object.values(templates.Service.Resources).find(
    ({ Type }) => Type === "AWS::EC2::LaunchTemplate",
  );
  const data = found?.Properties.LaunchTemplateData;
  data.InstanceType = "trn1.2xlarge";
  says(await examine(["nodes"]), "nodes.types", "failed", /offers none of trn1\.2xlarge/);
  data.InstanceType = "i4g.xlarge";
});

test("the policy is enough, and what is missing of it is named", async () => {
  const client = new iam.IAMClient({
    endpoint: account.moto.endpoint,
    region: REGION,
    credentials: CREDENTIALS,
  });
  const UserName = "operator";
  await client.send(new iam.CreateUserCommand({ UserName }));
  const allow = async (missing: readonly string[]): Promise<void> => {
    const { Version, Statement } = policy();
    const adapted = Statement.map(({ Action, Resource: _, ...rest }) => ({
      ...rest,
      // moto takes the prefix of CloudWatch's actions from its signatures, and asks for no resource.
      Action: Action.filter((one) => !missing.includes(one)).flatMap((one) => [
        one,
        one.replace(/^cloudwatch:/, "monitoring:"),
      ]),
      Resource: "*",
    }));
    const PolicyDocument = JSON.stringify({
      Version,
      Statement: adapted.filter(({ Action }) => Action.length > 0),
    });
    const named = { UserName, PolicyName: "doctor", PolicyDocument };
    await client.send(new iam.PutUserPolicyCommand(named));
  };
  const { AccessKey } = await client.send(new iam.CreateAccessKeyCommand({ UserName }));
  const { AccessKeyId = "", SecretAccessKey = "" } = AccessKey ?? {};
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: AccessKeyId, AWS_SECRET_ACCESS_KEY: SecretAccessKey });
  account.secret = SecretAccessKey;
  try {
    await allow([]);
    await enforced(true);
    const all = await examine();
    says(all, "caller.identity", "ok", /user\/operator/);
    assert.deepEqual(
      all.results.filter(({ status }) => status === "unknown"),
      [],
    );
    await enforced(false);
    const missing = ["dynamodb:Query", "autoscaling:DescribeAutoScalingGroups", "s3:GetBucketVersioning"];
    await allow(missing);
    account.situation.denied = new Set(["servicequotas:GetServiceQuota", "kafka:DescribeTopic"]);
    account.situation.status.code = 403;
    const message = "User: x is not authorized to perform: execute-api:Invoke on resource: y";
    const { body } = account.situation.status;
    account.situation.status.body = { message };
    await enforced(true);
    const report = await examine();
    says(report, "map.graph", "unknown", /the caller may not dynamodb:Query/);
    says(
      report,
      "quota.vcpus",
      "unknown",
      /the caller may not (autoscaling:Describe|servicequotas:GetService)/,
    );
    says(report, "log.topic", "unknown", /the caller may not (dynamodb:Query|kafka:DescribeTopic)/);
    says(report, "nodes.size", "unknown", /the caller may not autoscaling:DescribeAutoScalingGroups/);
    says(report, "buckets.versioning", "unknown", /the caller may not s3:GetBucketVersioning/);
    says(report, "buckets.public", "ok", /blocked/);
    says(report, "api.status", "unknown", /the caller may not execute-api:Invoke/);
    says(
      report,
      "caller.permissions",
      "warning",
      /missing: autoscaling:DescribeAutoScalingGroups, dynamodb:Query, execute-api:Invoke, .*s3:GetBucketVersioning/,
    );
    account.situation.status = { code: 200, body };
    account.situation.denied = new Set(["cloudformation:DescribeStacks"]);
    const nothing = await examine();
    says(nothing, "stacks.state", "failed", /the caller may not cloudformation:DescribeStacks/);
  } finally {
    await enforced(false);
    account.situation.denied = new Set();
    account.secret = CREDENTIALS.secretAccessKey;
    Object.assign(process.env, {
      AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    });
    client.destroy();
  }
});

/** Has moto enforce policies, or not. */
async function enforced(does: boolean): Promise<void> {
  const url = `${account.moto.endpoint}/moto-api/reset-auth`;
  const answer = await fetch(url, { method: "POST", body: does ? "0" : "inf" });
  assert.equal(answer.status, 200);
}

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

test("the command: exit codes, JSON, and mistakes that it names", async () => {
  const program = join(temporaryFolder("doctor"), "tidegraph-doctor.cjs");
  await packDoctor(program);
  const run = (args: readonly string[], changes: Record<string, string | undefined> = {}): Promise<Ended> =>
    new Promise((done) => {
      const nowhere = { AWS_CONFIG_FILE: "/dev/null", AWS_SHARED_CREDENTIALS_FILE: "/dev/null" };
      const env = { ...process.env, ...nowhere, ...changes };
      execFile(program, args, { env, encoding: "utf8" }, (error, out, told) =>
        done({ code: error === null ? 0 : Number(error.code), out, error: told }),
      );
    });
  const name = ["--name", "tidegraph"];
  const whole = await run([...name, "--only", "nodes,buckets"]);
  assert.equal(whole.code, 0, whole.error);
  assert.match(whole.out, /^tidegraph-doctor 0\.1\.0: tidegraph-state, tidegraph-service in eu-west-1\n/);
  assert.match(whole.out, /^ok +nodes\.size +example-nodes: 3 in service$/m);
  assert.match(whole.out, /^0 failures, 0 warnings, 0 could not be looked at, \d+ ok$/m);
  account.situation.eventBridge = false;
  const stacks = ["--stack", STACKS.State, "--stack", STACKS.Service, "--region", REGION];
  const json = await run([...stacks, "--json", "--only", "buckets"]);
  account.situation.eventBridge = true;
  assert.equal(json.code, 1);
  const { results, counts }: Report = JSON.parse(json.out);
  assert.equal(counts.failed, 1);
  assert.deepEqual(
    results.filter(({ status }) => status === "failed").map(({ id }) => id),
    ["buckets.events"],
  );

  const none = { AWS_ACCESS_KEY_ID: undefined, AWS_SECRET_ACCESS_KEY: undefined };
  const mistakes: [string[], RegExp, Record<string, string | undefined>?][] = [
    [[], /which deployment\?/],
    [["--nmae", "x"], /Unknown option '--nmae'/],
    [["people"], /Unexpected argument 'people'/],
    [[...name, "--stack", "other"], /not both/],
    [["--name", "no/such"], /"no\/such-state" cannot be the name of a stack/],
    [[...name, "--region", "europe"], /--region "europe" is no region/],
    [[...name, "--only", "maps"], /--only "maps" is no area/],
    [["--name", "others"], /there is no stack others-state in eu-west-1/],
    [name, /which region\?/, { AWS_REGION: undefined }],
    [name, /no credentials of AWS/, none],
    [[...name, "--profile", "nobody"], /no credentials of AWS for the profile nobody/, none],
    [name, /AWS cannot be reached: sts:GetCallerIdentity/, { AWS_ENDPOINT_URL: "http://127.0.0.1:9" }],
  ];
  for (const [args, error, changes] of mistakes) {
    const ended = await run(args, changes);
    assert.equal(ended.code, 2, `${args}: ${ended.error}`);
    assert.match(ended.error, error);
    assert.equal(ended.out, "");
  }
  await enforced(true);
  const stranger = await run(name, { AWS_ACCESS_KEY_ID: "AKIAUNKNOWN" });
  await enforced(false);
  assert.deepEqual([stranger.code, stranger.out], [2, ""]);
  assert.match(stranger.error, /does not accept the credentials: InvalidClientTokenId/);
  assert.match((await run(["--help"])).out, /Usage: tidegraph-doctor --name NAME/);
  assert.match((await run(["--version"])).out, /^tidegraph-doctor 0\.1\.0\n$/);
  assert.deepEqual(JSON.parse((await run(["--policy"])).out), policy());
});

test("the API calls another version of the query function than the one that was deployed", async () => {
  const FunctionName = await physical("Service", "AWS::Lambda::Function", "QueryFunction");
  const Name = "live";
  says(await examine(["release"]), "release.function", "ok", /live is at version 1$/);
  await stored.lambda.send(
    new lambda.UpdateFunctionCodeCommand({ FunctionName, ZipFile: EMPTY_ZIP, Publish: true }),
  );
  const move = async (FunctionVersion: string, weights: Record<string, number>): Promise<void> => {
    const RoutingConfig = { AdditionalVersionWeights: weights };
    await stored.lambda.send(
      new lambda.UpdateAliasCommand({ FunctionName, Name, FunctionVersion, RoutingConfig }),
    );
  };
  await move("2", {});
  says(await examine(["release"]), "release.function", "warning", /live is at version 2$/);
  await move("1", { 2: 0.1 });
  says(await examine(["release"]), "release.function", "warning", /live is at version 1, with 10 % at 2$/);
  await move("1", {});
  says(await examine(["release"]), "release.function", "ok", /version 1/);
});

test("roles that cannot do what their processes do, and keys that do not let them", async () => {
  const { iam: client } = stored;
  const { situation } = account;
  says(
    await examine(["roles"]),
    "roles.actions",
    "ok",
    /^\d\d roles may do what the templates say: \d{3} actions/,
  );
  const role = (ending: string) => physical("Service", "AWS::IAM::Role", ending);
  const [nodes, workers, query] = [
    await role("NodesRole"),
    await role("WorkersRole"),
    await role("QueryRole"),
  ];
  const Bucket = await physical("State", "AWS::S3::Bucket", "BucketsData");
  const of = async (RoleName: string): Promise<readonly Result[]> =>
    (await examine(["roles"])).results.filter(({ subject }) => subject === RoleName);
  const tells = async (RoleName: string, seen: RegExp, remedy: RegExp): Promise<void> => {
    const found = await of(RoleName);
    const one = found.find((result) => seen.test(result.seen));
    assert.equal(one?.status, "failed", JSON.stringify(found));
    assert.match(one?.remedy ?? "", remedy);
  };

  // A denial that somebody added, besides the allowance.
  const deny = { Effect: "Deny", Action: "s3:PutObject", Resource: `arn:aws:s3:::${Bucket}/*` };
  const PolicyDocument = JSON.stringify({ Version: "2012-10-17", Statement: [deny] });
  const added = { RoleName: nodes, PolicyName: "freeze" };
  await client.send(new iam.PutRolePolicyCommand({ ...added, PolicyDocument }));
  const onData = `may not s3:PutObject on arn:aws:s3:::${Bucket}/\\*`;
  await tells(nodes, new RegExp(`${onData}: an explicit deny in \\S*freeze$`), /take the deny away/);
  await client.send(new iam.DeleteRolePolicyCommand(added));

  // A policy that somebody cut.
  const { PolicyNames: [PolicyName = ""] = [] } = await client.send(
    new iam.ListRolePoliciesCommand({ RoleName: workers }),
  );
  const whole = await client.send(new iam.GetRolePolicyCommand({ RoleName: workers, PolicyName }));
  const document = JSON.parse(decodeURIComponent(whole.PolicyDocument ?? ""));
  const put = (Statement: object[]) => {
    const changed = {
      RoleName: workers,
      PolicyName,
      PolicyDocument: JSON.stringify({ ...document, Statement }),
    };
    return client.send(new iam.PutRolePolicyCommand(changed));
  };
  await put(
    document.Statement.filter(
      ({ Action }: { Action: unknown }) => Action !== "secretsmanager:GetSecretValue",
    ),
  );
  await tells(
    workers,
    /^may not secretsmanager:GetSecretValue on arn:aws:secretsmanager:.+: no policy of the role allows it$/,
    new RegExp(
      `put ${PolicyName} back as the template has it.*detect-stack-drift --stack-name tidegraph-service`,
    ),
  );
  await put(document.Statement);

  // A boundary without the use of keys, and one with a condition that a simulation cannot meet.
  const bounded = async (name: string, statements: object[]): Promise<void> => {
    const limits = JSON.stringify({ Version: "2012-10-17", Statement: statements });
    const { Policy } = await client.send(
      new iam.CreatePolicyCommand({ PolicyName: name, PolicyDocument: limits }),
    );
    const PermissionsBoundary = Policy?.Arn;
    await client.send(new iam.PutRolePermissionsBoundaryCommand({ RoleName: query, PermissionsBoundary }));
  };
  const all = { Effect: "Allow", Action: "*", Resource: "*" };
  await bounded("limits", [{ ...all, Action: undefined, NotAction: "kms:*" }]);
  await tells(
    query,
    /may not kms:Decrypt, kms:GenerateDataKey on arn:aws:kms:\S+: the role's permissions boundary does not allow it$/,
    /add it to the boundary: aws iam get-role/,
  );
  const inVpc = { StringEquals: { "aws:SourceVpc": "vpc-1" } };
  await bounded("within", [{ ...all, Condition: inVpc }]);
  const conditional = await of(query);
  assert.deepEqual([...new Set(conditional.map(({ status }) => status))], ["warning"]);
  assert.match(conditional[0]?.seen ?? "", /boundary does not allow it, unless .*: aws:SourceVpc$/);
  // The region of the requests is known.
  const here = { StringEquals: { "aws:RequestedRegion": REGION } };
  await bounded("here", [{ ...all, Condition: here }]);
  assert.deepEqual(await of(query), []);
  await client.send(new iam.DeleteRolePermissionsBoundaryCommand({ RoleName: query }));

  // A service control policy of the organization.
  const Action = "dynamodb:UpdateItem";
  situation.controls = { Statement: [{ Effect: "Deny", Action, Resource: "*" }] };
  await tells(
    nodes,
    /may not dynamodb:UpdateItem on arn:aws:dynamodb:\S+: a service control policy of the organization/,
    /ask those who manage the organization/,
  );
  assert.deepEqual(await of(query), [], "a role that does not need the action");
  situation.controls = undefined;

  // Actions that IAM does not simulate together with others are asked about one after the other.
  situation.apart = new Set(["s3:GetObject", "logs:PutLogEvents"]);
  const before = account.simulation.asked;
  says(await examine(["roles"]), "roles.actions", "ok", /./);
  const apart = account.simulation.asked - before;
  situation.apart = new Set();
  const again = account.simulation.asked;
  says(await examine(["roles"]), "roles.keys", "ok", /its policy lets \d+ roles use it/);
  assert.ok(apart > account.simulation.asked - again, "more questions than without");

  // A caller who may not simulate.
  situation.denied = new Set(["iam:SimulatePrincipalPolicy", "iam:SimulateCustomPolicy"]);
  const report = await examine(["roles"]);
  says(
    report,
    "roles.actions",
    "unknown",
    /^simulation is not allowed, so \d\d roles were not looked at: the caller may not iam:SimulatePrincipalPolicy$/,
  );
  says(report, "roles.keys", "unknown", /the caller may not iam:SimulateCustomPolicy/);
  says(report, "caller.permissions", "warning", /iam:SimulateCustomPolicy, iam:SimulatePrincipalPolicy/);
  assert.equal(report.counts.failed, 0);
  situation.denied = new Set();

  await withKeyPolicies({
    client: stored.kms,
    KeyId: await physical("State", "AWS::KMS::Key", "StateKey"),
    role: nodes,
    keys: async () => (await examine(["roles"])).results.filter(({ id }) => id === "roles.keys"),
  });

  // A role that is gone.
  const Names = (await client.send(new iam.ListRolePoliciesCommand({ RoleName: workers }))).PolicyNames ?? [];
  for (const name of Names)
    await client.send(new iam.DeleteRolePolicyCommand({ RoleName: workers, PolicyName: name }));
  await client.send(new iam.DeleteRoleCommand({ RoleName: workers }));
  await tells(
    workers,
    /^the role does not exist$/,
    /make it again as the template of tidegraph-service has it/,
  );
});

test("a quota of Fargate that is enough until an upgrade", async () => {
  const { situation } = account;
  situation.fargate = 5;
  const report = await examine(["quota"]);
  says(report, "quota.fargate", "warning", /5 processors/);
  const [{ wanted = "", remedy = "" } = {}] = of(report, "quota.fargate");
  assert.match(wanted, /^at least 6: /);
  assert.match(remedy, /--service-code fargate --quota-code L-3032A538 --desired-value 6$/);
  situation.fargate = 6;
  says(await examine(["quota"]), "quota.fargate", "ok", /6 processors/);
});

test("what AWS holds of a deployment and is wrong", async () => {
  await breakResources({
    ...{ account, clients, stored, machines, physical, diskUsed },
    launchTemplate: (await group()).LaunchTemplate?.LaunchTemplateId,
    renewCertificate: (days) => importCertificate(days, certificate),
  });
  const report = await examine();
  says(report, "quota.vcpus", "failed", /8 processors for 3 to 10 machines with 4 each/);
  says(
    report,
    "quota.fargate",
    "failed",
    /1 processors on Fargate for 2 to 4 workers with 1 each and 1 backups/,
  );
  says(report, "quota.functions", "failed", /10 functions at once/);
  says(report, "stacks.state", "failed", /UPDATE_ROLLBACK_FAILED/);
  says(report, "stacks.protection", "warning", /off/);
  says(report, "key.state", "failed", /PendingDeletion, to be deleted on/);
  says(report, "key.state", "warning", /Enabled, not rotated/);
  says(report, "log.cluster", "failed", /FAILED/);
  says(report, "log.settings", "failed", /log\.retention\.ms is 604800000/);
  says(
    report,
    "log.topic",
    "failed",
    /retention\.ms is 604800000, .*there are 2 copies, there are 3 partitions/,
  );
  says(report, "log.disks", "failed", /broker 1 91 %/);
  says(report, "map.table", "warning", /not protected/);
  says(report, "map.recovery", "failed", /off/);
  says(report, "nodes.size", "failed", /unhealthy/);
  says(report, "nodes.protection", "failed", /not protected/);
  says(report, "nodes.processes", "failed", /Launch/);
  says(report, "nodes.hooks", "failed", /joins is missing/);
  says(report, "nodes.template", "warning", /run an earlier version/);
  says(report, "buckets.versioning", "failed", /Suspended/);
  says(report, "buckets.encryption", "failed", /AES256/);
  says(report, "buckets.public", "failed", /BlockPublicAcls/);
  says(report, "buckets.lifecycle", "warning", /missing: everything earlier versions after 1 days/);
  says(report, "buckets.events", "failed", /not told/);
  says(report, "backups.age", "failed", /no backup/);
  says(report, "secrets.versions", "failed", /to be deleted/);
  says(report, "secrets.client", "failed", /to be deleted/);
  says(report, "certificates.dates", "failed", /3 days left/);
  says(report, "workers.service", "failed", /1 of 2 run/);
  says(report, "workers.targets", "failed", /0 healthy/);
  says(report, "api.status", "failed", /503: .*no node answers/);
  says(report, "alarms.now", "failed", /disk is full/);
  says(report, "alarms.actions", "failed", /^deleted: .*ApiErrors/);
  says(report, "alarms.actions", "failed", /^actions are off: .*QueryErrors/);
  says(report, "alarms.topic", "failed", /no subscription/);
  assert.ok(report.counts.failed > 20);
  // A deployment of the same template would change none of these.
  for (const [id, remedy] of [
    ["log.settings", /the stack tidegraph-state with cdk deploy --revert-drift/],
    ["buckets.encryption", /the stack tidegraph-state with cdk deploy --revert-drift/],
    ["buckets.lifecycle", /the stack tidegraph-state with cdk deploy --revert-drift/],
    ["alarms.actions", /the stack tidegraph-service with cdk deploy --revert-drift/],
    ["map.table", /: aws dynamodb update-table --table-name \S+ --deletion-protection-enabled$/],
    [
      "nodes.hooks",
      /: aws autoscaling put-lifecycle-hook --auto-scaling-group-name example-nodes --lifecycle-hook-name joins --lifecycle-transition autoscaling:EC2_INSTANCE_LAUNCHING --default-result ABANDON --heartbeat-timeout 1320$/,
    ],
  ] as const)
    assert.ok(
      of(report, id).some(
        (one) => remedy.test(one.remedy ?? "") && /changed this by hand/.test(one.remedy ?? ""),
      ),
      `${id}: ${JSON.stringify(of(report, id))}`,
    );
});

/**
 * Requests of programs in the VPC, by the sources and by the roles: the endpoints admit each of them. An endpoint's policy
 * holds for every principal, so it has to admit what people do on a machine as well.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import * as s3 from "aws-cdk-lib/aws-s3";
import { ITEM_ACTIONS, OBJECT_ACTIONS } from "../lib/constructs/endpoints.ts";
import { FINDS, REMOVES } from "../lib/constructs/removal.ts";
import { example, flat, ofType } from "./support.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

/** Everything that adds requests: backups, a restore, loads from elsewhere, shells, traces, certificates, several graphs. */
const elsewhere = new Stack();
const { service } = example({
  backup: {},
  restoreFrom: s3.Bucket.fromBucketName(elsewhere, "Restore", "backups-of-another-graph"),
  loadFrom: [s3.Bucket.fromBucketName(elsewhere, "Load", "files-to-load")],
  nodes: { sessionManager: true },
  traces: { agentImage: `registry.example/agent@sha256:${"a".repeat(64)}` },
  encryption: {},
  graphs: [{ name: "orders" }],
});

interface Statement {
  readonly Effect: string;
  readonly Action: unknown;
  readonly Resource: unknown;
}

/** The policy of an endpoint as pairs of action and resource, by the last parts of the service's name. */
const admitted = new Map(
  ofType(service, "AWS::EC2::VPCEndpoint").map(([, { Properties }]) => [
    flat(Properties.ServiceName).replace(/^com\.amazonaws\.<AWS::Region>\./, ""),
    pairs(Properties.PolicyDocument.Statement),
  ]),
);

function pairs(statements: readonly Statement[]): [string, string][] {
  return statements
    .filter(({ Effect }) => Effect === "Allow")
    .flatMap(({ Action, Resource }) =>
      list(Action).flatMap((action) =>
        list(Resource).map((one): [string, string] => [String(action), flat(one)]),
      ),
    );
}

/** Returns whether a pattern with asterisks covers a text, which may have asterisks itself. */
function covers(pattern: string, text: string): boolean {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(text);
}

/** The roles of what runs in the VPC: machines, tasks, and functions with network interfaces there. */
function rolesInVpc(): Set<string> {
  const functions = ofType(service, "AWS::Lambda::Function").filter(
    ([, { Properties }]) => Properties.VpcConfig !== undefined,
  );
  assert.equal(
    functions.length,
    3,
    "the query function, the one that loads, and the one that removes a graph",
  );
  const tasks = ofType(service, "AWS::ECS::TaskDefinition", 2).map(([, { Properties }]) => Properties);
  const profiles = ofType(service, "AWS::IAM::InstanceProfile", 1);
  return new Set([
    ...functions.map(([, { Properties }]) => Properties.Role["Fn::GetAtt"][0]),
    ...tasks.flatMap((task) => [task.TaskRoleArn["Fn::GetAtt"][0], task.ExecutionRoleArn["Fn::GetAtt"][0]]),
    ...profiles.map(([, { Properties }]) => Properties.Roles[0].Ref),
  ]);
}

/** What these roles may do, as pairs of action and resource. */
function allowed(): [string, string][] {
  const roles = rolesInVpc();
  const policies = ofType(service, "AWS::IAM::Policy").filter(([, { Properties }]) =>
    Properties.Roles.some(({ Ref }: { Ref: string }) => roles.has(Ref)),
  );
  assert.equal(policies.length, roles.size);
  return policies.flatMap(([, { Properties }]) => pairs(Properties.PolicyDocument.Statement));
}

/** Services that programs in the VPC reach without an endpoint. */
const WITHOUT: Readonly<Record<string, string>> = {
  kms: "S3, DynamoDB and Secrets Manager ask KMS for us",
  "kafka-cluster": "brokers are in the VPC",
  ec2: "Lambda makes the network interfaces of functions",
};

test("the endpoints admit every request that a role in the VPC may send", () => {
  const requests = allowed();
  const services = new Set(requests.map(([action]) => action.split(":")[0] ?? ""));
  for (const name of ["dynamodb", "s3", "secretsmanager", "logs", "ecr", "xray", "ssmmessages"])
    assert.ok(services.has(name), `no role uses ${name}, so that this test compares nothing`);
  for (const [action, resource] of requests) {
    const [name = ""] = action.split(":");
    if (name in WITHOUT) continue;
    const endpoints = [...admitted].filter(([endpoint]) => endpoint.split(".")[0] === name);
    assert.ok(endpoints.length > 0, `no endpoint leads to ${name} for ${action}`);
    for (const [endpoint, policy] of endpoints) {
      const isAdmitted = policy.some(([one, at]) => covers(one, action) && covers(at, resource));
      assert.ok(isAdmitted, `the endpoint of ${endpoint} refuses ${action} on ${resource}`);
    }
  }
});

/** The actions of IAM that an operation of DynamoDB's SDK needs. Our transactions put items and read them. */
const ACTIONS: Readonly<Record<string, string>> = {
  get_item: "dynamodb:GetItem",
  transact_get_items: "dynamodb:GetItem",
  query: "dynamodb:Query",
  put_item: "dynamodb:PutItem",
  transact_write_items: "dynamodb:PutItem",
  update_item: "dynamodb:UpdateItem",
  delete_item: "dynamodb:DeleteItem",
};

test("the endpoint of DynamoDB admits each operation of the map's client, and no other one", () => {
  const folder = join(ROOT, "engine-core", "cluster", "src", "dynamodb");
  const files = readdirSync(folder).filter((name) => name.endsWith(".rs"));
  const source = (name: string): string => readFileSync(join(folder, name), "utf8");
  const called = files.flatMap((name) =>
    [...source(name).matchAll(/\bclient(?:\(\))?\s*\.(?!clone)(\w+)\(\)/g)].map(([, call = ""]) => call),
  );
  const calls = new Set(called);
  // Only `init --create-tables` calls these, for tables that are no part of a stack.
  for (const call of ["create_table", "describe_table"]) assert.ok(calls.delete(call), call);
  const needed = [...calls].map((call) => ACTIONS[call] ?? `an action for ${call}`);
  assert.deepEqual([...new Set(needed)].toSorted(), ITEM_ACTIONS.toSorted());
  const text = files.map(source).join("\n");
  const items = [...text.matchAll(/TransactWriteItem::builder\(\)\s*\.(\w+)\(/g)].map(([, kind]) => kind);
  assert.deepEqual(
    [...new Set(items)].toSorted(),
    ["put", "update"],
    "a transaction with another kind of item needs another action",
  );
  // A client under another name would escape the search, but not this count.
  assert.equal([...text.matchAll(/\.send\(\)/g)].length, called.length);
  const table = admitted.get("dynamodb") ?? [];
  assert.deepEqual([...new Set(table.map(([action]) => action))].toSorted(), ITEM_ACTIONS.toSorted());
});

test("the endpoint of S3 admits what the object store's client does with the data bucket", () => {
  const policy = admitted.get("s3") ?? [];
  // What the removal of a graph needs more, below the folders of graphs alone.
  const isOfRemoval = (action: string, resource: string): boolean =>
    action !== "s3:ListBucket" &&
    (FINDS.includes(action) || (REMOVES.includes(action) && resource.endsWith("/graphs/*")));
  const ofData = policy
    .filter(([, resource]) => /^<State:?.*BucketsData.*>/.test(resource))
    .filter(([action, resource]) => !isOfRemoval(action, resource));
  assert.deepEqual(
    [...new Set(ofData.map(([action]) => action))].toSorted(),
    [...OBJECT_ACTIONS, "s3:ListBucket"].toSorted(),
  );
  // object_store copies and renames by CopyObject, whose source may be in another bucket.
  const source = readFileSync(join(ROOT, "engine-core", "platform", "src", "objects.rs"), "utf8");
  assert.doesNotMatch(source, /store\.(copy|rename)\w*\(/);
});

/** Ways out of the VPC, and services that act for us: policies of endpoints, permissions of functions, ECS Exec, keys of backups. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import type { Template } from "aws-cdk-lib/assertions";
import * as kms from "aws-cdk-lib/aws-kms";
import * as s3 from "aws-cdk-lib/aws-s3";
import { example, flat, named, ofType, testApp } from "./support.ts";

const AGENT = `registry.example/agent@sha256:${"a".repeat(64)}`;

const { service } = example();

interface Statement {
  readonly Sid?: string;
  readonly Effect: string;
  readonly Principal: unknown;
  readonly Action: string | string[];
  readonly Resource: unknown;
  readonly Condition?: unknown;
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

/** Returns the policies of all endpoints of a kind, by the last parts of the service's name. */
function policies(template: Template, kind: "Gateway" | "Interface"): Map<string, Statement[]> {
  const found = ofType(template, "AWS::EC2::VPCEndpoint")
    .map(([, { Properties }]) => Properties)
    .filter(({ VpcEndpointType }) => VpcEndpointType === kind);
  return new Map(
    found.map(({ ServiceName, PolicyDocument }) => [
      flat(ServiceName).replace(/^com\.amazonaws\.<AWS::Region>\./, ""),
      PolicyDocument?.Statement ?? [],
    ]),
  );
}

/** Returns what the policy of a gateway endpoint admits, as `action resource`. */
function admitted(template: Template, endpoint: string): string[] {
  const statements = policies(template, "Gateway").get(endpoint) ?? [];
  assert.ok(statements.length > 0, `${endpoint} has no policy, and admits everything`);
  return statements
    .flatMap(({ Effect, Action, Resource }) => {
      assert.equal(Effect, "Allow");
      return list(Action).flatMap((action) => list(Resource).map((one) => `${action} ${short(flat(one))}`));
    })
    .toSorted();
}

/** Removes what CDK adds to names. */
function short(text: string): string {
  return text.replaceAll(
    /<(?:State|Service)(?:Buckets|Map)?([A-Z][A-Za-z]+?)[0-9A-F]{8}(?:Arn|Ref|\.Arn)?[0-9A-F]*>/g,
    "<$1>",
  );
}

test("the endpoint of DynamoDB admits only the table of this deployment", () => {
  const items = ["DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"];
  assert.deepEqual(
    admitted(service, "dynamodb"),
    items.flatMap((action) => [`dynamodb:${action} <Table>`, `dynamodb:${action} <Table>/index/*`]),
  );
});

test("the endpoint of S3 admits only the buckets of this deployment, and reading of AWS's packages and images", () => {
  const below = (bucket: string) => `${bucket}/*`;
  // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
  const assets = "arn:<AWS::Partition>:s3:::cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}";
  const reads = [
    below("<Data>"),
    below("<Drop>"),
    below(assets),
    "arn:<AWS::Partition>:s3:::al2023-repos-<AWS::Region>-*/*",
    "arn:<AWS::Partition>:s3:::prod-<AWS::Region>-starport-layer-bucket/*",
  ];
  assert.deepEqual(
    admitted(service, "s3"),
    [
      ...reads.map((resource) => `s3:GetObject ${resource}`),
      ...["AbortMultipartUpload", "DeleteObject", "PutObject"].map((action) => `s3:${action} <Data>/*`),
      "s3:ListBucket <Data>",
      "s3:ListBucket <Drop>",
    ].toSorted(),
  );
});

test("with several graphs the endpoint of S3 admits the removal of one, below the folders of graphs", () => {
  const several = admitted(example({ graphs: [{ name: "orders" }] }).service, "s3");
  const alone = admitted(service, "s3");
  const finds = ["s3:ListBucketMultipartUploads", "s3:ListBucketVersions"];
  const removes = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:DeleteObjectVersion"];
  const folders = ["<Data>/graphs/*", "<Drop>/drop/*", "<Drop>/reports/*"];
  assert.deepEqual(
    several.filter((one) => !alone.includes(one)),
    [
      ...finds.flatMap((action) => [`${action} <Data>`, `${action} <Drop>`]),
      ...removes.flatMap((action) => folders.map((folder) => `${action} ${folder}`)),
    ].toSorted(),
  );
});

test("interface endpoints admit principals of this account only", () => {
  const everything = { backup: {}, nodes: { sessionManager: true }, traces: { agentImage: AGENT } };
  for (const [props, names] of [
    [{}, ["ecr.api", "ecr.dkr", "logs", "secretsmanager"]],
    [everything, ["ecr.api", "ecr.dkr", "logs", "secretsmanager", "ssm", "ssmmessages", "xray"]],
  ] as const) {
    const found = policies(example(props).service, "Interface");
    assert.deepEqual([...found.keys()].toSorted(), names);
    for (const [name, statements] of found) {
      assert.deepEqual(
        statements,
        [
          {
            Effect: "Allow",
            Principal: { AWS: "*" },
            Action: "*",
            Resource: "*",
            Condition: { StringEquals: { "aws:PrincipalAccount": { Ref: "AWS::AccountId" } } },
          },
        ],
        name,
      );
    }
  }
});

test("services invoke functions only for one API, one rule, or this account", () => {
  const { service: whole } = example({ backup: {} });
  const permissions = ofType(whole, "AWS::Lambda::Permission").map(([id, { Properties }]) => ({
    id,
    ...Properties,
  }));
  const principals = new Set(permissions.map(({ Principal }) => Principal));
  assert.deepEqual([...principals].toSorted(), [
    "apigateway.amazonaws.com",
    "events.amazonaws.com",
    "secretsmanager.amazonaws.com",
  ]);
  for (const { id, Principal, Action, SourceArn, SourceAccount } of permissions) {
    assert.equal(Action, "lambda:InvokeFunction", id);
    if (Principal === "apigateway.amazonaws.com") {
      assert.match(
        flat(SourceArn),
        /:execute-api:<AWS::Region>:<AWS::AccountId>:<ServiceApi[0-9A-F]{8}>\/(<ServiceApiDeploymentStage|test-invoke-stage)/,
        id,
      );
    } else if (Principal === "events.amazonaws.com") {
      assert.match(flat(SourceArn), /^<Service[A-Za-z]+[0-9A-F]{8}\.Arn>$/, id);
    } else {
      assert.deepEqual(SourceAccount, { Ref: "AWS::AccountId" }, id);
    }
  }
});

test("nobody opens a shell in a worker: ECS Exec is off", () => {
  const services = ofType(service, "AWS::ECS::Service", 1);
  for (const [id, { Properties }] of services) assert.notEqual(Properties.EnableExecuteCommand, true, id);
  const { service: whole } = example({ backup: {}, nodes: { sessionManager: true } });
  // Exec in a task needs these actions in the role of the task.
  const tasks = ofType(whole, "AWS::IAM::Policy").filter(([id]) =>
    /^Service(Workers|Backup)(Role|Starter)/.test(id),
  );
  assert.ok(tasks.length >= 3, tasks.map(([id]) => id).join());
  for (const [id, policy] of tasks) assert.doesNotMatch(JSON.stringify(policy), /ssmmessages:/, id);
});

/** Returns the conditions of a role's statements about keys, by the statement's name. */
function conditions(template: Template, role: string): Map<string, unknown> {
  const { Statement } = named(template, "AWS::IAM::Policy", role).Properties.PolicyDocument;
  return new Map(
    (Statement as Statement[])
      .filter(({ Action }) => list(Action).some((action) => String(action).startsWith("kms:")))
      .map(({ Sid = "", Condition }) => [Sid, Condition]),
  );
}

const through = (place: string) => ({ StringEquals: { "kms:ViaService": place } });

test("the key of backups is used through S3 only, in the region of its bucket", () => {
  const { service: here } = example({ backup: {} });
  const used = conditions(here, "ServiceBackupRole");
  assert.deepEqual([...used.keys()].toSorted(), ["UseKey", "UseKeyOfBackups"]);
  const of = (all: Map<string, unknown>, sid: string): unknown => {
    const { StringEquals } = all.get(sid) as { StringEquals: Record<string, unknown> };
    return { StringEquals: { "kms:ViaService": flat(StringEquals["kms:ViaService"]) } };
  };
  assert.deepEqual(of(used, "UseKeyOfBackups"), through("s3.<AWS::Region>.<AWS::URLSuffix>"));
  const stack = new Stack(testApp(), "Elsewhere");
  const arn = "arn:aws:kms:eu-north-1:111122223333:key/00000000-0000-0000-0000-000000000000";
  const bucket = s3.Bucket.fromBucketAttributes(stack, "Away", {
    bucketName: "backups-elsewhere",
    region: "eu-north-1",
    encryptionKey: kms.Key.fromKeyArn(stack, "Key", arn),
  });
  const { service: away } = example({ backup: { bucket }, restoreFrom: bucket });
  const place = through("s3.eu-north-1.<AWS::URLSuffix>");
  assert.deepEqual(of(conditions(away, "ServiceBackupRole"), "UseKeyOfBackups"), place);
  assert.deepEqual(of(conditions(away, "ServiceNodesRole"), "ReadBackups"), place);
});

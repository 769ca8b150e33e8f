/**
 * What AWS limits by its bytes, in a deployment with every option, the most graphs, and the longest names that props and
 * AWS allow. Only AWS enforces these limits, when a stack is deployed.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import { Bucket, type IBucket } from "aws-cdk-lib/aws-s3";
import { longest, PLACES } from "./longest.ts";
import { exampleWithEverything } from "./options.ts";
import { ofType, resources, testApp } from "./support.ts";

const graph = (first: string): string => first.padEnd(64, "g");
const elsewhere = new Stack(testApp(), "Elsewhere");
const bucket = (id: string): IBucket => Bucket.fromBucketName(elsewhere, id, id.padEnd(63, "b"));
const { state, service } = exampleWithEverything(
  {
    name: "d".repeat(32),
    graph: graph("0"),
    dropFrom: Array.from({ length: 50 }, (_, index) => String(100_000_000_000 + index)),
  },
  {
    graphs: ["1", "2", "3", "4", "5", "6", "7"].map((first) => ({
      ...{ name: graph(first), partitions: 32_768, shards: 16, share: 0.123, quota: 0.55 },
      gremlin: { ids: "strings", defaultCardinality: "single" },
    })),
    backup: { bucket: bucket("backups"), keyArn: `arn:aws:kms:eu-west-1:111122223333:key/${"k".repeat(36)}` },
    restoreFrom: bucket("restored"),
    loadFrom: Array.from({ length: 16 }, (_, index) => bucket(`loaded${index}`)),
  },
);
const templates = { State: state, Service: service };

/** Returns the bytes of a value as JSON, or of a text. */
function bytesOf(value: unknown): number {
  return Buffer.byteLength(typeof value === "string" ? value : JSON.stringify(value));
}

/** Checks a part of resources of a type in all partitions, with the longest names. */
// biome-ignore lint/suspicious/noExplicitAny: templates have no types
function within(most: number, type: string, part: (properties: any) => unknown): void {
  let count = 0;
  for (const place of PLACES) {
    const of = longest(templates, place);
    for (const [stack, template] of Object.entries(templates)) {
      for (const [id, { Properties }] of ofType(template, type)) {
        count += 1;
        const size = bytesOf(of(stack, part(Properties)));
        assert.ok(size > 0 && size <= most, `${id} in ${place.partition}: ${size} of ${most} bytes`);
      }
    }
  }
  assert.ok(count > 0, type);
}

test("the inline policies of each role have at most 10,240 characters together", () => {
  for (const place of PLACES) {
    const of = longest(templates, place);
    const sizes = new Map<string, number>();
    const add = (role: string, document: unknown): void => {
      sizes.set(role, (sizes.get(role) ?? 0) + bytesOf(document));
    };
    // The state has no roles.
    for (const [id, { Properties }] of ofType(service, "AWS::IAM::Role"))
      for (const one of Properties.Policies ?? []) add(id, of("Service", one.PolicyDocument));
    for (const [, { Properties }] of ofType(service, "AWS::IAM::Policy"))
      for (const { Ref } of Properties.Roles) add(Ref, of("Service", Properties.PolicyDocument));
    assert.ok(sizes.size > 25, String(sizes.size));
    for (const [role, size] of sizes)
      assert.ok(size <= 10_240, `${role} in ${place.partition}: ${size} of 10240`);
  }
});

test("what the CDK takes out of a role that would have more is no longer than IAM takes", () => {
  within(6144, "AWS::IAM::ManagedPolicy", ({ PolicyDocument }) => PolicyDocument);
});

test("policies of resources are no longer than their services take", () => {
  within(2048, "AWS::IAM::Role", ({ AssumeRolePolicyDocument }) => AssumeRolePolicyDocument);
  within(20_480, "AWS::S3::BucketPolicy", ({ PolicyDocument }) => PolicyDocument);
  within(20_480, "AWS::EC2::VPCEndpoint", ({ PolicyDocument }) => PolicyDocument);
  within(32_768, "AWS::KMS::Key", ({ KeyPolicy }) => KeyPolicy);
  within(30_720, "AWS::SNS::TopicPolicy", ({ PolicyDocument }) => PolicyDocument);
});

test("user data, variables of functions, definitions and inputs are no longer than their services take", () => {
  // The limit is that of what is sent, before base64. The addresses of brokers that exist may take a thousand bytes more.
  within(
    16_384 - 1000,
    "AWS::EC2::LaunchTemplate",
    ({ LaunchTemplateData }) => LaunchTemplateData.UserData["Fn::Base64"],
  );
  within(4096, "AWS::Lambda::Function", ({ Environment }) => ({
    "Fn::Join": ["", Object.entries(Environment.Variables).flat()],
  }));
  within(1_048_576, "AWS::StepFunctions::StateMachine", ({ DefinitionString }) => DefinitionString);
  within(8192, "AWS::Events::Rule", ({ Targets: [{ Input = "{}" }] }) => Input);
  within(65_536, "AWS::ECS::TaskDefinition", (all) => all);
});

test("templates have at most 500 resources and a million bytes", () => {
  for (const [name, template] of Object.entries(templates)) {
    const count = resources(template).size;
    assert.ok(count > 0 && count <= 500, `${name}: ${count}`);
    assert.ok(bytesOf(template.toJSON()) <= 1_000_000, name);
  }
});

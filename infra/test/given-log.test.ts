/** An existing Kafka in place of MSK. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import { AwsSolutionsChecks } from "cdk-nag";
import { GraphService, GraphState, type GraphStateProps, InvalidProp } from "../lib/index.ts";
import { flat, ofType, only, placeholders, resources, testApp } from "./support.ts";

const addresses = "b-1.example.com:9094,b-2.example.com:9095";

function deployed(log: GraphStateProps["log"]) {
  const app = testApp();
  const [below, above] = [new Stack(app, "State"), new Stack(app, "Service")];
  const state = new GraphState(below, "State", { name: "example", ...(log && { log }) });
  new GraphService(above, "Service", { state, bundle: placeholders() });
  return { app, state: Template.fromStack(below), service: Template.fromStack(above) };
}

const { app, state, service } = deployed({ addresses });

/** Returns the variables of nodes, as user data writes them. */
function variables(template: Template): string[] {
  const { LaunchTemplateData } = only(template, "AWS::EC2::LaunchTemplate").Properties;
  const script = flat(LaunchTemplateData.UserData["Fn::Base64"]);
  return /^cat >\S+\/fleet\.env <<'END OF FILE'\n(.*?)^END OF FILE$/ms.exec(script)?.[1]?.split("\n") ?? [];
}

test("no resource, permission or alarm is about MSK", () => {
  for (const template of [state, service]) {
    for (const [id, { Type }] of resources(template)) {
      assert.ok(!/MSK|TidegraphBrokers|CloudFormation::CustomResource/.test(Type), `${id}: ${Type}`);
    }
    assert.doesNotMatch(JSON.stringify(template.toJSON()), /AWS\/Kafka|kafka:|kafka-cluster:/);
  }
  // With MSK there would also be CDK's function for custom resources, which asks for the brokers.
  for (const [id] of ofType(service, "AWS::Lambda::Function")) assert.match(id, /^Service/);
});

test("nodes have the addresses and connect with TLS", () => {
  const found = variables(service);
  assert.ok(found.includes(`TIDEGRAPH_KAFKA_BROKERS=${addresses}`), found.join());
  assert.ok(found.includes("TIDEGRAPH_KAFKA_TLS=true"));
  assert.ok(found.includes("LOG_REPLICATION=3") && found.includes("LOG_IN_SYNC=2"));
  assert.ok(!found.some((line) => line.startsWith("TIDEGRAPH_KAFKA_IAM")));
});

test("nodes may connect only to private addresses at the brokers' ports", () => {
  const groups = ofType(service, "AWS::EC2::SecurityGroup").map(([, { Properties }]) => Properties);
  const nodes = groups.find(({ GroupDescription }) => GroupDescription.startsWith("Storage nodes"));
  const out = (nodes.SecurityGroupEgress as { CidrIp?: string; FromPort: number; ToPort: number }[])
    .filter(({ FromPort }) => FromPort !== 443)
    .map(({ CidrIp, FromPort, ToPort }) => `${CidrIp} ${FromPort}-${ToPort}`);
  const ranges = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];
  assert.deepEqual(
    out.toSorted(),
    ranges.flatMap((range) => [`${range} 9094-9094`, `${range} 9095-9095`]).toSorted(),
  );
});

test("copies, security and peers have an effect", () => {
  const peers = [ec2.Peer.ipv4("10.7.0.0/24")];
  const template = deployed({ addresses: "k:9092", security: "plaintext", copies: 1, peers }).service;
  const found = variables(template);
  assert.ok(found.includes("LOG_REPLICATION=1") && found.includes("LOG_IN_SYNC=1"));
  assert.ok(!found.some((line) => /^TIDEGRAPH_KAFKA_(TLS|IAM)/.test(line)), found.join());
  const rules = JSON.stringify(template.toJSON());
  assert.match(rules, /"CidrIp":"10\.7\.0\.0\/24"/);
  assert.doesNotMatch(rules, /"CidrIp":"10\.0\.0\.0\/8"/);
});

test("invalid props are refused by name", () => {
  const refused = (log: GraphStateProps["log"], prop: string): void => {
    assert.throws(
      () => new GraphState(new Stack(testApp(), "Stack"), "State", { name: "example", ...(log && { log }) }),
      (error) => error instanceof InvalidProp && error.prop === prop && error.message.includes(prop),
      JSON.stringify(log),
    );
  };
  for (const wrong of [
    "",
    "b-1",
    "b-1:",
    ":9092",
    "b-1:9092,",
    "b-1:9092;b-2:9092",
    "a b:1",
    "https://b:1",
    "b:0",
  ])
    refused({ addresses: wrong }, "log.addresses");
  refused({ addresses: "b:65536" }, "log.addresses");
  // The type cast stands for a value from the command line.
  refused({ addresses, security: "ssl" as "tls" }, "log.security");
  refused({ addresses, peers: [] }, "log.peers");
  for (const copies of [0, -1, 1.5, Number.NaN]) refused({ addresses, copies }, "log.copies");
  refused({ addresses, copies: 2, copiesInSync: 3 }, "log.copiesInSync");
});

test("every finding of AWS's rules is explained", () => {
  assert.deepEqual(new AwsSolutionsChecks(app).validateScope(app).violations, []);
});

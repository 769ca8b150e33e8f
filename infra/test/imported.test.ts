/** A service on a state that another app made, and clients that connect to a service. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Fn, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import type { GraphStateAttributes } from "../lib/constructs/imported-state.ts";
import { GraphService, GraphState } from "../lib/index.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { example, flat, named, ofType, placeholders, resources, testApp } from "./support.ts";

const HERE = { account: "123456789012", region: "eu-west-1" };
const CLUSTER = `arn:aws:kafka:${HERE.region}:${HERE.account}:cluster/example-log-0a1b2c3d/01234567-89ab-cdef-0123-456789abcdef-1`;

/** A stack with the imported state, whose attributes are those of the example. */
function imported(
  more: Partial<GraphStateAttributes> = {},
  env = HERE,
  further: readonly string[] = [],
): { stack: ServiceStack; template: Template } {
  const app = testApp();
  const holder = new Stack(app, "Holder", { env });
  const vpc = ec2.Vpc.fromVpcAttributes(holder, "Vpc", {
    vpcId: "vpc-0123456789abcdef0",
    availabilityZones: ["a", "b", "c"].map((zone) => `${HERE.region}${zone}`),
    isolatedSubnetIds: ["subnet-0123456789abcdefa", "subnet-0123456789abcdefb", "subnet-0123456789abcdefc"],
    isolatedSubnetRouteTableIds: ["rtb-0123456789abcdef1", "rtb-0123456789abcdef2", "rtb-0123456789abcdef3"],
  });
  const state = GraphState.fromAttributes(holder, "State", {
    ...{ name: "example", graph: "people", vpc, tablePrefix: "example-0a1b2c3d-" },
    keyArn: `arn:aws:kms:${HERE.region}:${HERE.account}:key/01234567-89ab-cdef-0123-456789abcdef`,
    ...{ dataBucket: "people-data", dropBucket: "people-drop" },
    log: { clusterArn: CLUSTER, securityGroupId: "sg-0123456789abcdef0", brokers: 3 },
    ...more,
  });
  const props = { env, state, bundle: placeholders(), endpoints: true };
  const stack = new ServiceStack(app, "Service", { ...props, graphs: further.map((name) => ({ name })) });
  return { stack, template: Template.fromStack(stack) };
}

test("a service on an existing state has the resources of one whose state is in the app", () => {
  const { template } = imported();
  const ids = (of: Template): string[] =>
    [...resources(of)]
      .map(
        ([id, { Type }]) =>
          `${Type} ${id.replace(/[0-9A-Fa-f]{8,}$/, "").replace("toHolderState", "toState")}`,
      )
      .toSorted();
  assert.deepEqual(ids(template), ids(example().service));
  assert.equal(JSON.stringify(template.toJSON()).includes("Fn::ImportValue"), false);
});

test("route tables of a network may be imported values, which nobody exports again", () => {
  const app = testApp();
  const holder = new Stack(app, "Holder", { env: HERE });
  const ids = (what: string): string[] =>
    ["a", "b", "c"].map((zone) => Fn.importValue(`network-${what}-${zone}`));
  const vpc = ec2.Vpc.fromVpcAttributes(holder, "Vpc", {
    vpcId: Fn.importValue("network-vpc"),
    availabilityZones: ["a", "b", "c"].map((zone) => `${HERE.region}${zone}`),
    isolatedSubnetIds: ids("subnet"),
    isolatedSubnetRouteTableIds: ids("table"),
  });
  const { state } = new StateStack(app, "State", { env: HERE, name: "example", network: { vpc } });
  const service = new ServiceStack(app, "Service", { env: HERE, state, bundle: placeholders() });
  assert.ok(ofType(Template.fromStack(service), "AWS::AutoScaling::AutoScalingGroup", 1).length > 0);
  const { Outputs = {} } = Template.fromStack(holder).toJSON();
  assert.deepEqual(Object.keys(Outputs), []);
});

test("the processes get the state's names", () => {
  const { template } = imported();
  const functions = named(template, "AWS::Lambda::Function", "ServiceRebalanceFunction").Properties;
  assert.equal(functions.Environment.Variables.TIDEGRAPH_TABLE_PREFIX, "example-0a1b2c3d-");
  assert.equal(functions.Environment.Variables.TIDEGRAPH_GRAPH, "people");
  const nodes = flat(
    named(template, "AWS::EC2::LaunchTemplate", "ServiceNodes").Properties.LaunchTemplateData.UserData[
      "Fn::Base64"
    ],
  );
  assert.ok(nodes.includes("TIDEGRAPH_OBJECTS=s3://people-data"), nodes.slice(0, 2000));
  const policies = JSON.stringify(
    ofType(template, "AWS::IAM::Policy").map(([, { Properties }]) => Properties),
  );
  for (const name of [
    "table/example-0a1b2c3d-map",
    "people-data/",
    "people-drop/",
    CLUSTER,
    ":topic/example-log-0a1b2c3d/",
  ])
    assert.ok(policies.includes(name), name);
  const ingress = named(template, "AWS::EC2::SecurityGroupIngress", "ServiceNodesUseLog").Properties;
  assert.deepEqual([ingress.GroupId, ingress.FromPort], ["sg-0123456789abcdef0", 9098]);
  const alarm = named(template, "AWS::CloudWatch::Alarm", "ServiceWatchLogOffline").Properties;
  assert.deepEqual(alarm.Dimensions, [{ Name: "Cluster Name", Value: "example-log-0a1b2c3d" }]);
});

test("a service on an existing state has the further graphs for which the state was prepared", () => {
  const { template } = imported({ graphs: ["orders", "events"] }, HERE, ["orders"]);
  const { Variables } = named(template, "AWS::Lambda::Function", "ServiceQueryFunction").Properties
    .Environment;
  assert.equal(Variables.TIDEGRAPH_GRAPH, "people,orders");
  const policies = JSON.stringify(
    ofType(template, "AWS::IAM::Policy").map(([, { Properties }]) => Properties),
  );
  for (const name of ['/tidegraph-orders"', '"dynamodb:LeadingKeys":["people","orders"]'])
    assert.ok(policies.includes(name), name);
  assert.throws(
    () => imported({ graphs: ["events"] }, HERE, ["events", "orders"]),
    /graphs is "orders", and has to be among `graphs` of fromAttributes, after addGraphs/,
  );
});

test("an existing state may have an existing Kafka", () => {
  const { template } = imported({ log: { addresses: "b-1.example.com:9094" } });
  assert.equal(ofType(template, "Custom::TidegraphBrokers").length, 0);
  assert.ok(
    JSON.stringify(named(template, "AWS::EC2::LaunchTemplate", "ServiceNodes")).includes(
      "b-1.example.com:9094",
    ),
  );
});

test("the state says all that an import needs", () => {
  const outputs = Object.keys(example().state.toJSON().Outputs ?? {});
  for (const name of [
    "KeyArn",
    "TablePrefix",
    "DataBucketName",
    "DropBucketName",
    "VpcId",
    "LogClusterArn",
    "LogSecurityGroup",
  ])
    assert.equal(
      outputs.filter((id) => id.startsWith(`State${name}`)).length,
      1,
      `${name}: ${outputs.join(", ")}`,
    );
});

test("impossible attributes are refused", () => {
  const key = (place: string): string => `arn:aws:kms:${place}:key/01234567-89ab-cdef-0123-456789abcdef`;
  for (const [attributes, part] of [
    [{ keyArn: "alias/people" }, "keyArn"],
    [{ keyArn: key("eu-west-1:210987654321") }, "in the account of the stack, 123456789012"],
    [{ keyArn: key("us-east-1:123456789012") }, "in the region of the stack, eu-west-1"],
    [
      { log: { clusterArn: CLUSTER.replace("eu-west-1", "us-east-1"), securityGroupId: "sg-1", brokers: 3 } },
      "log.clusterArn",
    ],
    [{ tablePrefix: "example-map" }, "tablePrefix"],
    [{ log: { clusterArn: "example-log", securityGroupId: "sg-1", brokers: 3 } }, "log.clusterArn"],
    [{ log: { clusterArn: CLUSTER, securityGroupId: "sg-1", brokers: 1 } }, "log.brokers is 1"],
    [{ name: "Example" }, "name"],
    [{ graph: "a_b" }, "graph"],
    [{ graphs: ["orders", "a_b"] }, "graphs[1]"],
    [{ graphs: ["people"] }, "another name"],
    [{ dataBucket: "people", dropBucket: "people" }, "dropBucket"],
  ] as [Partial<GraphStateAttributes>, string][]) {
    assert.throws(
      () => imported(attributes),
      (error: Error) => error.message.includes(part),
      part,
    );
  }
});

test("a client in the VPC is let in by the connections of the service", () => {
  const app = testApp();
  const state = new GraphState(new Stack(app, "State"), "State", { name: "example" });
  const stack = new Stack(app, "Stack");
  const service = new GraphService(stack, "Service", { state, bundle: placeholders() });
  const client = new ec2.SecurityGroup(stack, "Client", { vpc: state.network.vpc, allowAllOutbound: false });
  service.connections.allowDefaultPortFrom(client, "A client");
  const template = Template.fromStack(stack);
  const rules = ofType(template, "AWS::EC2::SecurityGroupIngress").map(([, { Properties }]) => Properties);
  const ours = rules.filter(({ Description }) => Description === "A client");
  assert.equal(ours.length, 1);
  assert.equal(ours[0]?.FromPort, 8182);
  assert.match(flat(ours[0]?.GroupId), /^<ServiceWorkersFront/);
  const without = new GraphService(stack, "Without", {
    ...{ state, bundle: placeholders(), workers: false, apiGatewayAccountRole: false },
  });
  assert.throws(() => without.connections, /workers is false, and has to be settings of workers/);
});

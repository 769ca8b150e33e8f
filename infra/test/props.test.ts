/** Props that cannot be are refused at synth, by name, with the value and what it may be. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import { InvalidProp } from "../lib/check.ts";
import { GraphState, type GraphStateProps } from "../lib/constructs/state.ts";
import { testApp } from "./support.ts";

/** Expects that a prop is refused with words in the message. */
function refused(what: () => unknown, prop: string, ...words: string[]): void {
  assert.throws(what, (error) => {
    assert.ok(error instanceof InvalidProp, String(error));
    assert.equal(error.prop, prop);
    for (const word of [prop, ...words]) assert.ok(error.message.includes(word), error.message);
    return true;
  });
}

function state(props: Partial<GraphStateProps>): GraphState {
  return new GraphState(new Stack(testApp(), "Stack"), "State", { name: "example", ...props });
}

test("names", () => {
  for (const name of ["", "A", "my_graph", "9lives", "a", "ends-", `a${"b".repeat(32)}`, "räksmörgås"]) {
    refused(() => state({ name }), "name", JSON.stringify(name), "lower-case");
  }
  for (const graph of ["", "a b", "a/b", "a.b", "-a", "x".repeat(65)]) {
    refused(() => state({ graph }), "graph", JSON.stringify(graph));
  }
});

test("zones", () => {
  for (const zones of [0, 1, 4, -3, 2.5]) {
    refused(() => state({ network: { zones } }), "network.zones", String(zones), "from 2 to 3");
  }
  refused(() => state({ network: { availabilityZones: ["eu-west-1a"] } }), "network.zones", "1");
  const twice = ["eu-west-1a", "eu-west-1a", "eu-west-1b"];
  refused(() => state({ network: { availabilityZones: twice } }), "network.availabilityZones", "different");
  for (const cidr of ["10.0.0.0", "10.0.0.0/28", "10.0.0.0/8", "fd00::/56"]) {
    refused(() => state({ network: { cidr } }), "network.cidr", cidr);
  }
  const stack = new Stack(testApp(), "Stack");
  const subnetConfiguration = [{ name: "open", subnetType: ec2.SubnetType.PUBLIC }];
  const vpc = new ec2.Vpc(stack, "Vpc", { natGateways: 0, subnetConfiguration });
  const open = () => new GraphState(stack, "State", { name: "example", network: { vpc } });
  refused(open, "network.vpc", "private or isolated");
});

test("brokers", () => {
  for (const brokers of [0, -3, 1, 2]) {
    refused(() => state({ log: { brokers } }), "log.brokers", String(brokers), "from 3");
  }
  refused(() => state({ log: { brokers: 4 } }), "log.brokers", "4", "3 zones");
  refused(() => state({ network: { zones: 2 }, log: { brokers: 3 } }), "log.brokers", "from 4");
  for (const volumeGib of [0, -1, 1.5]) refused(() => state({ log: { volumeGib } }), "log.volumeGib");
  for (const instanceType of ["", "m7g.large", "express.m7g.large", "kafka.m7g"]) {
    refused(() => state({ log: { instanceType } }), "log.instanceType", "kafka.m7g.large");
  }
});

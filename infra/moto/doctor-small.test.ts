/**
 * `tidegraph-doctor` on a deployment that has only what it must have: brokers of others, no workers, no backups, and a
 * secret that people rotate. What is not there is `absent`, and no failure.
 */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { DescribeAutoScalingInstancesCommand } from "@aws-sdk/client-auto-scaling";
import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { look } from "../doctor/doctor.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { placeholders, testApp } from "../test/support.ts";
import { Account, STACKS } from "./account.ts";
import { Clients, Creation, REGION } from "./create.ts";
import { DurableClients, durable } from "./durable.ts";
import { FleetMap } from "./fleet-map.ts";
import { roles } from "./roles.ts";
import type { Template as Deployed } from "./templates.ts";

const stops: (() => unknown)[] = [];
after(async () => {
  for (const stop of stops) await stop();
});

test("what a deployment does not have is absent", async () => {
  const account = await Account.start({
    clusterState: "",
    status: { code: 200, body: { status: "healthy", dbEngineVersion: "0.1.0" } },
  });
  stops.push(() => account.stop());
  const app = testApp();
  const log = { addresses: "b-1.example.com:9094" };
  const { state } = new StateStack(app, "State", { name: "small", log });
  const bundle = placeholders();
  const service = new ServiceStack(app, "Service", { state, bundle, workers: false, secretRotation: false });
  const templates = {
    State: Template.fromStack(Stack.of(state)).toJSON() as Deployed,
    Service: Template.fromStack(service).toJSON() as Deployed,
  };
  const [clients, stored] = [new Clients(account.moto.endpoint), new DurableClients(account.moto.endpoint)];
  stops.push(
    () => clients.destroy(),
    () => stored.destroy(),
  );
  account.deploy(templates, new Creation(clients, templates, { ...durable(stored), ...roles(stored.iam) }));
  Object.assign(process.env, {
    AWS_ENDPOINT_URL: account.endpoint,
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_REGION: REGION,
    AWS_EC2_METADATA_DISABLED: "true",
  });
  const examine = () =>
    look({ stacks: Object.values(STACKS), json: false, only: [] }, "0.1.0", {
      pauseMs: 1_000,
      checkMs: 60_000,
    });
  // Makes the resources, so that the machines have names.
  const first = await examine();
  assert.equal(first.results.find(({ id }) => id === "map.graph")?.status, "failed");
  const map = new FleetMap(stored.dynamodb, "small-0123abcd-map", "default");
  stops.unshift(() => map.stop());
  const nodes = first.results.find(({ id }) => id === "map.nodes");
  assert.equal(nodes?.status, "unknown");
  const { AutoScalingInstances = [] } = await clients.asg.send(new DescribeAutoScalingInstancesCommand({}));
  await map.serve(
    AutoScalingInstances.map(({ InstanceId = "" }) => InstanceId),
    "0.1.0",
  );
  const { results } = await examine();
  const of = (status: string) => results.filter((one) => one.status === status).map(({ id }) => id);
  assert.deepEqual(of("absent"), [
    ...["quota.fargate", "log.cluster", "log.settings", "log.topic", "log.disks"],
    ...["secrets.rotation", "certificates.dates", "certificates.fleet", "workers.service", "workers.targets"],
  ]);
  assert.deepEqual(of("warning"), ["backups.age"]);
  assert.deepEqual(of("failed"), ["alarms.topic"]);
  assert.deepEqual(of("unknown"), []);
});

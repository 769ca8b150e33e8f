/**
 * What registers the definitions of workers (`infra/definition/`), against moto's ECS. The test stands in for
 * CloudFormation, which changes the service by naming the family, and for the machine that upgrades.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import * as ecs from "@aws-sdk/client-ecs";
import { type Event, handle, type Step, step } from "../definition/definition.ts";
import { Clients } from "./create.ts";
import { Moto } from "./server.ts";

const FAMILY = "example-workers";
let moto: Moto;
let clients: Clients;
const answers: Record<string, unknown>[] = [];
const cloudFormation = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  answers.push(JSON.parse(body));
  response.end();
});

before(async () => {
  moto = await Moto.start();
  clients = new Clients(moto.endpoint);
  await new Promise<void>((done) => cloudFormation.listen(0, "127.0.0.1", done));
});
after(async () => {
  clients.destroy();
  cloudFormation.close();
  await moto.stop();
});

/** Registers what a deployment makes, with an image by which it is known. */
async function deploy(image: string): Promise<string> {
  const { taskDefinition } = await clients.ecs.send(
    new ecs.RegisterTaskDefinitionCommand({
      ...{ family: `${FAMILY}-deployed`, cpu: "1024", memory: "4096", networkMode: "awsvpc" },
      ...{ taskRoleArn: "arn:aws:iam::123456789012:role/task", requiresCompatibilities: ["FARGATE"] },
      executionRoleArn: "arn:aws:iam::123456789012:role/starter",
      containerDefinitions: [
        { name: "worker", image, command: ["--insecure"], readonlyRootFilesystem: true },
      ],
      tags: [{ key: "tidegraph:deployment", value: "example" }],
    }),
  );
  return taskDefinition?.taskDefinitionArn ?? "";
}

/** Sends a request of CloudFormation, and returns the answer. */
async function ask(RequestType: Event["RequestType"], Cluster: string, Definition: string, Family = FAMILY) {
  const { port } = cloudFormation.address() as AddressInfo;
  const properties = { ResourceProperties: { Cluster, Family, Definition } };
  const request = { RequestType, StackId: "stack", RequestId: "7", LogicalResourceId: "Definition" };
  await handle({ ...request, ...properties, ResponseURL: `http://127.0.0.1:${port}/` }, clients.ecs, {
    patienceMs: 0,
    pauseMs: 1,
  });
  const answer = answers.pop();
  assert.deepEqual([answer?.Status, answer?.PhysicalResourceId], ["SUCCESS", Family], String(answer?.Reason));
}

const publish = (Cluster: string, Definition: string) =>
  step({ step: "publish", Cluster, Family: FAMILY, Definition }, clients.ecs);
const withdraw = (Cluster: string) => step({ step: "withdraw", Cluster, Family: FAMILY }, clients.ecs);

/** Returns the active revisions of the family that the service names. */
async function active(): Promise<string[]> {
  const asked = { familyPrefix: FAMILY, status: "ACTIVE" } as const;
  const { taskDefinitionArns = [] } = await clients.ecs.send(new ecs.ListTaskDefinitionsCommand(asked));
  return taskDefinitionArns.filter((arn) => !arn.includes("-deployed:"));
}

const image = async (taskDefinition: string): Promise<string | undefined> => {
  const asked = new ecs.DescribeTaskDefinitionCommand({ taskDefinition });
  return (await clients.ecs.send(asked)).taskDefinition?.containerDefinitions?.[0]?.image;
};

/**
 * The revision that a service gets which is created or changed with the family: "if a revision isn't specified, the latest
 * ACTIVE revision is used" (ECS's API of UpdateService). moto takes the text as it is, or an inactive revision.
 */
async function newest(): Promise<string> {
  const number = (arn: string): number => Number(arn.split(":").at(-1));
  return (await active()).toSorted((one, other) => number(other) - number(one))[0] ?? "";
}

/** A cluster with the workers' service, as CloudFormation makes it: by the family alone. */
async function service(cluster: string) {
  await clients.ecs.send(new ecs.CreateClusterCommand({ clusterName: cluster }));
  const create = async () => {
    const named = { cluster, serviceName: "workers", desiredCount: 1, taskDefinition: await newest() };
    return clients.ecs.send(new ecs.CreateServiceCommand(named));
  };
  const runs = async (): Promise<string> => {
    const asked = new ecs.DescribeServicesCommand({ cluster, services: ["workers"] });
    return (await clients.ecs.send(asked)).services?.[0]?.taskDefinition ?? "";
  };
  const update = (with_: Omit<ecs.UpdateServiceCommandInput, "service">) =>
    clients.ecs.send(new ecs.UpdateServiceCommand({ cluster, service: "workers", ...with_ }));
  const change = async (desiredCount: number) => update({ taskDefinition: await newest(), desiredCount });
  return { create, runs, update, change };
}

test("workers run what an upgrade published, whatever a deployment makes and changes", async () => {
  const cluster = "whole";
  const workers = await service(cluster);
  // The first deployment: the family has a revision before the service names it.
  const first = await deploy("worker:1");
  await ask("Create", cluster, first);
  await workers.create();
  assert.equal(await image(await workers.runs()), "worker:1");
  const { taskDefinition: copy, tags } = await clients.ecs.send(
    new ecs.DescribeTaskDefinitionCommand({ taskDefinition: await workers.runs(), include: ["TAGS"] }),
  );
  const { taskDefinition: original } = await clients.ecs.send(
    new ecs.DescribeTaskDefinitionCommand({ taskDefinition: first }),
  );
  const own = { family: "", revision: 0, taskDefinitionArn: "", registeredAt: undefined };
  assert.deepEqual({ ...copy, ...own }, { ...original, ...own });
  assert.deepEqual(tags, [{ key: "tidegraph:deployment", value: "example" }]);

  // Another deployment makes a definition, and changes the service besides.
  const second = await deploy("worker:2");
  await ask("Update", cluster, second);
  await workers.change(3);
  assert.equal(await image(await workers.runs()), "worker:1");

  // The upgrade publishes it. Asked twice, because an answer was lost, it does no harm.
  await publish(cluster, second);
  const { task } = await publish(cluster, second);
  await workers.update({ taskDefinition: task, forceNewDeployment: true });
  assert.equal(await image(await workers.runs()), "worker:2");
  await workers.change(2);
  assert.equal(await workers.runs(), task);

  // The third one fails, and ECS goes back. The family is as it was, so that no later change brings it.
  const third = await deploy("worker:3");
  const failed = await publish(cluster, third);
  assert.equal(failed.before, task);
  await workers.update({ taskDefinition: failed.task });
  assert.deepEqual(await withdraw(cluster), { task: failed.task }, "the service still names it");
  assert.ok((await active()).includes(failed.task));
  await workers.update({ taskDefinition: failed.before });
  assert.deepEqual(await withdraw(cluster), { task });
  assert.ok(!(await active()).includes(failed.task));
  await workers.change(4);
  assert.equal(await image(await workers.runs()), "worker:2");

  // The resource is made again while the service runs, as in a deployment of an older release: nothing changes.
  const before = await active();
  await ask("Create", cluster, third);
  assert.deepEqual(await active(), before);

  // Removed, and deployed again: the new service does not get what an earlier one had.
  await clients.ecs.send(new ecs.DeleteServiceCommand({ cluster, service: "workers", force: true }));
  await ask("Delete", cluster, third);
  assert.deepEqual(await active(), []);
  // What deployments made is CloudFormation's.
  assert.equal(await image(third), "worker:3");
  const again = await service("again");
  await ask("Create", "again", third);
  await again.create();
  assert.equal(await image(await again.runs()), "worker:3");
});

test("a deployment that names another family registers a revision there", async () => {
  const other = "another-workers";
  await clients.ecs.send(new ecs.CreateClusterCommand({ clusterName: "renamed" }));
  await ask("Update", "renamed", await deploy("worker:4"), other);
  const asked = new ecs.ListTaskDefinitionsCommand({ familyPrefix: other, status: "ACTIVE" });
  const { taskDefinitionArns = [] } = await clients.ecs.send(asked);
  assert.equal(taskDefinitionArns.length, 1);
  assert.equal(await image(taskDefinitionArns[0] ?? ""), "worker:4");
});

test("what cannot be done is told", async () => {
  await clients.ecs.send(new ecs.CreateClusterCommand({ clusterName: "empty" }));
  await assert.rejects(withdraw("empty"), /no service of empty has a definition of example-workers/);
  await assert.rejects(
    publish("empty", "nobody:7"),
    /no service of empty has a definition of example-workers/,
  );
  await assert.rejects(publish("again", "nobody:7"), { name: "ClientException" });
  const wrong = { step: "undo", Cluster: "empty", Family: FAMILY } as unknown as Step;
  await assert.rejects(step(wrong, clients.ecs), /step is "undo", and has to be publish or withdraw/);
  const { port } = cloudFormation.address() as AddressInfo;
  const request = {
    StackId: "stack",
    RequestId: "7",
    LogicalResourceId: "Definition",
    RequestType: "Create",
  } as const;
  const ResourceProperties = { Cluster: "empty", Family: FAMILY, Definition: "nobody:7" };
  await handle({ ...request, ResourceProperties, ResponseURL: `http://127.0.0.1:${port}/` }, clients.ecs);
  const answer = answers.pop();
  assert.equal(answer?.Status, "FAILED");
  assert.match(String(answer?.Reason), /nobody/);
});

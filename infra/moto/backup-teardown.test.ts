/**
 * Removing backups while one runs: the code of the custom resource `BackupTeardown` (`infra/teardown/backups.ts`) against
 * moto's Step Functions and ECS. The test stands in for CloudFormation: it sends the requests, and receives the answers.
 *
 * moto's executions run until they are stopped, and start no tasks; its tasks are stopped at once.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import * as ec2 from "@aws-sdk/client-ec2";
import * as ecs from "@aws-sdk/client-ecs";
import * as sfn from "@aws-sdk/client-sfn";
import { type Event, handle } from "../teardown/backups.ts";
import { Moto } from "./server.ts";

let moto: Moto;
let options: {
  endpoint: string;
  region: string;
  credentials: { accessKeyId: string; secretAccessKey: string };
};
let machines: sfn.SFNClient;
let containers: ecs.ECSClient;
const answers: Record<string, unknown>[] = [];
const cloudFormation = createServer((request, response) => {
  let body = "";
  request.on("data", (part) => {
    body += part;
  });
  request.on("end", () => {
    answers.push(JSON.parse(body));
    response.end();
  });
});

before(async () => {
  moto = await Moto.start();
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  options = { endpoint: moto.endpoint, region: "eu-west-1", credentials };
  machines = new sfn.SFNClient(options);
  containers = new ecs.ECSClient(options);
  await new Promise<void>((done) => cloudFormation.listen(0, "127.0.0.1", done));
});
after(async () => {
  for (const client of [machines, containers]) client.destroy();
  cloudFormation.close();
  await moto.stop();
});

/** What a stack with backups has. */
interface Made {
  readonly Machine: string;
  readonly Cluster: string;
}

async function make(name: string): Promise<Made> {
  const { stateMachineArn = "" } = await machines.send(
    new sfn.CreateStateMachineCommand({
      name,
      definition: JSON.stringify({
        StartAt: "Wait",
        States: { Wait: { Type: "Wait", Seconds: 9, End: true } },
      }),
      roleArn: "arn:aws:iam::123456789012:role/any",
    }),
  );
  const { cluster } = await containers.send(new ecs.CreateClusterCommand({ clusterName: name }));
  await containers.send(
    new ecs.RegisterTaskDefinitionCommand({
      family: name,
      requiresCompatibilities: ["FARGATE"],
      networkMode: "awsvpc",
      cpu: "1024",
      memory: "4096",
      containerDefinitions: [{ name: "backup", image: "backup", cpu: 1024, memory: 4096 }],
    }),
  );
  return { Machine: stateMachineArn, Cluster: cluster?.clusterArn ?? "" };
}

/** Starts executions, and as many tasks. */
async function start(name: string, { Machine, Cluster }: Made, count: number): Promise<void> {
  const network = new ec2.EC2Client(options);
  const { Subnets = [] } = await network.send(new ec2.DescribeSubnetsCommand({}));
  network.destroy();
  const subnets = Subnets.slice(0, 1).map(({ SubnetId = "" }) => SubnetId);
  for (let at = 0; at < count; at += 1) {
    await machines.send(new sfn.StartExecutionCommand({ stateMachineArn: Machine }));
    const { tasks = [] } = await containers.send(
      new ecs.RunTaskCommand({
        cluster: Cluster,
        taskDefinition: name,
        launchType: "FARGATE",
        networkConfiguration: { awsvpcConfiguration: { subnets, securityGroups: ["sg-1"] } },
      }),
    );
    assert.equal(tasks.length, 1);
  }
}

/** Returns how many executions run, and how many tasks. */
async function running({ Machine, Cluster }: Made): Promise<[executions: number, tasks: number]> {
  const asked = { stateMachineArn: Machine, statusFilter: "RUNNING" } as const;
  const { executions = [] } = await machines.send(new sfn.ListExecutionsCommand(asked));
  const { taskArns = [] } = await containers.send(
    new ecs.ListTasksCommand({ cluster: Cluster, desiredStatus: "RUNNING" }),
  );
  return [executions.length, taskArns.length];
}

const idOf = ({ Machine, Cluster }: Made): string => `${Machine}|${Cluster}`;
const request = (RequestType: Event["RequestType"], made: Made, known = idOf(made)): Event => ({
  RequestType,
  ResponseURL: `http://127.0.0.1:${(cloudFormation.address() as AddressInfo).port}/answer`,
  StackId: "arn:aws:cloudformation:eu-west-1:123456789012:stack/example/1",
  RequestId: "7",
  LogicalResourceId: "Teardown",
  ...(RequestType !== "Create" && { PhysicalResourceId: known }),
  ResourceProperties: made,
});
const surroundings = (timeLeftMs = 900_000) => ({
  sfn: machines,
  ecs: containers,
  pauseMs: 10,
  timeLeftMs: () => timeLeftMs,
});

test("the executions and tasks of a deployment are stopped, and no others", async () => {
  const [removed, kept] = [await make("removed"), await make("kept")];
  await start("removed", removed, 3);
  await start("kept", kept, 1);
  assert.deepEqual(await running(removed), [3, 3]);
  const { taskArns: tasks = [] } = await containers.send(
    new ecs.ListTasksCommand({ cluster: removed.Cluster }),
  );
  await handle(request("Create", removed), surroundings());
  await handle(request("Update", removed), surroundings());
  assert.deepEqual(await running(removed), [3, 3], "creating and updating change nothing");
  await handle(request("Delete", removed), surroundings());
  assert.deepEqual(
    answers.splice(0).map(({ Status, PhysicalResourceId, Reason }) => [Status, PhysicalResourceId, Reason]),
    Array(3).fill(["SUCCESS", idOf(removed), ""]),
  );
  assert.deepEqual(await running(removed), [0, 0]);
  const described = await containers.send(new ecs.DescribeTasksCommand({ cluster: removed.Cluster, tasks }));
  assert.deepEqual(
    described.tasks?.map(({ lastStatus, stoppedReason }) => [lastStatus, stoppedReason]),
    Array(3).fill(["STOPPED", "the stack no longer has backups"]),
  );
  assert.deepEqual(await running(kept), [1, 1]);
});

test("a resource that is replaced stops the backups that its id names", async () => {
  const [before, next] = [await make("before"), await make("next")];
  await start("before", before, 1);
  await start("next", next, 1);
  await handle(request("Delete", next, idOf(before)), surroundings());
  assert.equal(answers.pop()?.Status, "SUCCESS");
  assert.deepEqual(
    [await running(before), await running(next)],
    [
      [0, 0],
      [1, 1],
    ],
  );
});

test("what is gone already, and a creation that failed, need nothing", async () => {
  const gone = await make("gone");
  await machines.send(new sfn.DeleteStateMachineCommand({ stateMachineArn: gone.Machine }));
  await containers.send(new ecs.DeleteClusterCommand({ cluster: gone.Cluster }));
  await handle(request("Delete", gone), surroundings());
  assert.deepEqual([answers[0]?.Status, answers.pop()?.Reason], ["SUCCESS", ""]);
  const there = await make("there");
  await start("there", there, 1);
  await handle(request("Delete", there, "Service-Teardown-1ABC"), surroundings());
  assert.equal(answers.pop()?.Status, "SUCCESS");
  assert.deepEqual(await running(there), [1, 1]);
});

/** A client whose tasks end never, as those of ECS take up to two minutes. */
function slowClient(): ecs.ECSClient {
  const client = new ecs.ECSClient(options);
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) =>
        commandName === "StopTaskCommand"
          ? ({ output: { $metadata: {} }, response: {} } as Awaited<ReturnType<typeof next>>)
          : next(args),
    { step: "initialize" },
  );
  return client;
}

test("tasks that outlast the function are told to CloudFormation", async () => {
  const slow = await make("slow");
  await start("slow", slow, 1);
  const client = slowClient();
  let left = 50_000;
  const timeLeftMs = (): number => {
    left -= 10_000;
    return left;
  };
  await handle(request("Delete", slow), { ...surroundings(), ecs: client, timeLeftMs });
  const answer = answers.pop();
  assert.equal(answer?.Status, "FAILED");
  assert.match(String(answer?.Reason), /backups of .*:cluster\/slow still run: delete the stack again/);
  client.destroy();
});

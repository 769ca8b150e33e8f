/**
 * Removing the service: the code of the custom resource `Teardown` (`infra/teardown/`) against moto's Auto Scaling, with
 * the group of the template. The test stands in for CloudFormation: it sends the requests, and receives the answers at
 * an address of its own.
 *
 * moto scales in like AWS: protected machines stay. It does not make a terminating machine wait at a hook, and it
 * terminates machines at once.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import * as asg from "@aws-sdk/client-auto-scaling";
import * as ec2 from "@aws-sdk/client-ec2";
import { type Event, empty, handle } from "../teardown/teardown.ts";
import { Clients, Creation } from "./create.ts";
import { Moto } from "./server.ts";
import { exampleTemplates } from "./templates.ts";

const templates = exampleTemplates();
let moto: Moto;
let clients: Clients;
let creation: Creation;
const answers: Record<string, unknown>[] = [];
const types: (string | undefined)[] = [];
/** How often the address of CloudFormation fails before it takes an answer. */
let failures = 0;
const cloudFormation = createServer((request, response) => {
  let body = "";
  request.on("data", (part) => {
    body += part;
  });
  request.on("end", () => {
    failures -= 1;
    response.statusCode = failures >= 0 ? 503 : 200;
    if (failures < 0) {
      answers.push(JSON.parse(body));
      types.push(request.headers["content-type"]);
    }
    response.end();
  });
});

before(async () => {
  moto = await Moto.start();
  clients = new Clients(moto.endpoint);
  creation = new Creation(clients, templates);
  await new Promise<void>((done) => cloudFormation.listen(0, "127.0.0.1", done));
});
after(async () => {
  clients.destroy();
  cloudFormation.close();
  await moto.stop();
});

/** Creates the group of the template under a name of its own. */
async function makeGroup(name: string): Promise<string> {
  const [, group] =
    Object.entries(templates.Service.Resources).find(
      ([, { Type }]) => Type === "AWS::AutoScaling::AutoScalingGroup",
    ) ?? [];
  const { LifecycleHookSpecificationList, MinSize, MaxSize, VPCZoneIdentifier, LaunchTemplate, ...rest } =
    await creation.value("Service", group?.Properties);
  await clients.asg.send(
    new asg.CreateAutoScalingGroupCommand({
      AutoScalingGroupName: name,
      MinSize: Number(MinSize),
      MaxSize: Number(MaxSize),
      VPCZoneIdentifier: VPCZoneIdentifier.join(","),
      LaunchTemplate,
      NewInstancesProtectedFromScaleIn: rest.NewInstancesProtectedFromScaleIn,
    }),
  );
  for (const hook of LifecycleHookSpecificationList)
    await clients.asg.send(new asg.PutLifecycleHookCommand({ AutoScalingGroupName: name, ...hook }));
  return name;
}

async function describe(name: string): Promise<asg.AutoScalingGroup | undefined> {
  const asked = new asg.DescribeAutoScalingGroupsCommand({ AutoScalingGroupNames: [name] });
  return (await clients.asg.send(asked)).AutoScalingGroups?.[0];
}

async function hooks(AutoScalingGroupName: string): Promise<number> {
  const asked = new asg.DescribeLifecycleHooksCommand({ AutoScalingGroupName });
  return (await clients.asg.send(asked)).LifecycleHooks?.length ?? 0;
}

/** Does what CloudFormation does to delete a group, and returns how many machines keep it from going on. */
async function scaleIn(AutoScalingGroupName: string): Promise<number> {
  const none = { MinSize: 0, MaxSize: 0, DesiredCapacity: 0 };
  await clients.asg.send(new asg.UpdateAutoScalingGroupCommand({ AutoScalingGroupName, ...none }));
  return (await describe(AutoScalingGroupName))?.Instances?.length ?? 0;
}

const request = (RequestType: Event["RequestType"], group: string, known = group): Event => ({
  RequestType,
  ResponseURL: `http://127.0.0.1:${(cloudFormation.address() as AddressInfo).port}/answer?signature=1`,
  StackId: "arn:aws:cloudformation:eu-west-1:123456789012:stack/example/1",
  RequestId: "7",
  LogicalResourceId: "Teardown",
  ...(RequestType !== "Create" && { PhysicalResourceId: known }),
  ResourceProperties: { GroupName: group },
});
const surroundings = (timeLeftMs = 900_000) => ({
  client: clients.asg,
  pauseMs: 10,
  timeLeftMs: () => timeLeftMs,
});

test("CloudFormation's own way does not empty the group, and ours does", async () => {
  const group = await makeGroup("removed");
  assert.equal(await scaleIn(group), 3, "protected machines stay");
  const machines = (await describe(group))?.Instances?.map(({ InstanceId = "" }) => InstanceId) ?? [];
  await handle(request("Delete", group), surroundings());
  const answer = answers.pop();
  assert.deepEqual([answer?.Status, answer?.PhysicalResourceId], ["SUCCESS", group], String(answer?.Reason));
  assert.deepEqual([answer?.StackId, answer?.RequestId], [request("Delete", group).StackId, "7"]);
  // The address is signed for a request without a content type.
  assert.equal(types.pop(), undefined);
  const left = await describe(group);
  assert.deepEqual([left?.Instances, left?.MinSize, left?.DesiredCapacity], [[], 0, 0]);
  assert.equal(left?.NewInstancesProtectedFromScaleIn, false);
  const suspended = left?.SuspendedProcesses?.map(({ ProcessName }) => ProcessName) ?? [];
  assert.ok(suspended.includes("Launch") && suspended.includes("ReplaceUnhealthy"), suspended.join());
  assert.ok(!suspended.includes("Terminate"));
  assert.equal(await hooks(group), 0, "nothing waits at a hook");
  const { Reservations = [] } = await clients.ec2.send(
    new ec2.DescribeInstancesCommand({ InstanceIds: machines }),
  );
  const states = Reservations.flatMap(({ Instances = [] }) => Instances.map(({ State }) => State?.Name));
  assert.deepEqual(states, ["terminated", "terminated", "terminated"]);
  // CloudFormation goes on: the group can be deleted.
  assert.equal(await scaleIn(group), 0);
  await clients.asg.send(new asg.DeleteAutoScalingGroupCommand({ AutoScalingGroupName: group }));
  // A removal that is tried again finds nothing, which is right.
  await handle(request("Delete", group), surroundings());
  assert.equal(answers.pop()?.Status, "SUCCESS");
});

test("creating and updating change nothing, and answer with the name of the group", async () => {
  const group = await makeGroup("kept");
  await handle(request("Create", group), surroundings());
  await handle(request("Update", group), surroundings());
  assert.deepEqual(
    answers.splice(0).map(({ Status, PhysicalResourceId }) => [Status, PhysicalResourceId]),
    [
      ["SUCCESS", group],
      ["SUCCESS", group],
    ],
  );
  const left = await describe(group);
  assert.deepEqual([left?.Instances?.length, left?.SuspendedProcesses, await hooks(group)], [3, [], 2]);
});

test("an update to a group of another name gives the name, so that the old group is removed afterwards", async () => {
  await handle(request("Update", "next", "kept"), surroundings());
  assert.equal(answers.pop()?.PhysicalResourceId, "next");
  assert.equal((await describe("kept"))?.Instances?.length, 3);
});

test("more machines than one request may name are all released", async () => {
  const group = await makeGroup("large");
  const size = { AutoScalingGroupName: group, MaxSize: 120, DesiredCapacity: 120 };
  await clients.asg.send(new asg.UpdateAutoScalingGroupCommand(size));
  assert.equal((await describe(group))?.Instances?.length, 120);
  assert.equal(await empty(group, surroundings()), "empty");
  assert.deepEqual((await describe(group))?.Instances, []);
});

/** A client whose deletions by force take some looks, as AWS's take minutes; moto's are done at once. */
function slowClient(looks: number): asg.AutoScalingClient {
  const client = new asg.AutoScalingClient({
    endpoint: moto.endpoint,
    region: "eu-west-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  let deletion: asg.DeleteAutoScalingGroupCommandInput | undefined;
  let looked = 0;
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        if (commandName === "DeleteAutoScalingGroupCommand") {
          deletion = args.input as asg.DeleteAutoScalingGroupCommandInput;
          return { output: { $metadata: {} }, response: {} } as Awaited<ReturnType<typeof next>>;
        }
        if (deletion !== undefined) looked += 1;
        if (deletion !== undefined && looked === looks)
          await clients.asg.send(new asg.DeleteAutoScalingGroupCommand(deletion));
        return next(args);
      },
    { step: "initialize" },
  );
  return client;
}

test("when the time is nearly over, the group is deleted by force, and gone when the function answers", async () => {
  const group = await makeGroup("stuck");
  const client = slowClient(4);
  assert.equal(await empty(group, { ...surroundings(30_000), client }), "forced");
  assert.equal(await describe(group), undefined);
  client.destroy();
});

test("a deletion that outlasts the function is told to CloudFormation", async () => {
  const group = await makeGroup("slow");
  const client = slowClient(1000);
  let left = 60_000;
  const timeLeftMs = (): number => {
    left -= 10_000;
    return left;
  };
  await handle(request("Delete", group), { client, pauseMs: 1, timeLeftMs });
  const answer = answers.pop();
  assert.equal(answer?.Status, "FAILED");
  assert.match(
    String(answer?.Reason),
    /deletion of the group slow is still under way: delete the stack again/,
  );
  client.destroy();
});

test("a failure is told to CloudFormation, also when its address fails at first", async () => {
  const group = await makeGroup("refused");
  const client = new asg.AutoScalingClient({
    endpoint: "http://127.0.0.1:9",
    region: "eu-west-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    maxAttempts: 1,
  });
  failures = 2;
  await handle(request("Delete", group), { ...surroundings(), client });
  const answer = answers.pop();
  assert.equal(answer?.Status, "FAILED");
  assert.match(String(answer?.Reason), /ECONNREFUSED|bad port|127\.0\.0\.1:9/);
  assert.equal(answer?.PhysicalResourceId, group);
});

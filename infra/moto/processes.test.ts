/**
 * Which processes were started without certificates: the code of the function (`infra/issuer/processes.ts`) against moto's
 * Auto Scaling, EC2, ECS and Lambda.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as asg from "@aws-sdk/client-auto-scaling";
import * as ec2 from "@aws-sdk/client-ec2";
import * as ecs from "@aws-sdk/client-ecs";
import * as iam from "@aws-sdk/client-iam";
import * as lambda from "@aws-sdk/client-lambda";
import { callersWithout, machinesWithout, type ProcessClients } from "../issuer/processes.ts";
import { REGION } from "./create.ts";
import { Moto } from "./server.ts";

const SECRETS = {
  nodes: "arn:secret:nodes",
  workers: "arn:secret:workers",
  functions: "arn:secret:functions",
};
/** An archive without files. */
const EMPTY_ZIP = Buffer.concat([Buffer.from([0x50, 0x4b, 0x05, 0x06]), Buffer.alloc(18)]);

let moto: Moto;
let clients: ProcessClients & { readonly iam: iam.IAMClient };

before(async () => {
  moto = await Moto.start();
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const options = { endpoint: moto.endpoint, region: REGION, credentials };
  clients = {
    asg: new asg.AutoScalingClient(options),
    ec2: new ec2.EC2Client(options),
    ecs: new ecs.ECSClient(options),
    lambda: new lambda.LambdaClient(options),
    iam: new iam.IAMClient(options),
  };
});
after(async () => {
  for (const client of Object.values(clients)) client.destroy();
  await moto.stop();
});

/** Makes the user data of a machine, with these variables. */
const userData = (variables: string): string =>
  Buffer.from(`#!/bin/bash\ncat > fleet.env <<END\n${variables}\nEND\n`).toString("base64");

test("machines are known by the template that they were started from, whatever the group's is now", async () => {
  // moto starts no machine from a second version with user data, so each deployment has a template of its own.
  const make = async (LaunchTemplateName: string, variables: string): Promise<void> => {
    const LaunchTemplateData = {
      ...{ ImageId: "ami-12c6146b", InstanceType: "t3.micro" as const },
      UserData: userData(variables),
    };
    await clients.ec2.send(new ec2.CreateLaunchTemplateCommand({ LaunchTemplateName, LaunchTemplateData }));
  };
  const template = (LaunchTemplateName: string) => ({ LaunchTemplate: { LaunchTemplateName, Version: "1" } });
  await make("plain", "TIDEGRAPH_NODES=3");
  await make("encrypted", `TIDEGRAPH_TLS_SECRET=${SECRETS.nodes}`);
  await make("archives", `TIDEGRAPH_TLS_SECRET=${SECRETS.nodes}\nTIDEGRAPH_ARCHIVE_TO=s3://backups`);
  const { Subnets = [] } = await clients.ec2.send(new ec2.DescribeSubnetsCommand({}));
  for (const name of ["plain", "encrypted", "archives"]) {
    const size = { MinSize: 2, MaxSize: 9, VPCZoneIdentifier: Subnets[0]?.SubnetId };
    const group = { AutoScalingGroupName: name, ...size, ...template(name) };
    await clients.asg.send(new asg.CreateAutoScalingGroupCommand(group));
  }
  const machines = async (...AutoScalingGroupNames: string[]): Promise<asg.Instance[]> => {
    const asked = new asg.DescribeAutoScalingGroupsCommand({ AutoScalingGroupNames });
    const { AutoScalingGroups = [] } = await clients.asg.send(asked);
    return AutoScalingGroups.flatMap(({ Instances = [] }) => Instances);
  };
  const look = (group: string) => machinesWithout(clients, group, SECRETS.nodes);
  const old = (await machines("plain")).map(({ InstanceId }) => InstanceId);
  assert.equal(old.length, 2);
  assert.deepEqual((await look("plain")).toSorted(), old.toSorted());
  assert.deepEqual([await look("encrypted"), await look("archives")], [[], []]);
  // A deployment that is new has no group.
  assert.deepEqual(await look("none"), []);
  // moto describes all machines of a group by its template of now: a group between two deployments is put together.
  const between = (Instances: asg.Instance[]) =>
    machinesWithout(
      { ec2: clients.ec2, asg: { send: async () => ({ AutoScalingGroups: [{ Instances }] }) } as never },
      "encrypted",
      SECRETS.nodes,
    );
  const all = await machines("plain", "encrypted", "archives");
  assert.deepEqual([all.length, (await between(all)).toSorted()], [6, old.toSorted()]);
  assert.deepEqual(await between(await machines("encrypted", "archives")), []);
  // The group no longer says what a machine was started from.
  const [one] = await machines("encrypted");
  assert.deepEqual(await between([{ ...one, LaunchTemplate: undefined } as asg.Instance]), [one?.InstanceId]);
});

test("workers are known by their definition, and callers of the API by the versions that the alias has", async () => {
  const cluster = "workers";
  await clients.ecs.send(new ecs.CreateClusterCommand({ clusterName: cluster }));
  const definition = async (...flags: string[]): Promise<string> => {
    const containers = [
      { name: "worker", image: "worker", memory: 512, command: ["--insecure", ...flags] },
      { name: "agent", image: "agent", memory: 64 },
    ];
    const task = { family: "example-workers", containerDefinitions: containers };
    const made = await clients.ecs.send(new ecs.RegisterTaskDefinitionCommand(task));
    return made.taskDefinition?.taskDefinitionArn ?? "";
  };
  const before = await definition();
  const named = { cluster, serviceName: "service", taskDefinition: before, desiredCount: 2 };
  await clients.ecs.send(new ecs.CreateServiceCommand(named));
  const { Role } = await clients.iam.send(
    new iam.CreateRoleCommand({ RoleName: "function", AssumeRolePolicyDocument: "{}" }),
  );
  const FunctionName = "query";
  const publish = async (variables: Record<string, string>): Promise<string> => {
    const Environment = { Variables: variables };
    await clients.lambda.send(new lambda.UpdateFunctionConfigurationCommand({ FunctionName, Environment }));
    const made = await clients.lambda.send(new lambda.PublishVersionCommand({ FunctionName }));
    return made.Version ?? "";
  };
  await clients.lambda.send(
    new lambda.CreateFunctionCommand({
      ...{ FunctionName, Runtime: "provided.al2023", Handler: "bootstrap", Role: Role?.Arn },
      ...{
        Code: { ZipFile: EMPTY_ZIP },
        Publish: true,
        Environment: { Variables: { TIDEGRAPH_GRAPH: "g" } },
      },
    }),
  );
  const alias = { FunctionName, Name: "live" };
  await clients.lambda.send(new lambda.CreateAliasCommand({ ...alias, FunctionVersion: "1" }));
  const callers = { cluster, service: "service", function: FunctionName, alias: "live" };
  const look = () => callersWithout(clients, callers, SECRETS);
  assert.deepEqual(await look(), [before, "query:1"]);

  // A deployment makes another definition and another version, and changes nothing that runs.
  const after = await definition("--tls-secret", SECRETS.workers);
  const second = await publish({ TIDEGRAPH_GRAPH: "g", TIDEGRAPH_TLS_SECRET: SECRETS.functions });
  assert.deepEqual(await look(), [before, "query:1"]);
  // The machine that upgrades replaces workers, then gives the new version a tenth, then all queries.
  // moto keeps the deployments of a service as they were made: another service stands for the one that was updated.
  const updated = { cluster, serviceName: "updated", taskDefinition: after, desiredCount: 2 };
  await clients.ecs.send(new ecs.CreateServiceCommand(updated));
  callers.service = "updated";
  const weights = { AdditionalVersionWeights: { [second]: 0.1 } };
  await clients.lambda.send(
    new lambda.UpdateAliasCommand({ ...alias, FunctionVersion: "1", RoutingConfig: weights }),
  );
  assert.deepEqual(await look(), ["query:1"]);
  await clients.lambda.send(
    new lambda.UpdateAliasCommand({
      ...{ ...alias, FunctionVersion: second, RoutingConfig: { AdditionalVersionWeights: { 1: 0.1 } } },
    }),
  );
  assert.deepEqual(await look(), ["query:1"]);
  await clients.lambda.send(
    new lambda.UpdateAliasCommand({
      ...{ ...alias, FunctionVersion: second, RoutingConfig: { AdditionalVersionWeights: {} } },
    }),
  );
  assert.deepEqual(await look(), []);
  // Without workers, the function alone counts.
  assert.deepEqual(await callersWithout(clients, { function: FunctionName, alias: "live" }, SECRETS), []);
});

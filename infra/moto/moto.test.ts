/**
 * Resources that LocalStack does not support: the example's brokers, machines and workers, created in moto from the
 * templates and read back.
 *
 * moto stores what it is given and answers like AWS. These tests therefore prove nothing about the following. moto
 * starts no task, machine or broker, and reports them as running or not arbitrarily (all machines are in the first
 * zone). It runs no user data and waits at no lifecycle hook. It ignores roles and policies, and does not check that
 * images, keys, secrets, log groups and Kafka versions exist. It accepts more machines than a group may have,
 * processors that Fargate does not have, containers and target groups that do not exist, and a second listener at a
 * port. It has no MSK configurations and no addresses of brokers.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as asg from "@aws-sdk/client-auto-scaling";
import * as ec2 from "@aws-sdk/client-ec2";
import * as ecs from "@aws-sdk/client-ecs";
import * as elb from "@aws-sdk/client-elastic-load-balancing-v2";
import { Clients, Creation, camel } from "./create.ts";
import { Moto } from "./server.ts";
import { exampleTemplates } from "./templates.ts";

const templates = exampleTemplates();
let moto: Moto;
let clients: Clients;
let creation: Creation;

before(async () => {
  moto = await Moto.start();
  clients = new Clients(moto.endpoint);
  creation = new Creation(clients, templates);
});
after(async () => {
  clients.destroy();
  await moto.stop();
});

type Stack = keyof typeof templates;

/** Returns the properties of the only resource of a type, with references resolved. */
async function said(stack: Stack, type: string) {
  const found = Object.values(templates[stack].Resources).filter(({ Type }) => Type === type);
  assert.equal(found.length, 1, type);
  return creation.value(stack, found[0]?.Properties);
}

/** Creates the only resource of a type, with everything that it needs; returns the value of `Ref`. */
async function made(stack: Stack, type: string): Promise<string> {
  const [ref = "", ...others] = await creation.all(stack, type);
  assert.deepEqual(others, [], type);
  return ref;
}

async function group(name: string): Promise<asg.AutoScalingGroup> {
  const { AutoScalingGroups = [] } = await clients.asg.send(
    new asg.DescribeAutoScalingGroupsCommand({ AutoScalingGroupNames: [name] }),
  );
  const [found] = AutoScalingGroups;
  assert.ok(found, `there is no group ${name}`);
  return found;
}

/** Returns the zones of subnets. */
async function zones(subnets: readonly string[]): Promise<Set<string | undefined>> {
  const { Subnets = [] } = await clients.ec2.send(
    new ec2.DescribeSubnetsCommand({ SubnetIds: [...subnets] }),
  );
  return new Set(Subnets.map(({ AvailabilityZone }) => AvailabilityZone));
}

test("brokers accept only IAM over TLS, in three zones", async () => {
  const cluster = await made("State", "AWS::MSK::Cluster");
  // With the property names of the wire format, which start with lowercase letters.
  const found = await clients.brokers(cluster);
  const expected = camel(await said("State", "AWS::MSK::Cluster"));
  assert.equal(found.clusterName, expected.clusterName);
  assert.deepEqual(found.encryptionInfo, expected.encryptionInfo);
  assert.deepEqual(found.encryptionInfo.encryptionInTransit, { clientBroker: "TLS", inCluster: true });
  assert.deepEqual(found.clientAuthentication, {
    sasl: { iam: { enabled: true } },
    unauthenticated: { enabled: false },
  });
  assert.deepEqual(found.brokerNodeGroupInfo, expected.brokerNodeGroupInfo);
  assert.deepEqual(found.brokerNodeGroupInfo.connectivityInfo, { publicAccess: { type: "DISABLED" } });
  assert.equal(found.numberOfBrokerNodes, expected.numberOfBrokerNodes);
  assert.deepEqual(found.loggingInfo, expected.loggingInfo);
  assert.equal(found.currentBrokerSoftwareInfo.kafkaVersion, expected.kafkaVersion);
  assert.equal((await zones(found.brokerNodeGroupInfo.clientSubnets)).size, 3);
});

test("storage nodes are a group over three zones with a launch hook and a termination hook", async () => {
  const name = await made("Service", "AWS::AutoScaling::AutoScalingGroup");
  const expected = await said("Service", "AWS::AutoScaling::AutoScalingGroup");
  const found = await group(name);
  assert.deepEqual(
    [found.MinSize, found.MaxSize, found.DesiredCapacity],
    [Number(expected.MinSize), Number(expected.MaxSize), Number(expected.MinSize)],
  );
  const subnets = found.VPCZoneIdentifier?.split(",") ?? [];
  assert.deepEqual(subnets, expected.VPCZoneIdentifier);
  assert.equal((await zones(subnets)).size, 3);
  assert.equal(found.AvailabilityZones?.length, 3);
  assert.equal(found.NewInstancesProtectedFromScaleIn, true);
  assert.equal(found.LaunchTemplate?.LaunchTemplateId, expected.LaunchTemplate.LaunchTemplateId);
  const { LifecycleHooks = [] } = await clients.asg.send(
    new asg.DescribeLifecycleHooksCommand({ AutoScalingGroupName: name }),
  );
  const hooks = LifecycleHooks.map(
    ({ LifecycleHookName, LifecycleTransition, HeartbeatTimeout, DefaultResult }) => ({
      DefaultResult,
      HeartbeatTimeout,
      LifecycleHookName,
      LifecycleTransition,
    }),
  );
  assert.deepEqual(hooks, expected.LifecycleHookSpecificationList);
  assert.deepEqual(
    hooks.map(({ LifecycleHookName, DefaultResult }) => [LifecycleHookName, DefaultResult]),
    [
      ["joins", "ABANDON"],
      ["leaves", "CONTINUE"],
    ],
  );
});

test("machines follow the launch template, and their number the desired capacity", async () => {
  const name = await made("Service", "AWS::AutoScaling::AutoScalingGroup");
  const { LaunchTemplateData: expected } = await said("Service", "AWS::EC2::LaunchTemplate");
  const { LaunchTemplateVersions = [] } = await clients.ec2.send(
    new ec2.DescribeLaunchTemplateVersionsCommand({
      LaunchTemplateId: await made("Service", "AWS::EC2::LaunchTemplate"),
      Versions: ["$Latest"],
    }),
  );
  const data = LaunchTemplateVersions[0]?.LaunchTemplateData;
  for (const part of ["InstanceType", "UserData", "BlockDeviceMappings", "NetworkInterfaces"] as const)
    assert.deepEqual(data?.[part], expected[part], part);
  const least = (await group(name)).MinSize ?? 0;
  for (const count of [least, least + 2]) {
    const asked = { AutoScalingGroupName: name, DesiredCapacity: count };
    await clients.asg.send(new asg.SetDesiredCapacityCommand(asked));
    const { Instances = [], DesiredCapacity } = await group(name);
    assert.deepEqual([DesiredCapacity, Instances.length], [count, count]);
    for (const { InstanceType, ProtectedFromScaleIn } of Instances)
      assert.deepEqual([InstanceType, ProtectedFromScaleIn], [expected.InstanceType, true]);
    const InstanceIds = Instances.map(({ InstanceId = "" }) => InstanceId);
    const { Reservations = [] } = await clients.ec2.send(new ec2.DescribeInstancesCommand({ InstanceIds }));
    const running = Reservations.flatMap((one) => one.Instances ?? []);
    assert.deepEqual(new Set(running.map(({ State }) => State?.Name)), new Set(["running"]));
    assert.deepEqual(new Set(running.map(({ ImageId }) => ImageId)), new Set([expected.ImageId]));
  }
});

test("workers are a Fargate service of the given size behind an internal balancer", async () => {
  // The service names the family only, whose first revision is a copy of the deployed definition.
  const deployed = await made("Service", "AWS::ECS::TaskDefinition");
  const family = await made("Service", "Custom::TidegraphWorkerDefinition");
  const service = await made("Service", "AWS::ECS::Service");
  const cluster = await made("Service", "AWS::ECS::Cluster");
  const expected = camel(await said("Service", "AWS::ECS::Service"));
  const { services = [] } = await clients.ecs.send(
    new ecs.DescribeServicesCommand({ cluster, services: [service] }),
  );
  const [found] = services;
  assert.ok(found);
  // The scalable target says how many there are at least.
  assert.equal(expected.desiredCount, undefined);
  for (const part of ["launchType", "loadBalancers", "propagateTags"] as const)
    assert.deepEqual(found[part], expected[part], part);
  assert.equal(expected.taskDefinition, family);
  const { taskDefinition: task = "" } = found;
  assert.ok(task.endsWith(`task-definition/${family}:1`), task);
  const containers = async (taskDefinition: string) =>
    (await clients.ecs.send(new ecs.DescribeTaskDefinitionCommand({ taskDefinition }))).taskDefinition
      ?.containerDefinitions;
  assert.deepEqual(await containers(task), await containers(deployed));
  assert.deepEqual(found.networkConfiguration, expected.networkConfiguration);
  assert.equal(found.launchType, "FARGATE");
  assert.equal((await zones(found.networkConfiguration?.awsvpcConfiguration?.subnets ?? [])).size, 3);
  const { clusters = [] } = await clients.ecs.send(
    new ecs.DescribeClustersCommand({ clusters: [cluster], include: ["SETTINGS"] }),
  );
  const settings = camel((await said("Service", "AWS::ECS::Cluster")).ClusterSettings);
  assert.deepEqual(clusters[0]?.settings, settings);
});

test("the task of a worker is for arm64, has a read-only disk, and gets its secrets by name", async () => {
  const taskDefinition = await made("Service", "AWS::ECS::TaskDefinition");
  const expected = camel(await said("Service", "AWS::ECS::TaskDefinition"));
  const { taskDefinition: found } = await clients.ecs.send(
    new ecs.DescribeTaskDefinitionCommand({ taskDefinition }),
  );
  assert.ok(found);
  const parts = [
    "family",
    "cpu",
    "memory",
    "networkMode",
    "requiresCompatibilities",
    "runtimePlatform",
  ] as const;
  for (const part of parts) assert.deepEqual(found[part], expected[part], part);
  for (const part of ["taskRoleArn", "executionRoleArn"] as const)
    assert.equal(found[part], expected[part], part);
  const [container] = found.containerDefinitions ?? [];
  // moto adds AWS's defaults.
  for (const [name, value] of Object.entries(expected.containerDefinitions[0]))
    assert.deepEqual(container?.[name as keyof typeof container], value, name);
  assert.equal(container?.readonlyRootFilesystem, true);
  assert.deepEqual(
    container?.secrets?.map(({ name }) => name),
    ["CLIENT_TOKEN"],
  );
});

test("the balancer forwards TCP to the workers' port in each zone", async () => {
  const listener = await made("Service", "AWS::ElasticLoadBalancingV2::Listener");
  const balancer = await made("Service", "AWS::ElasticLoadBalancingV2::LoadBalancer");
  const TargetGroupArn = await made("Service", "AWS::ElasticLoadBalancingV2::TargetGroup");
  const { LoadBalancers = [] } = await clients.elb.send(
    new elb.DescribeLoadBalancersCommand({ LoadBalancerArns: [balancer] }),
  );
  const expected = await said("Service", "AWS::ElasticLoadBalancingV2::LoadBalancer");
  assert.deepEqual([LoadBalancers[0]?.Type, LoadBalancers[0]?.Scheme], ["network", "internal"]);
  assert.deepEqual(LoadBalancers[0]?.SecurityGroups, expected.SecurityGroups);
  assert.equal(LoadBalancers[0]?.AvailabilityZones?.length, 3);
  const { TargetGroups = [] } = await clients.elb.send(
    new elb.DescribeTargetGroupsCommand({ TargetGroupArns: [TargetGroupArn] }),
  );
  const { TargetGroupAttributes, Tags, ...targets } = await said(
    "Service",
    "AWS::ElasticLoadBalancingV2::TargetGroup",
  );
  for (const [name, value] of Object.entries(targets))
    assert.deepEqual(TargetGroups[0]?.[name as keyof elb.TargetGroup], value, name);
  const { TagDescriptions = [] } = await clients.elb.send(
    new elb.DescribeTagsCommand({ ResourceArns: [TargetGroupArn] }),
  );
  assert.deepEqual(TagDescriptions[0]?.Tags, Tags);
  const { Attributes = [] } = await clients.elb.send(
    new elb.DescribeTargetGroupAttributesCommand({ TargetGroupArn }),
  );
  const kept = new Map(Attributes.map(({ Key, Value }) => [Key, Value]));
  for (const { Key, Value } of TargetGroupAttributes) assert.equal(kept.get(Key), Value, Key);
  const { Listeners = [] } = await clients.elb.send(
    new elb.DescribeListenersCommand({ ListenerArns: [listener] }),
  );
  const { Port, Protocol, DefaultActions } = await said("Service", "AWS::ElasticLoadBalancingV2::Listener");
  const [found] = Listeners;
  assert.deepEqual([found?.Port, found?.Protocol, found?.DefaultActions], [Port, Protocol, DefaultActions]);
  // The service's tasks are the targets.
  const { LoadBalancers: ofService } = await said("Service", "AWS::ECS::Service");
  assert.equal(ofService[0].TargetGroupArn, TargetGroupArn);
  assert.equal(ofService[0].ContainerPort, TargetGroups[0]?.Port);
});

test("a reference to a missing resource is refused", async () => {
  const cluster = await made("Service", "AWS::ECS::Cluster");
  const service = camel(await said("Service", "AWS::ECS::Service"));
  const another = (with_: object) =>
    clients.ecs.send(new ecs.CreateServiceCommand({ ...service, serviceName: "other", ...with_ }));
  await assert.rejects(another({ taskDefinition: "nobody:7" }), { name: "ClientException" });
  await assert.rejects(another({ cluster: "nobody" }), { name: "ClusterNotFoundException" });
  const { services = [] } = await clients.ecs.send(
    new ecs.DescribeServicesCommand({ cluster, services: ["other"] }),
  );
  assert.deepEqual(services, []);

  const { LaunchTemplate } = await said("Service", "AWS::AutoScaling::AutoScalingGroup");
  const [subnet] = await creation.all("State", "AWS::EC2::Subnet");
  const wrong = (with_: object) =>
    clients.asg.send(
      new asg.CreateAutoScalingGroupCommand({
        ...{
          AutoScalingGroupName: "other",
          MinSize: 1,
          MaxSize: 1,
          VPCZoneIdentifier: subnet,
          LaunchTemplate,
        },
        ...with_,
      }),
    );
  await assert.rejects(wrong({ VPCZoneIdentifier: "subnet-0" }), { name: "InvalidSubnetID.NotFound" });
  await assert.rejects(wrong({ VPCZoneIdentifier: undefined }), { name: "ValidationError" });
  await assert.rejects(wrong({ LaunchTemplate: { LaunchTemplateId: "lt-0", Version: "1" } }), {
    name: "InvalidLaunchTemplateId.NotFound",
  });

  const listener = await said("Service", "AWS::ElasticLoadBalancingV2::Listener");
  const elsewhere = { ...listener, LoadBalancerArn: `${listener.LoadBalancerArn}0` };
  await assert.rejects(clients.elb.send(new elb.CreateListenerCommand(elsewhere)), {
    name: "LoadBalancerNotFoundException",
  });
  const [vpc] = await creation.all("State", "AWS::EC2::VPC");
  const outside = { VpcId: vpc, CidrBlock: "10.99.0.0/18" };
  await assert.rejects(clients.ec2.send(new ec2.CreateSubnetCommand(outside)), {
    name: "InvalidSubnet.Range",
  });
});

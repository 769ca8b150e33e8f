/**
 * The stack of processes: what each of them is started with, how many there are, and which alarms and notifications
 * exist.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import { Match, Template } from "aws-cdk-lib/assertions";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import { AwsSolutionsChecks } from "cdk-nag";
import { METRICS } from "../lib/constructs/metrics.ts";
import { GraphService, GraphState } from "../lib/index.ts";
import { exampleWithEverything } from "./options.ts";
import {
  dependents,
  example,
  FLEET_VARIABLES,
  flat,
  hasFlag,
  named,
  ofType,
  only,
  placeholders,
  resources,
  testApp,
  unknownVariables,
  workerEndpoint,
} from "./support.ts";

const { app, service } = example();
const ROOT = join(import.meta.dirname, "..", "..");

test("the query function is a program for arm64 in the VPC that knows all its variables", () => {
  const { Properties } = named(service, "AWS::Lambda::Function", "ServiceQuery");
  assert.equal(Properties.Runtime, "provided.al2023");
  assert.deepEqual(Properties.Architectures, ["arm64"]);
  assert.equal(Properties.MemorySize, 1769);
  assert.equal(Properties.Timeout, 120);
  assert.equal(Properties.VpcConfig.SubnetIds.length, 3);
  assert.equal(Properties.ReservedConcurrentExecutions, undefined);
  const variables: Record<string, unknown> = Properties.Environment.Variables;
  assert.equal(variables.TIDEGRAPH_GRAPH, "people");
  // The prefix of the deployed table, which contains a part of the state's id: the name without `map`.
  assert.match(flat(variables.TIDEGRAPH_TABLE_PREFIX), /^example-.*AWSStackId.*-$/);
  assert.equal(variables.TIDEGRAPH_QUERY_TIMEOUT_MS, "120000");
  // A variable that the program does not know would make it exit.
  const own = join("services", "query", "src", "lambda", "configuration.rs");
  assert.deepEqual(unknownVariables(variables, own, FLEET_VARIABLES), []);
});

test("the API is throttled, logs each request, and streams answers", () => {
  const stage = only(service, "AWS::ApiGateway::Stage").Properties;
  const [everything] = stage.MethodSettings;
  assert.deepEqual([everything.ResourcePath, everything.HttpMethod], ["/*", "*"]);
  assert.equal(everything.ThrottlingRateLimit, 500);
  assert.equal(everything.ThrottlingBurstLimit, 1000);
  assert.equal(everything.DataTraceEnabled, false, "queries are not logged");
  assert.ok(stage.AccessLogSetting.DestinationArn);
  const format: Record<string, string> = JSON.parse(stage.AccessLogSetting.Format);
  assert.equal(format.caller, "$context.identity.userArn");
  // What is missing is a dash, so that each value has quotation marks. The message of a wrong signature has the query and the
  // session token of the caller.
  for (const [name, value] of Object.entries(format)) assert.match(value, /^\$context\.[A-Za-z.]+$/, name);
  assert.equal(format.error, "$context.error.responseType");
  for (const [id, { Properties }] of ofType(service, "AWS::ApiGateway::Method", 2)) {
    const { Type, ResponseTransferMode, TimeoutInMillis, Uri } = Properties.Integration;
    assert.equal(Type, "AWS_PROXY", id);
    assert.equal(ResponseTransferMode, "STREAM", id);
    assert.equal(TimeoutInMillis, 120_000, id);
    assert.match(flat(Uri), /response-streaming-invocations$/, id);
  }
});

test("workers run on arm64 without a writable disk, and know all their flags", () => {
  const { Properties } = only(service, "AWS::ECS::TaskDefinition");
  assert.deepEqual(Properties.RuntimePlatform, { CpuArchitecture: "ARM64", OperatingSystemFamily: "LINUX" });
  const [container] = Properties.ContainerDefinitions;
  assert.equal(container.ReadonlyRootFilesystem, true);
  assert.equal(container.Environment, undefined);
  assert.deepEqual(
    container.Secrets.map((secret: { Name: string }) => secret.Name),
    ["CLIENT_TOKEN"],
  );
  const sources = ["worker.rs", "serve.rs", "access.rs", "map.rs", "metrics_log.rs"].map((name) =>
    readFileSync(join(ROOT, "services", "query", "src", "cli", name), "utf8"),
  );
  const script = readFileSync(join(ROOT, "infra", "worker", "start-worker.sh"), "utf8");
  const flags = [...container.Command.map(flat), ...(script.match(/--[a-z0-9-]+/g) ?? [])].filter(
    (word: string) => word.startsWith("--"),
  );
  assert.ok(flags.length >= 7);
  for (const flag of flags) assert.ok(hasFlag(sources.join("\n"), flag), flag);
  // They listen for the balancer, which ends TLS; callers need the clients' secret nevertheless.
  assert.ok(flags.includes("--insecure") && flags.includes("--token-file"), flags.join(" "));
  // They load from the buckets that their role may read.
  const command: string[] = container.Command.map(flat);
  const places = command.filter((_, index) => command[index - 1] === "--load-from");
  assert.ok(
    places.some((place) => /^s3:\/\/<StateBucketsDrop/.test(place)),
    places.join(" "),
  );
  const of = only(service, "AWS::ECS::Service").Properties;
  assert.equal(of.DesiredCount, 2);
  assert.deepEqual(of.DeploymentConfiguration.DeploymentCircuitBreaker, { Enable: true, Rollback: true });
  service.hasResourceProperties("AWS::ElasticLoadBalancingV2::Listener", { Port: 8182, Protocol: "TCP" });
});

test("workers size themselves by the memory of their task", () => {
  const agentImage = `registry.example/agent@sha256:${"a".repeat(64)}`;
  const { service: traced } = example({ traces: { agentImage }, workers: { cpu: 256, memoryMib: 512 } });
  for (const template of [service, traced]) {
    const task = named(template, "AWS::ECS::TaskDefinition", "ServiceWorkers").Properties;
    const limits: number[] = task.ContainerDefinitions.map(({ Memory }: { Memory: number }) => Memory);
    // Without a limit of its own, a container sees the memory of Fargate's machine, which is larger.
    for (const limit of limits) assert.ok(limit >= 128, limits.join());
    assert.equal(
      limits.reduce((sum, limit) => sum + limit, 0),
      Number(task.Memory),
      "the containers share all of it",
    );
  }
});

test("queries of workers spill to a folder that their user may write to", () => {
  const task = only(service, "AWS::ECS::TaskDefinition").Properties;
  const [container] = task.ContainerDefinitions;
  const [mount, ...others] = container.MountPoints;
  assert.deepEqual([mount.ContainerPath, mount.ReadOnly, others], ["/tmp", false, []]);
  // A volume without a place of its own is on the task's disk.
  assert.deepEqual(task.Volumes, [{ Name: mount.SourceVolume }]);
  // ECS takes the permissions of the folder from the image if it declares the volume; otherwise root alone may write.
  const image = readFileSync(join(ROOT, "infra", "worker", "Dockerfile"), "utf8");
  assert.match(image, /^VOLUME \["\/tmp"\]$/m);
  assert.match(image, /^USER 65532/m);
});

test("a worker that is replaced takes connections as long as the balancer sends them", () => {
  const { TargetGroupAttributes } = only(service, "AWS::ElasticLoadBalancingV2::TargetGroup").Properties;
  const delay = TargetGroupAttributes.find(
    ({ Key }: { Key: string }) => Key === "deregistration_delay.timeout_seconds",
  );
  // A network balancer goes on for two minutes, whatever the delay is; ECS stops the task after it.
  assert.ok(Number(delay.Value) >= 150, delay.Value);
});

test("a listener without TLS keeps idle sessions as long as it can", () => {
  const { certificate } = workerEndpoint();
  const { service: withTls } = example({ workers: { certificate } });
  const times = (template: typeof service): unknown[] =>
    ofType(template, "AWS::ElasticLoadBalancingV2::Listener").map(([, { Properties }]) => [
      Properties.Protocol,
      Properties.ListenerAttributes,
    ]);
  assert.deepEqual(times(service), [["TCP", [{ Key: "tcp.idle_timeout.seconds", Value: "6000" }]]]);
  // AWS refuses another time than its own with TLS.
  assert.deepEqual(times(withTls), [
    ["TLS", undefined],
    ["TLS", undefined],
  ]);
});

test("a change stream is on in every process that writes, or in none", () => {
  const says = (template: typeof service) => {
    const [container] = only(template, "AWS::ECS::TaskDefinition").Properties.ContainerDefinitions;
    const { Environment } = named(template, "AWS::Lambda::Function", "ServiceQuery").Properties;
    return [container.Command.includes("--streams"), Environment.Variables.TIDEGRAPH_STREAMS];
  };
  assert.deepEqual(says(service), [false, undefined]);
  assert.deepEqual(says(example({ streams: true }).service), [true, "true"]);
});

test("nodes are in three zones on machines with NVMe, and the group never terminates one by itself", () => {
  const group = only(service, "AWS::AutoScaling::AutoScalingGroup");
  const { Properties } = group;
  assert.equal(Properties.VPCZoneIdentifier.length, 3);
  assert.deepEqual(
    [Properties.MinSize, Properties.MaxSize, Properties.DesiredCapacity],
    ["3", "316", undefined],
  );
  // A deployment with fewer nodes, or without `most`, sets no largest size below the machines that there are.
  for (const nodes of [{ count: 10 }, { count: 300 }, { count: 4, most: 300 }]) {
    const { Properties: other } = only(example({ nodes }).service, "AWS::AutoScaling::AutoScalingGroup");
    assert.deepEqual([other.MinSize, other.MaxSize], [String(nodes.count), "316"]);
  }
  assert.equal(Properties.NewInstancesProtectedFromScaleIn, true);
  service.resourceCountIs("AWS::AutoScaling::ScalingPolicy", 0);
  const { LaunchTemplateData } = only(service, "AWS::EC2::LaunchTemplate").Properties;
  assert.equal(LaunchTemplateData.InstanceType, "i4g.xlarge");
  assert.deepEqual(LaunchTemplateData.MetadataOptions, {
    HttpTokens: "required",
    HttpPutResponseHopLimit: 1,
  });
  assert.equal(LaunchTemplateData.BlockDeviceMappings[0].Ebs.Encrypted, true);
  const image = JSON.stringify(service.toJSON().Parameters);
  assert.match(image, /al2023-ami-kernel[^"]*-arm64/);
});

test("machines have the first of several types that has capacity, and none is taken away", () => {
  const nodes = { instanceType: "i8g.xlarge", fallbackInstanceTypes: ["i4g.xlarge", "im4gn.xlarge"] };
  const group = only(example({ nodes }).service, "AWS::AutoScaling::AutoScalingGroup").Properties;
  assert.equal(group.LaunchTemplate, undefined);
  const { LaunchTemplate, InstancesDistribution } = group.MixedInstancesPolicy;
  assert.deepEqual(
    LaunchTemplate.Overrides.map((override: { InstanceType: string }) => override.InstanceType),
    ["i8g.xlarge", "i4g.xlarge", "im4gn.xlarge"],
  );
  assert.deepEqual(InstancesDistribution, {
    OnDemandAllocationStrategy: "prioritized",
    OnDemandPercentageAboveBaseCapacity: 100,
  });
});

test("every machine waits to be admitted, and has time to leave", () => {
  const group = only(service, "AWS::AutoScaling::AutoScalingGroup");
  const [joins, leaves] = group.Properties.LifecycleHookSpecificationList;
  assert.deepEqual(
    [joins.LifecycleTransition, joins.DefaultResult],
    ["autoscaling:EC2_INSTANCE_LAUNCHING", "ABANDON"],
  );
  assert.deepEqual(
    [leaves.LifecycleTransition, leaves.DefaultResult],
    ["autoscaling:EC2_INSTANCE_TERMINATING", "CONTINUE"],
  );
  // A hook as a separate resource would be created after the group, and miss its first machines.
  service.resourceCountIs("AWS::AutoScaling::LifecycleHook", 0);
  const rule = named(service, "AWS::Events::Rule", "ServiceNodesLaunched").Properties;
  assert.deepEqual(rule.EventPattern, {
    source: ["aws.autoscaling"],
    "detail-type": ["EC2 Instance-launch Lifecycle Action"],
    detail: { AutoScalingGroupName: ["example-nodes"], LifecycleHookName: ["joins"] },
  });
  const machine = named(service, "AWS::StepFunctions::StateMachine", "ServiceNodesJoin").Properties;
  assert.match(flat(rule.Targets[0].Arn), /^<ServiceNodesJoinStateMachine/);
  for (const needed of ["ServiceNodesLaunched", "ServiceNodesJoinStateMachine"]) {
    assert.ok(
      group.DependsOn?.some((id) => id.startsWith(needed)),
      needed,
    );
  }
  const definition = JSON.parse(flat(machine.DefinitionString));
  const { States } = definition;
  assert.equal(
    States.Look.Parameters.Key.item["S.$"],
    "States.Format('map#node#{}', $.detail.EC2InstanceId)",
  );
  assert.equal(States["Let in"].Parameters.LifecycleActionResult, "CONTINUE");
  assert.equal(States["Give up"].Parameters.LifecycleActionResult, "ABANDON");
  // The machine gives up before the hook does, so that its log has a reason.
  const seconds = States["Up?"].Choices[1].NumericGreaterThanEquals * States.Wait.Seconds;
  assert.ok(seconds < joins.HeartbeatTimeout, `${seconds} s`);
});

test("before the group is deleted it is emptied, after everything that reacts to its machines is gone", () => {
  const [[group = ""] = []] = ofType(service, "AWS::AutoScaling::AutoScalingGroup", 1);
  const [[teardown = "", resource] = []] = ofType(service, "Custom::TidegraphTeardown", 1);
  assert.ok(dependents(service, group).has(teardown), "created after the group, so deleted before it");
  // A change of this id would remove the machines of a group that stays.
  assert.match(teardown, /^ServiceNodesTeardown[0-9A-F]{8}$/);
  assert.deepEqual(resource?.Properties.GroupName, { Ref: group });
  // What reacts to machines, and what may fail while machines exist, is created later and deleted earlier.
  const earlier = [...dependents(service, teardown)].map((id) => id.replace(/[0-9A-F]{8}$/, "")).toSorted();
  assert.deepEqual(
    earlier.filter((id) => /Rebalance|WorkersService$/.test(id)),
    ["ServiceRebalanceEachMinute", "ServiceRebalanceTakenAway", "ServiceWorkersService"],
  );
  // The function, its permissions and its log outlive the resource.
  const [[fn = ""] = []] = ofType(service, "AWS::Lambda::Function").filter(([id]) =>
    /NodesTeardown/.test(id),
  );
  const [[policy = ""] = []] = ofType(service, "AWS::IAM::Policy").filter(([id]) => /NodesTeardown/.test(id));
  const [[log = ""] = []] = ofType(service, "AWS::Logs::LogGroup").filter(([id]) => /NodesTeardown/.test(id));
  for (const needed of [fn, policy, log]) assert.ok(dependents(service, needed).has(teardown), needed);
  const { Timeout } = named(service, "AWS::Lambda::Function", "ServiceNodesTeardown").Properties;
  assert.ok(Number(resource?.Properties.ServiceTimeout) > Timeout, "an answer has time to arrive");
  assert.ok(Number(resource?.Properties.ServiceTimeout) < 3600, "CloudFormation's own limit");
});

test("machines and workers start once they can reach AWS, and last of all", () => {
  const [[group = ""] = []] = ofType(service, "AWS::AutoScaling::AutoScalingGroup", 1);
  const [[workers = ""] = []] = ofType(service, "AWS::ECS::Service", 1);
  const endpoints = ofType(service, "AWS::EC2::VPCEndpoint", 6).map(([id]) => id);
  for (const endpoint of endpoints) {
    assert.ok(dependents(service, endpoint).has(group), `${endpoint} before machines`);
    assert.ok(dependents(service, endpoint).has(workers), `${endpoint} before workers`);
  }
  for (const type of ["AWS::ApiGateway::Stage", "AWS::ApiGateway::Account"]) {
    const [[id = ""] = []] = ofType(service, type, 1);
    assert.ok(dependents(service, id).has(group), `${type} before machines`);
  }
  for (const [id] of ofType(service, "AWS::Lambda::Function")) {
    if (/^Service(Query|Ingest)/.test(id))
      assert.ok(dependents(service, id).has(group), `${id} before machines`);
  }
});

test("log groups are encrypted and have a retention period", () => {
  const groups = ofType(service, "AWS::Logs::LogGroup");
  assert.equal(groups.length, 22);
  for (const [id, { Properties }] of groups) {
    assert.ok(Properties.KmsKeyId, id);
    assert.equal(Properties.RetentionInDays, 30, id);
    assert.match(Properties.LogGroupName, /^(\/aws\/vendedlogs\/states)?\/tidegraph\/example\//);
  }
});

test("alarms use existing metrics and publish to an encrypted topic", () => {
  const documented = readFileSync(join(ROOT, "docs", "metrics.md"), "utf8");
  const { ofNodes, ofIngest, ofWorkers } = METRICS;
  const all = [...ofNodes, ofIngest, ...ofWorkers.series];
  const names = all.flatMap((selected) => [...selected.names]);
  for (const name of names) assert.ok(documented.includes(`\`${name}\``), name);
  for (const value of [...METRICS.outcomes, ...METRICS.refusals])
    assert.ok(documented.includes(`\`${value}\``), value);
  const alarms = ofType(service, "AWS::CloudWatch::Alarm");
  assert.ok(alarms.length >= 15, `${alarms.length} alarms`);
  for (const [id, { Properties }] of alarms) {
    assert.ok(Properties.AlarmDescription.length > 20, id);
    assert.equal(Properties.AlarmActions.length, 1, id);
    if (Properties.Namespace !== METRICS.namespace) continue;
    // CloudWatch accepts any metric name; an alarm on a metric that nothing writes would never fire.
    const selected = all.find((one) => one.names.includes(Properties.MetricName));
    assert.ok(selected, `${id}: ${Properties.MetricName}`);
    const dimensions = Properties.Dimensions.map((dimension: { Name: string }) => dimension.Name);
    assert.deepEqual(dimensions.toSorted(), [METRICS.dimension, ...selected.dimensions].toSorted(), id);
  }
  assert.ok(only(service, "AWS::SNS::Topic").Properties.KmsMasterKeyId);
  const writers = only(service, "AWS::SNS::TopicPolicy")
    .Properties.PolicyDocument.Statement.filter(
      (statement: { Effect: string }) => statement.Effect === "Allow",
    )
    .map((statement: { Principal: { Service: string } }) => statement.Principal.Service);
  assert.deepEqual([...new Set(writers)].toSorted(), ["cloudwatch.amazonaws.com", "events.amazonaws.com"]);
});

test("one dashboard has the fleet's own metrics", () => {
  const body = flat(only(service, "AWS::CloudWatch::Dashboard").Properties.DashboardBody);
  const { ofNodes, ofIngest, ofWorkers } = METRICS;
  for (const { names } of [...ofNodes, ofIngest, ...ofWorkers.series])
    for (const name of names) assert.ok(body.includes(name), name);
});

test("programs are assets, and the worker's image has a base with a digest and needs no Docker at synth", () => {
  const folder = app.outdir;
  const manifest = JSON.parse(readFileSync(join(folder, "Service.assets.json"), "utf8"));
  const [image, ...others] = Object.values<{
    source: { directory: string };
    destinations: Record<string, unknown>;
  }>(manifest.dockerImages);
  assert.ok(image);
  assert.deepEqual(others, []);
  const context = join(folder, image.source.directory);
  assert.deepEqual(readdirSync(context).toSorted(), ["Dockerfile", "start-worker.sh", "tidegraph"]);
  const dockerfile = readFileSync(join(context, "Dockerfile"), "utf8");
  const instructions = dockerfile.split("\n").filter((line) => /^[A-Z]/.test(line));
  assert.deepEqual(
    instructions.map((line) => line.split(" ")[0]),
    ["ARG", "FROM", "COPY", "COPY", "VOLUME", "USER", "ENTRYPOINT"],
    "nothing is run while it is built",
  );
  assert.match(JSON.stringify(manifest.dockerImages), /"BASE":"[^"]+@sha256:[0-9a-f]{64}"/);
  assert.match(JSON.stringify(manifest.dockerImages), /"platform":"linux\/arm64"/);
});

test("workers with a name and access keys take clients of Neptune as they are", () => {
  const { certificate, accessKeys, zone } = workerEndpoint();
  const domain = { name: "graph.example.com", zone };
  const { service: made } = example({ workers: { certificate, domain, accessKeys } });
  const listeners = ofType(made, "AWS::ElasticLoadBalancingV2::Listener", 2).map(([, one]) => one.Properties);
  // 8182 is the port that clients of Neptune choose.
  assert.deepEqual(listeners.map(({ Port }) => Port).toSorted(), [443, 8182]);
  for (const { Protocol, Certificates, DefaultActions } of listeners) {
    assert.equal(Protocol, "TLS");
    assert.deepEqual(Certificates, [{ CertificateArn: certificate.certificateArn }]);
    assert.deepEqual(DefaultActions, listeners[0]?.DefaultActions);
  }
  const record = only(made, "AWS::Route53::RecordSet").Properties;
  assert.deepEqual([record.Name, record.Type, record.HostedZoneId], ["graph.example.com.", "A", "Z1"]);
  const [container] = only(made, "AWS::ECS::TaskDefinition").Properties.ContainerDefinitions;
  const secrets = container.Secrets.map(({ Name, ValueFrom }: { Name: string; ValueFrom: unknown }) => [
    Name,
    flat(ValueFrom),
  ]);
  assert.deepEqual(secrets, [["ACCESS_KEYS", accessKeys.secretArn]]);
  const command: string[] = container.Command.map(flat);
  assert.equal(command[command.indexOf("--sigv4-region") + 1], "<AWS::Region>");
  const outputs = JSON.stringify(made.findOutputs("*"));
  assert.match(outputs, /https:\/\/graph\.example\.com:443/);
  assert.doesNotMatch(outputs, /clients of workers send/);
  // Plain HTTP and the clients' secret, without any of these.
  assert.equal(only(service, "AWS::ElasticLoadBalancingV2::Listener").Properties.Port, 8182);
});

test("without workers there is no balancer, no endpoint of the registry and no alarm about workers", () => {
  const { service: lean } = example({ workers: false });
  for (const type of ["AWS::ECS::Service", "AWS::ElasticLoadBalancingV2::LoadBalancer"])
    lean.resourceCountIs(type, 0);
  assert.equal(ofType(lean, "AWS::EC2::VPCEndpoint").length, 4);
  lean.resourcePropertiesCountIs("AWS::CloudWatch::Alarm", { Namespace: "AWS/NetworkELB" }, 0);
  lean.hasOutput("*", { Description: Match.stringLikeRegexp("^Queries, signed") });
});

test("one stack in an existing VPC has no endpoints, uses private subnets and passes AWS's rules", () => {
  const one = testApp();
  const vpc = new ec2.Vpc(new Stack(one, "Network"), "Vpc", { maxAzs: 2, natGateways: 1 });
  const stack = new Stack(one, "All");
  const state = new GraphState(stack, "State", { name: "one", network: { vpc, zones: 2 } });
  new GraphService(stack, "Service", { state, bundle: placeholders(), nodes: { count: 4 } });
  const template = Template.fromStack(stack);
  for (const type of ["AWS::EC2::VPC", "AWS::EC2::VPCEndpoint"]) template.resourceCountIs(type, 0);
  assert.equal(only(template, "AWS::MSK::Cluster").Properties.NumberOfBrokerNodes, 4);
  const places = only(template, "AWS::AutoScaling::AutoScalingGroup").Properties.VPCZoneIdentifier.map(flat);
  assert.equal(places.length, 2);
  for (const place of places) assert.match(place, /PrivateSubnet/);
  assert.deepEqual(new AwsSolutionsChecks(one).validateScope(stack).violations, []);
});

test("descriptions of security groups and of their rules have the characters that EC2 takes", () => {
  let count = 0;
  for (const template of Object.values(exampleWithEverything())) {
    for (const [id, { Type, Properties }] of resources(template)) {
      if (!Type.startsWith("AWS::EC2::SecurityGroup")) continue;
      const { SecurityGroupIngress: ingress = [], SecurityGroupEgress: egress = [] } = Properties;
      const all = [Properties, ...ingress, ...egress].map(
        ({ GroupDescription, Description }) => GroupDescription ?? Description,
      );
      for (const text of all.filter((one) => one !== undefined)) {
        count += 1;
        // "a-z, A-Z, 0-9, spaces, and ._-:/()#,@[]+=&;{}!$*", up to 255 (EC2's API, IpRange).
        assert.match(String(text), /^[a-zA-Z0-9 ._\-:/()#,@[\]+=&;{}!$*]{1,255}$/, id);
      }
    }
  }
  assert.ok(count > 30, String(count));
});

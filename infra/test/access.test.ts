/** Permissions and reachability: policies, security groups, endpoints, and AWS's own rules (cdk-nag). */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Validations } from "aws-cdk-lib";
import type { Template } from "aws-cdk-lib/assertions";
import { AwsSolutionsChecks } from "cdk-nag";
import type { IConstruct } from "constructs";
import { example, flat, named, ofType, only, resources } from "./support.ts";

const { app, state, service } = example();

interface Statement {
  readonly Sid?: string;
  readonly Effect: string;
  readonly Action: string | string[];
  readonly Resource: unknown;
  readonly Condition?: Record<string, unknown>;
}

/** Returns the statements of all roles' policies, each with the policy's id. */
function statements(template: Template): [string, Statement][] {
  const found: [string, Statement][] = [];
  for (const [id, { Type, Properties }] of resources(template)) {
    const own =
      Type === "AWS::IAM::Policy" || Type === "AWS::IAM::ManagedPolicy" ? [Properties.PolicyDocument] : [];
    const inline = Type === "AWS::IAM::Role" ? (Properties.Policies ?? []) : [];
    for (const document of [
      ...own,
      ...inline.map((policy: { PolicyDocument: unknown }) => policy.PolicyDocument),
    ]) {
      for (const statement of document.Statement) found.push([id, statement]);
    }
  }
  return found;
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

/** Returns what the role whose id has this prefix may do, as `action resource`. */
function allowed(beginning: string): string[] {
  const found = statements(service).filter(([id]) => id.startsWith(beginning));
  return found
    .flatMap(([, { Action, Resource }]) =>
      list(Action).flatMap((action) =>
        list(Resource).map((resource) => `${action} ${short(flat(resource))}`),
      ),
    )
    .toSorted();
}

/** Removes what CDK adds to names. */
function short(text: string): string {
  return text
    .replaceAll(
      /State(Buckets|Map|Log)?([A-Z][a-z]+)[0-9A-F]{8}(Arn[0-9A-F]{8}|Ref[0-9A-F]{8}|[0-9A-F]{8})?/g,
      "$2",
    )
    .replaceAll(/Service([A-Z][A-Za-z]+?)[0-9A-F]{8}(\.Arn)?/g, "$1")
    .replaceAll(/[0-9a-f]{64}/g, "HASH");
}

test("every statement allows actions by their full names", () => {
  const all = [...statements(service), ...statements(state)];
  assert.ok(all.length > 20);
  for (const [id, { Action, Effect }] of all) {
    assert.equal(Effect, "Allow", id);
    for (const action of list(Action)) assert.doesNotMatch(String(action), /\*/, id);
  }
});

test("resources have wildcards only for names that are unknown at synth and actions that support no resources", () => {
  const wild = statements(service).flatMap(([id, statement]) =>
    list(statement.Resource)
      .map(flat)
      .filter((resource) => resource.includes("*"))
      .map((resource) => `${id.replace(/DefaultPolicy.*/, "")}: ${short(resource)}`),
  );
  assert.deepEqual(wild.map((one) => one.replace(/execution:\{.*\}/, "execution:SELF")).toSorted(), [
    // Actions for traces and network interfaces do not support resources.
    "ServiceIngestIntakeRole: *",
    // Dropped files, and the reports about them.
    "ServiceIngestIntakeRole: <Drop>/drop/*",
    "ServiceIngestIntakeRole: <Drop>/reports/*",
    "ServiceIngestMachineRole: *",
    "ServiceIngestMachineRole: <IngestFunction>:*",
    "ServiceIngestMachineRole: <IngestIntakeFunction>:*",
    "ServiceIngestMachineRole: <IngestReportFunction>:*",
    // Executions of its own tasks, which get their names at run time.
    "ServiceIngestMachineStateMachineDistributedMapPolicyA7781FFA: arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:SELF/*:*",
    "ServiceIngestMachineStateMachineDistributedMapPolicyA7781FFA: arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:SELF:*",
    "ServiceIngestReportRole: *",
    "ServiceIngestReportRole: <Data>/ingest/*/report.json",
    // The function writes reports, and checks whether one exists.
    "ServiceIngestReportRole: <Drop>/reports/*",
    "ServiceIngestReportRole: <Drop>/reports/*",
    "ServiceIngestRole: *",
    "ServiceIngestRole: <Data>/ingest/*",
    "ServiceIngestRole: <Data>/jobs/*",
    "ServiceIngestRole: <Data>/loads/*",
    "ServiceIngestRole: <Drop>/drop/*",
    // To find out which load a stopped execution had.
    "ServiceIngestSeeExecutionsC8093A34: arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:SELF:*",
    "ServiceIngestSettleRole: *",
    "ServiceIngestSettleRole: <IngestFunction>:*",
    "ServiceIngestSettleRole: <IngestReportFunction>:*",
    "ServiceIngestStaleRole: *",
    "ServiceIngestStaleRole: <Drop>/drop/*",
    "ServiceIngestStaleRole: <Drop>/reports/*",
    // Actions for the delivery of a state machine's log do not support resources.
    "ServiceNodesJoinRole: *",
    // The unique id in the ARN of a group is generated after this policy is created.
    "ServiceNodesJoinRole: arn:<AWS::Partition>:autoscaling:<AWS::Region>:<AWS::AccountId>:autoScalingGroup:*:autoScalingGroupName/example-nodes",
    // Objects of the graph's own bucket, which get their names at run time.
    "ServiceNodesRole: <Data>/*",
    // The key with which the account was bootstrapped, if it has one; only for the object with the program.
    "ServiceNodesRole: arn:<AWS::Partition>:kms:<AWS::Region>:*:key/*",
    // Describing groups supports no resources.
    "ServiceNodesTeardownRole: *",
    "ServiceNodesTeardownRole: arn:<AWS::Partition>:autoscaling:<AWS::Region>:<AWS::AccountId>:autoScalingGroup:*:autoScalingGroupName/example-nodes",
    // Lambda's network interfaces have no names before they are created.
    "ServiceQueryRole: *",
    "ServiceQueryRole: <Data>/jobs/*",
    // The log of a state machine, and versions of the one function that it invokes.
    "ServiceRebalanceDetectRole: *",
    "ServiceRebalanceDetectRole: <RebalanceFunction>:*",
    "ServiceRebalanceDrainRole: *",
    "ServiceRebalanceDrainRole: <RebalanceFunction>:*",
    "ServiceRebalanceDrainRole: arn:<AWS::Partition>:autoscaling:<AWS::Region>:<AWS::AccountId>:autoScalingGroup:*:autoScalingGroupName/example-nodes",
    "ServiceRebalanceHealRole: *",
    "ServiceRebalanceHealRole: <RebalanceFunction>:*",
    "ServiceRebalanceHealRole: arn:<AWS::Partition>:autoscaling:<AWS::Region>:<AWS::AccountId>:autoScalingGroup:*:autoScalingGroupName/example-nodes",
    "ServiceRebalanceScaleOutRole: *",
    "ServiceRebalanceScaleOutRole: <RebalanceFunction>:*",
    // Looks at alarms and the group support no resources.
    "ServiceUpgradeRole: *",
    "ServiceUpgradeRole: <RebalanceFunction>:*",
    "ServiceUpgradeRole: <WorkersDefinitionFunction>:*",
    "ServiceUpgradeRole: arn:<AWS::Partition>:autoscaling:<AWS::Region>:<AWS::AccountId>:autoScalingGroup:*:autoScalingGroupName/example-nodes",
    // The executions of the machine that drains, and its own.
    "ServiceUpgradeRole: arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:SELF*",
    "ServiceUpgradeRole: arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:example-upgrade:*",
    // Definitions of tasks are registered without resources. Services and revisions get their names after this policy.
    "ServiceWorkersDefinitionRole: *",
    "ServiceWorkersDefinitionRole: *",
    "ServiceWorkersDefinitionRole: arn:<AWS::Partition>:ecs:<AWS::Region>:<AWS::AccountId>:service/<WorkersCluster>/*",
    "ServiceWorkersDefinitionRole: arn:<AWS::Partition>:ecs:<AWS::Region>:<AWS::AccountId>:task-definition/example-workers:*",
    "ServiceWorkersRole: <Data>/jobs/*",
    "ServiceWorkersRole: <Data>/loads/*",
    "ServiceWorkersRole: <Data>/resets/*",
    // Files that users drop.
    "ServiceWorkersRole: <Drop>/*",
    // The registry's login action does not support resources.
    "ServiceWorkersStarter: *",
  ]);
});

test("nodes may use the map, their topic, their bucket, their secret, their logs and their program", () => {
  const kafka = "arn:<AWS::Partition>:kafka:<AWS::Region>:<AWS::AccountId>";
  const actions = allowed("ServiceNodesRole");
  const of = (service: string): string[] => actions.filter((one) => one.startsWith(`${service}:`));
  assert.deepEqual(of("dynamodb"), [
    "dynamodb:GetItem <Table>",
    "dynamodb:PutItem <Table>",
    "dynamodb:Query <Table>",
    "dynamodb:Query <Table>/index/by-epoch",
    "dynamodb:UpdateItem <Table>",
  ]);
  assert.deepEqual(
    of("kafka-cluster").map((one) => one.replace(/\{"Fn::Select".*\}(?=\/)/, "CLUSTER")),
    [
      "kafka-cluster:Connect <Cluster>",
      `kafka-cluster:CreateTopic ${kafka}:topic/CLUSTER/tidegraph-people`,
      `kafka-cluster:DeleteTopic ${kafka}:topic/CLUSTER/tidegraph-people`,
      `kafka-cluster:DescribeGroup ${kafka}:group/CLUSTER/tidegraph`,
      `kafka-cluster:DescribeTopic ${kafka}:topic/CLUSTER/tidegraph-people`,
      `kafka-cluster:DescribeTopicDynamicConfiguration ${kafka}:topic/CLUSTER/tidegraph-people`,
      `kafka-cluster:ReadData ${kafka}:topic/CLUSTER/tidegraph-people`,
      `kafka-cluster:WriteData ${kafka}:topic/CLUSTER/tidegraph-people`,
      "kafka-cluster:WriteDataIdempotently <Cluster>",
    ],
  );
  assert.deepEqual(of("secretsmanager"), ["secretsmanager:GetSecretValue <SecretsFleet>"]);
  const services = new Set(actions.map((one) => one.split(":")[0]));
  assert.deepEqual([...services], ["dynamodb", "kafka-cluster", "kms", "logs", "s3", "secretsmanager"]);
});

test("the query function only reads the map and the jobs of loads", () => {
  const actions = allowed("ServiceQueryRole").filter((one) => !one.startsWith("ec2:"));
  assert.deepEqual(actions, [
    "dynamodb:GetItem <Table>",
    "dynamodb:Query <Table>",
    "dynamodb:Query <Table>/index/by-epoch",
    "kms:Decrypt <Key>",
    "kms:GenerateDataKey <Key>",
    "logs:CreateLogStream <QueryLogs>",
    "logs:PutLogEvents <QueryLogs>",
    "s3:GetObject <Data>/jobs/*",
    "s3:ListBucket <Data>",
    "secretsmanager:GetSecretValue <SecretsFleet>",
  ]);
  const role = named(service, "AWS::IAM::Role", "ServiceQueryRole").Properties;
  assert.equal(role.ManagedPolicyArns, undefined);
});

test("the function that moves replicas changes only the map", () => {
  assert.deepEqual(allowed("ServiceRebalanceRole"), [
    "dynamodb:GetItem <Table>",
    "dynamodb:PutItem <Table>",
    "dynamodb:Query <Table>",
    "dynamodb:Query <Table>/index/by-epoch",
    "dynamodb:UpdateItem <Table>",
    "kms:Decrypt <Key>",
    "kms:GenerateDataKey <Key>",
    "logs:CreateLogStream <RebalanceLogs>",
    "logs:PutLogEvents <RebalanceLogs>",
  ]);
});

test("the function that empties the group changes only that group", () => {
  const group =
    "arn:<AWS::Partition>:autoscaling:<AWS::Region>:<AWS::AccountId>:autoScalingGroup:*:autoScalingGroupName/example-nodes";
  assert.deepEqual(allowed("ServiceNodesTeardownRole"), [
    `autoscaling:DeleteAutoScalingGroup ${group}`,
    `autoscaling:DeleteLifecycleHook ${group}`,
    "autoscaling:DescribeAutoScalingGroups *",
    "autoscaling:DescribeLifecycleHooks *",
    `autoscaling:SetInstanceProtection ${group}`,
    `autoscaling:SuspendProcesses ${group}`,
    `autoscaling:UpdateAutoScalingGroup ${group}`,
    "logs:CreateLogStream <NodesTeardownLogs>",
    "logs:PutLogEvents <NodesTeardownLogs>",
  ]);
});

test("the function that registers what workers run passes on their two roles, and looks at their cluster only", () => {
  const found = statements(service).filter(([id]) => id.startsWith("ServiceWorkersDefinitionRole"));
  const of = (sid: string) => found.find(([, { Sid }]) => Sid === sid)?.[1];
  const { Properties: task } = only(service, "AWS::ECS::TaskDefinition");
  const roles = [task.TaskRoleArn, task.ExecutionRoleArn].map(flat);
  assert.deepEqual(list(of("PassRolesOfWorkers")?.Resource).map(flat), roles);
  assert.deepEqual(of("PassRolesOfWorkers")?.Condition, {
    StringEquals: { "iam:PassedToService": "ecs-tasks.amazonaws.com" },
  });
  assert.match(
    flat(
      Object.values(of("ListServices")?.Condition ?? {}).flatMap((keys) => Object.values(keys as object))[0],
    ),
    /^<ServiceWorkersCluster/,
  );
  assert.deepEqual(found.flatMap(([, { Action }]) => list(Action)).toSorted(), [
    ...["DeregisterTaskDefinition", "DescribeServices", "DescribeTaskDefinition", "ListServices"].map(
      (action) => `ecs:${action}`,
    ),
    ...["ecs:ListTaskDefinitions", "ecs:RegisterTaskDefinition", "ecs:TagResource", "iam:PassRole"],
    ...["logs:CreateLogStream", "logs:PutLogEvents"],
  ]);
});

test("state machines invoke the function, and detect starts the other machines", () => {
  const ours = (beginning: string): string[] =>
    allowed(beginning)
      .filter((one) => !one.startsWith("logs:"))
      .map((one) => one.replace(/(StateMachine)[0-9A-F]{8}/, "$1"));
  const invokes = [
    "lambda:InvokeFunction <RebalanceFunction>",
    "lambda:InvokeFunction <RebalanceFunction>:*",
  ];
  assert.deepEqual(ours("ServiceRebalanceScaleOutRole"), invokes);
  const heals = ours("ServiceRebalanceHealRole");
  assert.deepEqual(
    heals.map((one) => one.split(" ")[0]),
    [
      ...["autoscaling:DescribeAutoScalingGroups", "autoscaling:SetInstanceHealth"],
      ...["lambda:InvokeFunction", "lambda:InvokeFunction"],
    ],
  );
  const drains = ours("ServiceRebalanceDrainRole");
  assert.deepEqual(
    drains.map((one) => one.split(" ")[0]),
    [
      "autoscaling:CompleteLifecycleAction",
      "autoscaling:RecordLifecycleActionHeartbeat",
      ...["lambda:InvokeFunction", "lambda:InvokeFunction"],
    ],
  );
  const starts = ours("ServiceRebalanceDetectRole").filter((one) => !one.startsWith("lambda:"));
  assert.ok(
    starts.length === 3 && starts.every((one) => one.startsWith("states:StartExecution <ServiceRebalance")),
    JSON.stringify(starts),
  );
});

test("the function that loads reads the map and dropped files, and changes segments, jobs and reports", () => {
  const actions = allowed("ServiceIngestRole").filter((one) => !one.startsWith("ec2:"));
  const change = ["AbortMultipartUpload", "DeleteObject", "GetObject", "PutObject"];
  const prefixes = ["ingest", "jobs", "loads"];
  assert.deepEqual(actions, [
    "dynamodb:GetItem <Table>",
    "dynamodb:Query <Table>",
    "dynamodb:Query <Table>/index/by-epoch",
    "kms:Decrypt <Key>",
    "kms:GenerateDataKey <Key>",
    "logs:CreateLogStream <IngestLogs>",
    "logs:PutLogEvents <IngestLogs>",
    ...[
      ...change.flatMap((action) => prefixes.map((prefix) => `s3:${action} <Data>/${prefix}/*`)),
      "s3:GetObject <Drop>/drop/*",
      "s3:ListBucket <Data>",
      "s3:ListBucket <Drop>",
    ].toSorted(),
    "secretsmanager:GetSecretValue <SecretsFleet>",
  ]);
});

test("the small functions read marks and write reports, and cannot reach the graph", () => {
  const of = (name: string): string[] =>
    allowed(`ServiceIngest${name}Role`)
      .filter((one) => /^(dynamodb|s3):/.test(one))
      .map((one) => one.replace(/<ServiceIngestTaken[^>]*>|<IngestTaken>/, "<Taken>"));
  assert.deepEqual(of("Intake"), [
    "dynamodb:DeleteItem <Taken>",
    "dynamodb:GetItem <Taken>",
    "dynamodb:PutItem <Taken>",
    "dynamodb:UpdateItem <Taken>",
    "s3:GetObject <Drop>/drop/*",
    "s3:GetObject <Drop>/reports/*",
    "s3:ListBucket <Drop>",
  ]);
  assert.deepEqual(of("Report"), [
    "s3:GetObject <Data>/ingest/*/report.json",
    "s3:GetObject <Drop>/reports/*",
    "s3:ListBucket <Data>",
    "s3:ListBucket <Drop>",
    "s3:PutObject <Drop>/reports/*",
  ]);
  assert.deepEqual(of("Stale"), [
    "dynamodb:GetItem <Taken>",
    "dynamodb:PutItem <Taken>",
    "s3:GetObject <Drop>/drop/*",
    "s3:ListBucket <Drop>",
    "s3:PutObject <Drop>/reports/*",
  ]);
  const services = (name: string): string[] => [
    ...new Set(allowed(`ServiceIngest${name}Role`).map((one) => one.split(":")[0] ?? "")),
  ];
  for (const name of ["Intake", "Report", "Stale"]) {
    const others = services(name).filter((one) => !["dynamodb", "kms", "logs", "s3", "xray"].includes(one));
    assert.deepEqual(others, [], name);
  }
  const invoked = allowed("ServiceIngestMachineRole").filter((one) => one.startsWith("lambda:"));
  assert.deepEqual(
    invoked
      .map((one) => one.replace(/^lambda:InvokeFunction <Ingest(.*?)Function>(:\*)?$/, "$1$2"))
      .toSorted(),
    ["", ":*", "Intake", "Intake:*", "Report", "Report:*"],
  );
});

test("workers read the map and dropped files, and change what loads and resets leave, but no checkpoints", () => {
  const change = ["AbortMultipartUpload", "DeleteObject", "GetObject", "PutObject"];
  const folders = ["jobs", "loads", "resets"];
  assert.deepEqual(allowed("ServiceWorkersRole"), [
    "dynamodb:GetItem <Table>",
    "dynamodb:Query <Table>",
    "dynamodb:Query <Table>/index/by-epoch",
    "kms:Decrypt <Key>",
    "kms:GenerateDataKey <Key>",
    ...[
      ...change.flatMap((action) => folders.map((folder) => `s3:${action} <Data>/${folder}/*`)),
      "s3:GetObject <Drop>/*",
      "s3:ListBucket <Data>",
      "s3:ListBucket <Drop>",
    ].toSorted(),
    "secretsmanager:GetSecretValue <SecretsFleet>",
  ]);
  // The folders that the engine uses in a worker.
  const engine = join(import.meta.dirname, "..", "..", "engine-core", "engine", "src");
  const names = ["loads/mod.rs", "reset.rs"].flatMap((path) =>
    [
      ...readFileSync(join(engine, path), "utf8").matchAll(
        /^const (?:JOBS|SEGMENTS|RESETS): &str = "(.*?)\/?";$/gm,
      ),
    ].map(([, name]) => name),
  );
  assert.deepEqual(names.toSorted(), folders);
  // ECS gives a container the clients' secret only.
  const starts = allowed("ServiceWorkersStarter").filter((one) => one.startsWith("secretsmanager:"));
  assert.deepEqual(starts, [
    "secretsmanager:DescribeSecret <SecretsClient>",
    "secretsmanager:GetSecretValue <SecretsClient>",
  ]);
});

test("the function that rotates changes only the secret of the fleet", () => {
  assert.deepEqual(allowed("ServiceRotationRole"), [
    "kms:Decrypt <Key>",
    "kms:GenerateDataKey <Key>",
    "logs:CreateLogStream <RotationLogs>",
    "logs:PutLogEvents <RotationLogs>",
    "secretsmanager:DescribeSecret <SecretsFleet>",
    "secretsmanager:GetSecretValue <SecretsFleet>",
    "secretsmanager:PutSecretValue <SecretsFleet>",
    "secretsmanager:UpdateSecretVersionStage <SecretsFleet>",
  ]);
});

test("roles cannot reach items of other graphs, or use the key directly", () => {
  let [items, keys] = [0, 0];
  for (const [id, { Sid, Condition, Action }] of statements(service)) {
    const ofDaemon =
      Sid !== undefined && list(Action).some((action) => String(action).startsWith("dynamodb:"));
    if (ofDaemon && !/^ServiceIngest(Intake|Stale)/.test(id)) {
      items += 1;
      assert.deepEqual(
        Condition,
        { "ForAllValues:StringEquals": { "dynamodb:LeadingKeys": ["people"] } },
        id,
      );
    } else if (ofDaemon) {
      // Each function keeps to its own items of the table.
      const like = id.startsWith("ServiceIngestIntake") ? "drop#*" : "stale#*";
      assert.deepEqual(Condition, { "ForAllValues:StringLike": { "dynamodb:LeadingKeys": [like] } }, id);
    }
    if (list(Action).some((action) => String(action).startsWith("kms:"))) {
      keys += 1;
      const { "kms:ViaService": via, ...others } = (Condition?.StringEquals ?? {}) as Record<string, unknown>;
      assert.ok(via, id);
      // A key that this app does not know is for one object, or the bucket that S3 names if it has a bucket key.
      const place = others["kms:EncryptionContext:aws:s3:arn"];
      assert.deepEqual(
        Object.keys(others),
        Sid === "DecryptProgram" ? ["kms:EncryptionContext:aws:s3:arn"] : [],
        id,
      );
      if (Sid === "DecryptProgram")
        assert.match(flat(list(place)[0]), /cdk-[a-z0-9]+-assets-.*\/[0-9a-f]{64}\b/);
    }
  }
  assert.ok(items >= 7 && keys >= 5, `${items} and ${keys} statements`);
});

/** Returns the edges `who -> whom: port` that security groups allow. Ingress and egress rules must agree. */
function edges(direction: "Ingress" | "Egress"): string[] {
  const found: string[] = [];
  const name = (value: unknown): string =>
    flat(value)
      .replaceAll(/[<>]/g, "")
      .replace(/SecurityGroup[0-9A-F]{8}\.?(GroupId[0-9A-F]*)?$/, "")
      .replace(/[0-9A-F]{8}\.GroupId$/, "")
      .replace(/^(Service|State)/, "");
  const add = (group: unknown, rule: Record<string, unknown>): void => {
    if (rule.CidrIp === "255.255.255.255/32") return;
    const other = rule.CidrIp ?? name(rule.SourceSecurityGroupId ?? rule.DestinationSecurityGroupId);
    assert.equal(rule.IpProtocol, "tcp");
    assert.equal(rule.FromPort, rule.ToPort);
    const [from, to] = direction === "Ingress" ? [other, name(group)] : [name(group), other];
    found.push(`${from} -> ${to}: ${rule.FromPort}`);
  };
  for (const template of [state, service]) {
    for (const [id, { Properties }] of ofType(template, "AWS::EC2::SecurityGroup")) {
      for (const rule of Properties[`SecurityGroup${direction}`] ?? []) add({ Ref: id }, rule);
    }
    for (const [, { Properties }] of ofType(template, `AWS::EC2::SecurityGroup${direction}`)) {
      add(Properties.GroupId, Properties);
    }
  }
  return found.toSorted();
}

test("security groups admit only the components that send requests", () => {
  const inward = [
    "Ingest -> Endpoints: 443",
    "Ingest -> Nodes: 7600",
    "Nodes -> Endpoints: 443",
    "Nodes -> Log: 9098",
    "Nodes -> Nodes: 7600",
    "Query -> Endpoints: 443",
    "Query -> Nodes: 7600",
    "Workers -> Endpoints: 443",
    "Workers -> Nodes: 7600",
    "WorkersClients -> WorkersFront: 8182",
    "WorkersFront -> Workers: 8182",
  ];
  assert.deepEqual(edges("Ingress"), inward);
  // Egress has the same edges, and those to S3 and DynamoDB, which have many addresses. In a VPC without internet
  // access, these lead only to the endpoints.
  const endpoints = [
    "Ingest -> 0.0.0.0/0: 443",
    "Nodes -> 0.0.0.0/0: 443",
    "Query -> 0.0.0.0/0: 443",
    "Workers -> 0.0.0.0/0: 443",
  ];
  const outward = inward.filter((edge) => !edge.includes("Endpoints"));
  assert.deepEqual(edges("Egress"), [...endpoints, ...outward].toSorted());
});

test("only the API is reachable from outside", () => {
  const balancer = only(service, "AWS::ElasticLoadBalancingV2::LoadBalancer").Properties;
  assert.equal(balancer.Scheme, "internal");
  const { NetworkInterfaces } = only(service, "AWS::EC2::LaunchTemplate").Properties.LaunchTemplateData;
  assert.equal(NetworkInterfaces[0].AssociatePublicIpAddress, false);
  const workers = only(service, "AWS::ECS::Service").Properties.NetworkConfiguration.AwsvpcConfiguration;
  assert.equal(workers.AssignPublicIp, "DISABLED");
  service.resourceCountIs("AWS::Lambda::Url", 0);
  for (const [id, { Properties }] of ofType(service, "AWS::ApiGateway::Method")) {
    assert.equal(Properties.AuthorizationType, "AWS_IAM", id);
  }
  assert.deepEqual(only(service, "AWS::ApiGateway::RestApi").Properties.BinaryMediaTypes, [
    "application/vnd.graphbinary-v1.0",
  ]);
  assert.deepEqual(only(service, "AWS::ApiGateway::RestApi").Properties.EndpointConfiguration, {
    Types: ["REGIONAL"],
  });
});

test("only the necessary endpoints exist", () => {
  const found = ofType(service, "AWS::EC2::VPCEndpoint").map(([, { Properties }]) => {
    const name = flat(Properties.ServiceName).replace(/^com\.amazonaws\.<AWS::Region>\./, "");
    return `${Properties.VpcEndpointType} ${name}`;
  });
  assert.deepEqual(found.toSorted(), [
    "Gateway dynamodb",
    "Gateway s3",
    "Interface ecr.api",
    "Interface ecr.dkr",
    "Interface logs",
    "Interface secretsmanager",
  ]);
});

test("a shell on the machines has its endpoints and permissions only where it is asked for", () => {
  assert.ok(!allowed("ServiceNodesRole").some((one) => one.startsWith("ssm")));
  const { app: opened, service: open } = example({ nodes: { sessionManager: true } });
  const names = ofType(open, "AWS::EC2::VPCEndpoint").map(([, { Properties }]) =>
    flat(Properties.ServiceName),
  );
  for (const name of [/\.ssm$/, /\.ssmmessages$/])
    assert.equal(names.filter((one) => name.test(one)).length, 1);
  const sessions = statements(open).filter(([, { Sid }]) => Sid === "OpenSessions");
  assert.deepEqual(
    sessions.map(([id, { Action }]) => [id.replace(/Default.*/, ""), list(Action).length]),
    [["ServiceNodesRole", 5]],
  );
  assert.deepEqual(new AwsSolutionsChecks(opened).validateScope(opened).violations, []);
});

test("no resource and no output contains a secret", () => {
  const secrets = /resolve:secretsmanager/;
  assert.doesNotMatch(JSON.stringify(service.toJSON()), secrets);
  const fleet = /^<ServiceSecretsFleet/;
  for (const id of ["ServiceIngestFunction", "ServiceQueryFunction"]) {
    const { Environment, KmsKeyArn } = named(service, "AWS::Lambda::Function", id).Properties;
    assert.match(flat(Environment.Variables.TIDEGRAPH_FLEET_SECRET), fleet);
    assert.ok(KmsKeyArn);
  }
  const [container] = only(service, "AWS::ECS::TaskDefinition").Properties.ContainerDefinitions;
  const command: string[] = container.Command.map(flat);
  assert.match(command[command.indexOf("--fleet-token-secret") + 1] ?? "", fleet);
});

test("Secrets Manager rotates the secret of the fleet each 30 days, and a deployment does not", () => {
  const { Properties, DependsOn = [] } = only(service, "AWS::SecretsManager::RotationSchedule");
  assert.match(flat(Properties.SecretId), /^<ServiceSecretsFleet/);
  assert.match(flat(Properties.RotationLambdaARN), /^<ServiceRotationFunction/);
  assert.deepEqual(Properties.RotationRules, { AutomaticallyAfterDays: 30 });
  assert.equal(Properties.RotateImmediatelyOnUpdate, false);
  const [permission] = ofType(service, "AWS::Lambda::Permission").filter(
    ([, { Properties }]) => Properties.Principal === "secretsmanager.amazonaws.com",
  );
  assert.ok(permission && DependsOn.includes(permission[0]), DependsOn.join());
  assert.deepEqual(permission[1].Properties.SourceAccount, { Ref: "AWS::AccountId" });
  const { service: without } = example({ secretRotation: false });
  without.resourceCountIs("AWS::SecretsManager::RotationSchedule", 0);
});

/** Returns cdk-nag's rules, ignoring explanations. */
function unexplained(): AwsSolutionsChecks {
  // The method is private in TypeScript; there is no other way to get all findings.
  return Object.assign(new AwsSolutionsChecks(app), { isAcknowledged: () => false });
}

/** Returns the explained rules, by the path of the construct that has the explanation. */
function explanations(root: IConstruct): [path: string, rule: string, reason: string][] {
  return root.node
    .findAll()
    .flatMap((construct) =>
      construct.node.metadata
        .filter((entry) => entry.type === Validations.ACKNOWLEDGED_RULES_METADATA_KEY)
        .flatMap((entry) =>
          Object.entries(entry.data as Record<string, string>).map(
            ([rule, reason]) =>
              [construct.node.path, rule.replace(/^annotation::/i, ""), String(reason)] as [
                string,
                string,
                string,
              ],
          ),
        ),
    );
}

test("every finding of AWS's rules is explained, and every explanation has a finding", () => {
  assert.deepEqual(new AwsSolutionsChecks(app).validateScope(app).violations, []);
  const found = unexplained()
    .validateScope(app)
    .violations.flatMap(({ ruleName, violatingResources }) =>
      violatingResources.map(({ constructPath }) => ({ rule: ruleName, path: constructPath ?? "" })),
    );
  assert.ok(found.length >= 15, `${found.length} findings: do the rules run?`);
  const explained = explanations(app).filter(([, rule]) => rule.startsWith("AwsSolutions-"));
  for (const [path, rule, reason] of explained) {
    assert.ok(reason.length > 40, `${path}: ${rule} has hardly a reason`);
    const isNeeded = found.some((finding) => finding.rule === rule && finding.path.startsWith(path));
    assert.ok(isNeeded, `${path}: ${rule} is explained, and nothing finds it`);
  }
});

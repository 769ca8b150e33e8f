/**
 * What an operator needs for the commands of docs/runbook.md, besides the partition map and the policy of
 * `tidegraph-doctor`: looking at logs, alarms, machines and executions, and starting by hand what starts by itself
 * otherwise. It has no way to the data of a graph, to a shell on a machine, or to the value of a secret.
 */
import { ArnFormat, Stack } from "aws-cdk-lib";
import type * as sfn from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { deliveredPrefix } from "../names.ts";
import type { Autoscaling } from "./autoscaling.ts";
import type { Backup } from "./backup.ts";
import type { Encryption } from "./encryption.ts";
import type { Allowed } from "./grants.ts";
import type { IGraphState } from "./graph-state.ts";
import type { Ingest } from "./ingest.ts";
import type { Rebalance } from "./rebalance.ts";
import type { Rotation } from "./rotation.ts";
import type { Secrets } from "./secrets.ts";
import type { StorageNodes } from "./storage-nodes.ts";
import type { Upgrade } from "./upgrade.ts";
import type { Workers } from "./workers.ts";

/** What an operator looks after. */
export interface OperatorProps {
  readonly state: IGraphState;
  readonly nodes: StorageNodes;
  readonly rebalance: Rebalance;
  readonly ingest: Ingest;
  readonly upgrade: Upgrade;
  readonly backup: Backup | undefined;
  readonly autoscaling: Autoscaling | undefined;
  readonly workers: Workers | undefined;
  readonly secrets: Secrets;
  readonly rotation: Rotation | undefined;
  readonly encryption: Encryption | undefined;
}

/** Descriptions that know no resources, or of things whose names are drawn when they are made. */
const LOOKS = [
  ...["autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities"],
  ...[
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetDashboard",
    "cloudwatch:GetMetricData",
    "cloudwatch:ListMetrics",
  ],
  ...["events:DescribeRule", "events:ListRules"],
  ...["lambda:GetAccountSettings", "lambda:ListFunctions"],
  ...["logs:DescribeLogGroups", "logs:GetQueryResults", "logs:StopQuery"],
  "states:ListStateMachines",
];

/** Returns the statements of an operator. */
export function operatorStatements(scope: Construct, props: OperatorProps): Allowed[] {
  return [
    { actions: LOOKS, resources: ["*"], wildcards: "Descriptions, of which most know no resources." },
    logs(scope, props),
    ...machines(scope, props),
    {
      actions: ["autoscaling:SetInstanceHealth"],
      resources: [props.nodes.groupArn],
      wildcards: "One group; the id in its ARN is drawn when it is made.",
    },
    ...objects(scope, props),
    ...ofWorkers(scope, props.workers),
    ...secrets(props),
  ];
}

function logs(scope: Construct, { state }: OperatorProps): Allowed {
  const prefixes = [
    state.logPrefix,
    ...(["states", "msk"] as const).map((one) => deliveredPrefix(state.name, one)),
  ];
  return {
    actions: ["logs:DescribeLogStreams", "logs:FilterLogEvents", "logs:GetLogEvents", "logs:StartQuery"],
    resources: prefixes.map((prefix) =>
      Stack.of(scope).formatArn({
        service: "logs",
        resource: "log-group",
        arnFormat: ArnFormat.COLON_RESOURCE_NAME,
        resourceName: `${prefix}*`,
      }),
    ),
    wildcards: "The log groups of the deployment, by the beginning of their names, with their streams.",
  };
}

/**
 * Executions of all machines may be looked at. Those that the runbook starts may be started and stopped.
 *
 * A managed policy has at most 6,144 characters. Naming each machine in four statements would exceed them.
 */
function machines(scope: Construct, props: OperatorProps): Allowed[] {
  const { rebalance, ingest, upgrade, backup, autoscaling, nodes } = props;
  const started = [rebalance.drain, ingest.settle, upgrade.machine, ...(backup ? [backup.machine] : [])];
  const others = [
    ...[rebalance.heal, rebalance.scaleOut, ingest.machine, nodes.join.stateMachine],
    ...(autoscaling ? [autoscaling.machine] : []),
  ];
  const arns = (of: readonly sfn.StateMachine[]): string[] =>
    of.map(({ stateMachineArn }) => stateMachineArn);
  const executions = (of: readonly sfn.StateMachine[]): string[] =>
    of.map((machine) => executionsOf(scope, machine));
  const list = "states:ListExecutions";
  const look = ["states:DescribeExecution", "states:GetExecutionHistory"];
  const wildcards = "Executions of machines of the deployment, whose names are made when they start.";
  return [
    { actions: ["states:StartExecution", list], resources: arns(started) },
    { actions: ["states:StopExecution", ...look], resources: executions(started), wildcards },
    {
      actions: [list, ...look],
      resources: others.map((machine) => withExecutions(scope, machine)),
      wildcards:
        "Machines of the deployment, whose names end with what CloudFormation draws, with their executions.",
    },
  ];
}

/** Returns one ARN pattern of a machine and its executions: `stateMachine:NAME` and `execution:NAME:…`. */
function withExecutions(scope: Construct, { stateMachineName }: sfn.StateMachine): string {
  return Stack.of(scope).formatArn({
    service: "states",
    resource: "*",
    arnFormat: ArnFormat.COLON_RESOURCE_NAME,
    resourceName: `${stateMachineName}*`,
  });
}

/** Returns the ARN pattern of a machine's executions. */
export function executionsOf(scope: Construct, { stateMachineName }: sfn.StateMachine): string {
  return Stack.of(scope).formatArn({
    service: "states",
    resource: "execution",
    arnFormat: ArnFormat.COLON_RESOURCE_NAME,
    resourceName: `${stateMachineName}:*`,
  });
}

/** Logs of machines that did not start, and the names of objects and their versions. */
function objects(scope: Construct, { state }: OperatorProps): Allowed[] {
  const { data } = state.buckets;
  const { region, urlSuffix } = Stack.of(scope);
  return [
    { actions: ["s3:ListBucket", "s3:ListBucketVersions"], resources: [data.bucketArn] },
    {
      actions: ["s3:GetObject"],
      resources: [data.arnForObjects("machines/*")],
      wildcards: "Logs of machines that did not start, by the ids that EC2 draws.",
    },
    {
      actions: ["kms:Decrypt"],
      resources: [state.key.keyArn],
      conditions: { StringEquals: { "kms:ViaService": `s3.${region}.${urlSuffix}` } },
    },
  ];
}

function ofWorkers(scope: Construct, workers: Workers | undefined): Allowed[] {
  if (workers === undefined) return [];
  const { clusterArn, clusterName } = workers.cluster;
  const tasks = Stack.of(scope).formatArn({
    service: "ecs",
    resource: "task",
    resourceName: `${clusterName}/*`,
  });
  return [
    { actions: ["ecs:DescribeServices"], resources: [workers.service.serviceArn] },
    {
      actions: ["ecs:ListTasks"],
      resources: ["*"],
      conditions: { ArnEquals: { "ecs:cluster": clusterArn } },
      wildcards: "Descriptions, of which most know no resources.",
    },
    {
      actions: ["ecs:DescribeTasks"],
      resources: [tasks],
      wildcards: "Tasks of the cluster of workers, whose ids ECS draws.",
    },
  ];
}

/** Rotating and issuing again, without a look at a value. */
function secrets({ secrets: { fleet }, rotation, encryption }: OperatorProps): Allowed[] {
  const called = [rotation?.function, encryption?.function].flatMap((one) => (one ? [one.functionArn] : []));
  return [
    ...(rotation ? [{ actions: ["secretsmanager:RotateSecret"], resources: [fleet.secretArn] }] : []),
    // Secrets Manager calls the function that rotates with the caller's permission.
    ...(called.length > 0 ? [{ actions: ["lambda:InvokeFunction"], resources: called }] : []),
    ...(encryption
      ? [
          {
            actions: ["secretsmanager:ListSecretVersionIds", "secretsmanager:UpdateSecretVersionStage"],
            resources: [encryption.authority.secretArn],
          },
        ]
      : []),
  ];
}

/**
 * Which processes of a fleet were started without certificates: what they were started with says it. A machine has the
 * user data of a version of the launch template, a worker the command of its task's definition, and the query function
 * the variables of its version. A process that was started with the secret of its certificates reads it before it
 * serves, and every five minutes.
 *
 * Nothing that processes report is used: one that was started without certificates is the one that reports nothing.
 */
import { type AutoScalingClient, DescribeAutoScalingGroupsCommand } from "@aws-sdk/client-auto-scaling";
import { DescribeLaunchTemplateVersionsCommand, type EC2Client } from "@aws-sdk/client-ec2";
import { DescribeServicesCommand, DescribeTaskDefinitionCommand, type ECSClient } from "@aws-sdk/client-ecs";
import { GetAliasCommand, GetFunctionConfigurationCommand, type LambdaClient } from "@aws-sdk/client-lambda";
import type { Kind } from "./certificates.ts";

/** Clients of what runs the processes. */
export interface ProcessClients {
  readonly asg: AutoScalingClient;
  readonly ec2: EC2Client;
  readonly ecs: ECSClient;
  readonly lambda: LambdaClient;
}

/** Where workers and the query function run. */
export interface Callers {
  /** The function that queries, and the alias that its callers have. */
  readonly function: string;
  readonly alias: string;
  /** The cluster and the service of workers, if there are any. */
  readonly cluster?: string;
  readonly service?: string;
}

/** Returns the ids of the group's machines that were started without the secret; none if there is no such group. */
export async function machinesWithout(
  { asg, ec2 }: Pick<ProcessClients, "asg" | "ec2">,
  group: string,
  secret: string,
): Promise<string[]> {
  const asked = new DescribeAutoScalingGroupsCommand({ AutoScalingGroupNames: [group] });
  const { AutoScalingGroups: [found] = [] } = await asg.send(asked);
  const byTemplate = new Map<string, string[]>();
  const without: string[] = [];
  for (const { InstanceId = "", LaunchTemplate } of found?.Instances ?? []) {
    const { LaunchTemplateId, Version } = LaunchTemplate ?? {};
    // The group does not say what it was started from, because that was deleted.
    if (LaunchTemplateId === undefined || Version === undefined) without.push(InstanceId);
    else {
      const key = `${LaunchTemplateId} ${Version}`;
      byTemplate.set(key, [...(byTemplate.get(key) ?? []), InstanceId]);
    }
  }
  for (const [key, ids] of byTemplate) {
    const [LaunchTemplateId, Version = ""] = key.split(" ");
    const versions = new DescribeLaunchTemplateVersionsCommand({ LaunchTemplateId, Versions: [Version] });
    const { LaunchTemplateVersions: [version] = [] } = await ec2.send(versions);
    const data = Buffer.from(version?.LaunchTemplateData?.UserData ?? "", "base64").toString("utf8");
    if (!data.includes(secret)) without.push(...ids);
  }
  return without;
}

/** Returns the definitions of running workers, and the versions of the query function, that lack their secret. */
export async function callersWithout(
  clients: Pick<ProcessClients, "ecs" | "lambda">,
  callers: Callers,
  secrets: Readonly<Record<Kind, string>>,
): Promise<string[]> {
  const workers = await workersWithout(clients.ecs, callers, secrets.workers);
  return [...workers, ...(await versionsWithout(clients.lambda, callers, secrets.functions))];
}

async function workersWithout(
  ecs: ECSClient,
  { cluster, service }: Callers,
  secret: string,
): Promise<string[]> {
  if (cluster === undefined || service === undefined) return [];
  const { services: [found] = [] } = await ecs.send(
    new DescribeServicesCommand({ cluster, services: [service] }),
  );
  // While workers are replaced, those of both definitions run.
  const definitions = new Set((found?.deployments ?? []).map(({ taskDefinition }) => taskDefinition ?? ""));
  const without: string[] = [];
  for (const taskDefinition of definitions) {
    const asked = new DescribeTaskDefinitionCommand({ taskDefinition });
    const { taskDefinition: task } = await ecs.send(asked);
    const commands = (task?.containerDefinitions ?? []).flatMap(({ command = [] }) => command);
    if (!commands.includes(secret)) without.push(taskDefinition);
  }
  return without;
}

async function versionsWithout(
  lambda: LambdaClient,
  { function: FunctionName, alias: Name }: Callers,
  secret: string,
): Promise<string[]> {
  const live = await lambda.send(new GetAliasCommand({ FunctionName, Name }));
  const weights = Object.keys(live.RoutingConfig?.AdditionalVersionWeights ?? {});
  const without: string[] = [];
  for (const Qualifier of [live.FunctionVersion ?? "", ...weights]) {
    const { Environment } = await lambda.send(
      new GetFunctionConfigurationCommand({ FunctionName, Qualifier }),
    );
    if (Environment?.Error) throw new Error(`${FunctionName}:${Qualifier}: ${Environment.Error.Message}`);
    if (Environment?.Variables?.TIDEGRAPH_TLS_SECRET !== secret) without.push(`${FunctionName}:${Qualifier}`);
  }
  return without;
}

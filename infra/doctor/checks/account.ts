/** Who asks, and what the account allows: identity, quotas, and the clock here. */
import { DescribeInstanceTypesCommand } from "@aws-sdk/client-ec2";
import { GetAccountSettingsCommand } from "@aws-sdk/client-lambda";
import { GetAWSDefaultServiceQuotaCommand, GetServiceQuotaCommand } from "@aws-sdk/client-service-quotas";
import { GetCallerIdentityCommand } from "@aws-sdk/client-sts";
import type { Context } from "../context.ts";
import { type Deployment, literal } from "../deployment.ts";
import {
  absent,
  CallFailed,
  type Check,
  type Finding,
  failed,
  ok,
  span,
  unknown,
  warning,
} from "../finding.ts";
import { groupOf, instanceTypes } from "./nodes.ts";

/** The quota of processors of On-Demand machines whose families begin with A, C, D, H, I, M, R, T or Z. */
const STANDARD_VCPUS = "L-1216C47A";
/** The quota of processors of On-Demand tasks on Fargate. */
const FARGATE_VCPUS = "L-3032A538";
/** The quota of functions at once. */
const FUNCTIONS = "L-B99A9384";
/** Functions that queries and moves should find beside a load. */
const BESIDE_LOADS = 50;
/** AWS refuses requests whose date differs by 5 minutes. */
const REFUSED_MS = 300_000;
const NOTICED_MS = 5_000;

const identity: Check = {
  id: "caller.identity",
  actions: ["sts:GetCallerIdentity"],
  async look({ clients, region }) {
    const { Arn = "?", Account = "?" } = await clients.sts.send(new GetCallerIdentityCommand({}));
    return ok(`${Arn}, account ${Account}, ${region}`);
  },
};

const clock: Check = {
  id: "clock.here",
  actions: ["sts:GetCallerIdentity"],
  async look({ clients }) {
    await clients.sts.send(new GetCallerIdentityCommand({}));
    return judged(clients.differences);
  },
};

/** Judges the clock here by the answer whose date is the surest. */
export function judged(differences: readonly { aheadMs: number; uncertainMs: number }[]): Finding {
  const [surest] = differences.toSorted((a, b) => a.uncertainMs - b.uncertainMs);
  if (surest === undefined) return unknown("no answer of AWS had a date");
  const { aheadMs, uncertainMs } = surest;
  const size = Math.max(0, Math.abs(aheadMs) - uncertainMs);
  const seen = `${span(Math.abs(aheadMs))} ${aheadMs < 0 ? "behind" : "ahead of"} AWS, give or take ${span(uncertainMs)}`;
  const rest = {
    wanted: `less than ${NOTICED_MS / 1000} s: AWS refuses signatures that are ${REFUSED_MS / 60_000} minutes off`,
    remedy: "synchronise the clock of this machine (chronyc makestep, or timedatectl set-ntp true)",
  };
  if (size >= REFUSED_MS) return failed(seen, rest);
  return size >= NOTICED_MS ? warning(seen, rest) : ok(seen);
}

/** The machine that resizes the fleet, and its largest number of nodes. */
const RESIZE = ["AutoscalingResizeStateMachine", /"most":(\d+)/] as const;
/** The machine that upgrades, and how many machines more the group has meanwhile. */
const UPGRADE = ["UpgradeStateMachine", /"As the deployment says":\{[^}]*"Result":(\d+)/] as const;

/** Returns a number in the definition of a state machine; 0 if there is no such machine. */
function numberIn({ deployment }: Context, [id, pattern]: readonly [string, RegExp]): number {
  const machine = deployment.one("AWS::StepFunctions::StateMachine", id);
  const [, found = "0"] = pattern.exec(literal(machine?.properties.DefinitionString)) ?? [];
  return Number(found);
}

const vcpus: Check = {
  id: "quota.vcpus",
  actions: [
    "autoscaling:DescribeAutoScalingGroups",
    "ec2:DescribeInstanceTypes",
    "servicequotas:GetServiceQuota",
    "servicequotas:GetAWSDefaultServiceQuota",
  ],
  async look(context) {
    const group = await groupOf(context);
    if (group === undefined) return absent("the deployment has no group of machines");
    const types = instanceTypes(context);
    if (types.length === 0) return unknown("the template names no instance type");
    const { InstanceTypes = [] } = await context.clients.ec2.send(
      new DescribeInstanceTypesCommand({ InstanceTypes: types as never[] }),
    );
    const each = Math.max(...InstanceTypes.map(({ VCpuInfo }) => VCpuInfo?.DefaultVCpus ?? 0));
    const quota = await quotaOf(context, "ec2", STANDARD_VCPUS);
    const { MinSize = 0, DesiredCapacity = 0 } = group;
    const largest =
      Math.max(MinSize, DesiredCapacity, numberIn(context, RESIZE)) + numberIn(context, UPGRADE);
    const seen = `${quota} processors for ${MinSize} to ${largest} machines with ${each} each (${types.join(", ")})`;
    const most = largest * each;
    const rest = {
      wanted: `at least ${most}: an upgrade and a replacement start machines before others end`,
      remedy: `aws service-quotas request-service-quota-increase --service-code ec2 --quota-code ${STANDARD_VCPUS} --desired-value ${most}`,
    };
    if (quota < (MinSize + 1) * each) return failed(seen, rest);
    return quota < most ? warning(seen, rest) : ok(seen);
  },
};

/** Returns the value of a quota of the account in the region. */
async function quotaOf({ clients }: Context, ServiceCode: string, QuotaCode: string): Promise<number> {
  const asked = { ServiceCode, QuotaCode };
  const { Quota } = await clients.quotas.send(new GetServiceQuotaCommand(asked)).catch((error: unknown) => {
    // A quota that was never changed.
    if (!(error instanceof CallFailed && error.isMissing)) throw error;
    return clients.quotas.send(new GetAWSDefaultServiceQuotaCommand(asked));
  });
  if (Quota?.Value === undefined) throw new Error(`AWS told no value of the quota ${QuotaCode}`);
  return Quota.Value;
}

/** Tasks of one definition on Fargate, with the processors of each. */
export interface Tasks {
  readonly each: number;
  /** Tasks that always run. */
  readonly least: number;
  /** Tasks that may run at the same time. */
  readonly most: number;
}

/** Returns the workers that the templates allow, or nothing if there are none. */
export function workersOf(deployment: Deployment): Tasks | undefined {
  const service = deployment.one("AWS::ECS::Service", "WorkersService")?.properties;
  if (service === undefined) return undefined;
  const scaled = deployment.one(
    "AWS::ApplicationAutoScaling::ScalableTarget",
    "WorkersServiceTaskCountTarget",
  );
  const { MinCapacity: least = service.DesiredCount, MaxCapacity: most = least } = scaled?.properties ?? {};
  // A deployment of ECS starts new workers before the old ones end.
  const percent = Number(service.DeploymentConfiguration.MaximumPercent);
  return {
    each: processorsOf(deployment, "WorkersTask"),
    least: Number(least),
    most: Math.floor((Number(most) * percent) / 100),
  };
}

/** Returns the backups that the templates allow, or nothing if there are none. */
export function backupsOf(deployment: Deployment): Tasks | undefined {
  const machine = deployment.one("AWS::StepFunctions::StateMachine", "BackupMachine");
  if (machine === undefined) return undefined;
  // The machine of one graph has one step.
  const [, atOnce = "1"] = /"MaxConcurrency":(\d+)/.exec(literal(machine.properties.DefinitionString)) ?? [];
  const most = Math.min(Number(atOnce), Math.max(1, deployment.graphs.length));
  return { each: processorsOf(deployment, "BackupTask"), least: 0, most };
}

/** Returns the processors of a task: 1,024 units are one. */
const processorsOf = (deployment: Deployment, task: string): number =>
  Number(deployment.one("AWS::ECS::TaskDefinition", task)?.properties.Cpu) / 1024;

const fargate: Check = {
  id: "quota.fargate",
  actions: ["servicequotas:GetServiceQuota", "servicequotas:GetAWSDefaultServiceQuota"],
  async look(context) {
    const [workers, backups] = [workersOf(context.deployment), backupsOf(context.deployment)];
    const all = [workers, backups].filter((one) => one !== undefined);
    if (all.length === 0) return absent("the deployment runs nothing on Fargate");
    const least = all.reduce((sum, tasks) => sum + tasks.least * tasks.each, 0);
    const most = all.reduce((sum, tasks) => sum + tasks.most * tasks.each, 0);
    const quota = await quotaOf(context, "fargate", FARGATE_VCPUS);
    const parts = [
      ...(workers ? [`${workers.least} to ${workers.most} workers with ${workers.each} each`] : []),
      ...(backups ? [`${backups.most} backups at once with ${backups.each} each`] : []),
    ];
    const seen = `${quota} processors on Fargate for ${parts.join(" and ")}`;
    const rest = {
      wanted: `at least ${most}: an upgrade starts workers before others end, and a backup may run meanwhile`,
      remedy: `aws service-quotas request-service-quota-increase --service-code fargate --quota-code ${FARGATE_VCPUS} --desired-value ${Math.ceil(most)}`,
    };
    const isTooSmall = [least, ...all.map(({ each }) => each)].some((one) => quota < one);
    if (isTooSmall) return failed(seen, rest);
    return quota < most ? warning(seen, rest) : ok(seen);
  },
};

const functions: Check = {
  id: "quota.functions",
  actions: ["lambda:GetAccountSettings"],
  async look({ clients, deployment }) {
    if (deployment.one("AWS::Lambda::Function", "QueryFunction") === undefined)
      return absent("the deployment has no functions");
    const { AccountLimit } = await clients.lambda.send(new GetAccountSettingsCommand({}));
    const { ConcurrentExecutions: all = 0, UnreservedConcurrentExecutions: free = all } = AccountLimit ?? {};
    const machine = deployment.one("AWS::StepFunctions::StateMachine", "IngestMachineStateMachine");
    const [, atOnce = "0"] =
      /"MaxConcurrency":(\d+)/.exec(literal(machine?.properties.DefinitionString)) ?? [];
    // Where places are reserved for loads, they need no others.
    const load = deployment.one("AWS::Lambda::Function", "IngestFunction")?.properties;
    const tasks = load?.ReservedConcurrentExecutions === undefined ? Number(atOnce) : 0;
    const reserved = deployment
      .all("AWS::Lambda::Function")
      .reduce((sum, { properties }) => sum + Number(properties.ReservedConcurrentExecutions ?? 0), 0);
    const seen = `${all} functions at once in the account, ${free} of them not reserved; a load takes ${tasks} of these, ${reserved} are reserved here`;
    const rest = {
      wanted: `at least ${tasks + BESIDE_LOADS} that are not reserved`,
      remedy: `aws service-quotas request-service-quota-increase --service-code lambda --quota-code ${FUNCTIONS} --desired-value 1000, or set ingest.concurrency lower`,
    };
    if (free < tasks) return failed(seen, rest);
    return free < tasks + BESIDE_LOADS ? warning(seen, rest) : ok(seen);
  },
};

export const ACCOUNT: readonly Check[] = [identity, clock, vcpus, fargate, functions];

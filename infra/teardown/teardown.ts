/**
 * Empties the Auto Scaling group of the storage nodes before CloudFormation deletes it, and answers CloudFormation: the
 * logic of the custom resource `Teardown`.
 *
 * CloudFormation deletes a group by setting its size to zero, and waits for its machines. Ours are protected from
 * scale-in, so it would wait an hour and fail; a machine that meets the terminate hook would wait two hours for a drain
 * that can never end, because all other nodes leave as well. So, until the group is empty, each round
 *
 * 1. suspends everything that starts or replaces machines,
 * 2. sets the size to zero and turns the protection of new machines off,
 * 3. deletes the lifecycle hooks, which completes the actions that wait at them,
 * 4. clears the protection of the machines that are there.
 *
 * If the group is not empty some minutes before the time of the function ends, it is deleted by force, and the function
 * waits until it is gone: CloudFormation cannot change a group whose deletion is under way. Rounds can be repeated, so a
 * removal that failed can be tried again.
 */
import {
  type AutoScalingClient,
  type AutoScalingGroup,
  DeleteAutoScalingGroupCommand,
  DeleteLifecycleHookCommand,
  DescribeAutoScalingGroupsCommand,
  DescribeLifecycleHooksCommand,
  SetInstanceProtectionCommand,
  SuspendProcessesCommand,
  UpdateAutoScalingGroupCommand,
} from "@aws-sdk/client-auto-scaling";
import { answer, type Request } from "./answer.ts";

/** What CloudFormation sends. The physical id is the name of the group. */
export interface Event extends Request {
  readonly ResourceProperties: { readonly GroupName: string };
}

/** Access to Auto Scaling, and the limits of the function's time. */
export interface Surroundings {
  readonly client: AutoScalingClient;
  /** Returns the milliseconds that the function may still run. */
  readonly timeLeftMs: () => number;
  /** The pause between two rounds. */
  readonly pauseMs: number;
}

/** How a removal ended: there was no group, its machines are gone, or it was deleted by force. */
export type Outcome = "absent" | "empty" | "forced";

/** The time for a deletion by force: Auto Scaling ends the machines first. */
const RESERVE_MS = 300_000;
/** The time that answering needs. */
const ANSWER_MS = 20_000;
/** Auto Scaling's limit of instances in one request. */
const BATCH = 50;
/** Every process but `Terminate`. */
const STARTS = [
  "Launch",
  "AddToLoadBalancer",
  "AlarmNotification",
  "AZRebalance",
  "HealthCheck",
  "InstanceRefresh",
  "ReplaceUnhealthy",
  "ScheduledActions",
];
/** Errors after which the next round tries again: an activity is under way, or a machine left in the meantime. */
const PASSES = /^(ScalingActivityInProgress|ResourceContention|ValidationError)/;

/** Handles one request of CloudFormation: only `Delete` does something. Answers it whatever happens. */
export async function handle(event: Event, surroundings: Surroundings): Promise<void> {
  const group = event.RequestType === "Delete" ? event.PhysicalResourceId : undefined;
  let failure: string | undefined;
  try {
    if (group !== undefined) say({ group, outcome: await empty(group, surroundings) });
  } catch (error) {
    failure = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    say({ group, failure });
  }
  const { PhysicalResourceId, ResourceProperties } = event;
  const id = event.RequestType === "Delete" ? PhysicalResourceId : ResourceProperties.GroupName;
  await answer(event, id ?? ResourceProperties.GroupName, failure);
}

/** Empties a group, or deletes it by force when the time is nearly over. */
export async function empty(group: string, { client, timeLeftMs, pauseMs }: Surroundings): Promise<Outcome> {
  for (let rounds = 0; ; rounds += 1) {
    const found = await describe(client, group);
    if (found === undefined) return rounds === 0 ? "absent" : "empty";
    const machines = found.Instances ?? [];
    say({ group, rounds, machines: machines.map((one) => `${one.InstanceId} ${one.LifecycleState}`) });
    // At least one round, after which an empty group starts no machine.
    if (rounds > 0 && machines.length === 0) return "empty";
    if (timeLeftMs() < RESERVE_MS + pauseMs) {
      await client.send(
        new DeleteAutoScalingGroupCommand({ AutoScalingGroupName: group, ForceDelete: true }),
      );
      await waitUntilGone(group, { client, timeLeftMs, pauseMs });
      return "forced";
    }
    try {
      await round(client, found, group);
    } catch (error) {
      if (!(error instanceof Error && PASSES.test(error.name))) throw error;
      say({ group, rounds, passes: `${error.name}: ${error.message}` });
    }
    await new Promise((done) => setTimeout(done, pauseMs));
  }
}

/** Waits until a group whose deletion is under way is gone, and fails if the time is over before. */
async function waitUntilGone(group: string, { client, timeLeftMs, pauseMs }: Surroundings): Promise<void> {
  for (;;) {
    const found = await describe(client, group);
    if (found === undefined) return;
    say({ group, status: found.Status, machines: found.Instances?.length ?? 0 });
    if (timeLeftMs() < ANSWER_MS + pauseMs)
      throw new Error(
        `the deletion of the group ${group} is still under way: delete the stack again in some minutes`,
      );
    await new Promise((done) => setTimeout(done, pauseMs));
  }
}

async function describe(client: AutoScalingClient, group: string): Promise<AutoScalingGroup | undefined> {
  const asked = new DescribeAutoScalingGroupsCommand({ AutoScalingGroupNames: [group] });
  return (await client.send(asked)).AutoScalingGroups?.[0];
}

async function round(client: AutoScalingClient, found: AutoScalingGroup, group: string): Promise<void> {
  const AutoScalingGroupName = group;
  await client.send(new SuspendProcessesCommand({ AutoScalingGroupName, ScalingProcesses: STARTS }));
  const none = { MinSize: 0, DesiredCapacity: 0, NewInstancesProtectedFromScaleIn: false };
  await client.send(new UpdateAutoScalingGroupCommand({ AutoScalingGroupName, ...none }));
  const hooks = await client.send(new DescribeLifecycleHooksCommand({ AutoScalingGroupName }));
  for (const { LifecycleHookName } of hooks.LifecycleHooks ?? []) {
    await client.send(new DeleteLifecycleHookCommand({ AutoScalingGroupName, LifecycleHookName }));
  }
  const held = (found.Instances ?? []).flatMap(({ InstanceId, ProtectedFromScaleIn }) =>
    InstanceId !== undefined && ProtectedFromScaleIn ? [InstanceId] : [],
  );
  for (let at = 0; at < held.length; at += BATCH) {
    const InstanceIds = held.slice(at, at + BATCH);
    const open = { AutoScalingGroupName, InstanceIds, ProtectedFromScaleIn: false };
    await client.send(new SetInstanceProtectionCommand(open));
  }
  if (held.length === 0) return;
  // Scaling in while machines were protected has been cancelled, so it is asked for again.
  await client.send(new UpdateAutoScalingGroupCommand({ AutoScalingGroupName, ...none }));
}

function say(what: Record<string, unknown>): void {
  console.log(JSON.stringify(what));
}

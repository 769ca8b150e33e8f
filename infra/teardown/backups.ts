/**
 * Stops the backups that run before CloudFormation deletes what they run in, and answers CloudFormation: the logic of the
 * custom resource `BackupTeardown`.
 *
 * CloudFormation cannot delete a cluster with a task, nor a security group with a task's network interface. A backup may
 * take hours, and the deletion of its state machine does not end it. So each round stops the executions of the machine,
 * which would start another task in the place of a stopped one, and then every task of the cluster, until nothing is left.
 * A backup that is stopped is not listed, and the next deployment's first one is whole.
 */
import {
  DescribeTasksCommand,
  type ECSClient,
  paginateListTasks,
  StopTaskCommand,
} from "@aws-sdk/client-ecs";
import { paginateListExecutions, type SFNClient, StopExecutionCommand } from "@aws-sdk/client-sfn";
import { answer, type Request } from "./answer.ts";

/** What CloudFormation sends. */
export interface Event extends Request {
  readonly ResourceProperties: { readonly Machine: string; readonly Cluster: string };
}

/** Access to both services, and the limits of the function's time. */
export interface Surroundings {
  readonly sfn: SFNClient;
  readonly ecs: ECSClient;
  /** Returns the milliseconds that the function may still run. */
  readonly timeLeftMs: () => number;
  /** The pause between two rounds. */
  readonly pauseMs: number;
}

/** The machine that backs up, and the cluster in which its tasks run: their ARNs. */
interface Place {
  readonly machine: string;
  readonly cluster: string;
}

/** The time that answering needs. */
const ANSWER_MS = 20_000;
/** ECS's limit of tasks in one description. */
const BATCH = 100;
/** Rounds without anything to stop: an execution that is stopped may have asked for a task that is not listed yet. */
const QUIET = 2;
/** What executions and tasks say of their end. */
const REASON = "the stack no longer has backups";
/** What is gone already. ECS says of a task that it does not know that the parameter is invalid. */
const GONE = /^(StateMachineDoesNotExist|ExecutionDoesNotExist|ClusterNotFound|InvalidParameter)/;

/** Handles one request of CloudFormation: only `Delete` does something. Answers it whatever happens. */
export async function handle(event: Event, surroundings: Surroundings): Promise<void> {
  const { Machine, Cluster } = event.ResourceProperties;
  // A resource that is replaced is deleted by its id, when its properties may be those of the next one.
  const here = `${Machine}|${Cluster}`;
  const id = event.RequestType === "Delete" ? (event.PhysicalResourceId ?? here) : here;
  let failure: string | undefined;
  try {
    if (event.RequestType === "Delete") await stop(place(id), surroundings);
  } catch (error) {
    failure = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    say({ failure });
  }
  await answer(event, id, failure);
}

/** Returns what an id names; a resource whose creation failed has an id of CloudFormation's, which names nothing. */
function place(id: string): Place | undefined {
  const [machine, cluster] = id.split("|");
  return machine && cluster ? { machine, cluster } : undefined;
}

/** Stops all executions and tasks, and waits until none is left. */
async function stop(at: Place | undefined, surroundings: Surroundings): Promise<void> {
  if (at === undefined) return;
  const { timeLeftMs, pauseMs } = surroundings;
  for (let quiet = 0; ; ) {
    const executions = await stopExecutions(at, surroundings);
    const tasks = await stopTasks(at, surroundings);
    say({ ...at, executions, tasks });
    quiet = executions.length + tasks.length === 0 ? quiet + 1 : 0;
    if (quiet === QUIET) return;
    if (timeLeftMs() < ANSWER_MS + pauseMs)
      throw new Error(`backups of ${at.cluster} still run: delete the stack again in some minutes`);
    await new Promise((done) => setTimeout(done, pauseMs));
  }
}

/** Stops the executions that run, and returns their ARNs. */
async function stopExecutions({ machine }: Place, { sfn }: Surroundings): Promise<string[]> {
  const found: string[] = [];
  await unlessGone(async () => {
    const asked = { stateMachineArn: machine, statusFilter: "RUNNING" } as const;
    for await (const { executions } of paginateListExecutions({ client: sfn }, asked))
      for (const { executionArn } of executions ?? []) if (executionArn) found.push(executionArn);
  });
  for (const executionArn of found)
    await unlessGone(() => sfn.send(new StopExecutionCommand({ executionArn, cause: REASON })));
  return found;
}

/** Stops the tasks of the cluster, and returns those that have not ended: a task that ECS ends has its interface still. */
async function stopTasks({ cluster }: Place, { ecs }: Surroundings): Promise<string[]> {
  const listed: string[] = [];
  await unlessGone(async () => {
    for (const desiredStatus of ["RUNNING", "STOPPED"] as const)
      for await (const { taskArns } of paginateListTasks({ client: ecs }, { cluster, desiredStatus }))
        listed.push(...(taskArns ?? []));
  });
  const left: string[] = [];
  for (let at = 0; at < listed.length; at += BATCH) {
    const described = await ecs.send(
      new DescribeTasksCommand({ cluster, tasks: listed.slice(at, at + BATCH) }),
    );
    for (const { taskArn, desiredStatus, lastStatus } of described.tasks ?? []) {
      if (taskArn === undefined || lastStatus === "STOPPED") continue;
      left.push(taskArn);
      if (desiredStatus === "STOPPED") continue;
      await unlessGone(() => ecs.send(new StopTaskCommand({ cluster, task: taskArn, reason: REASON })));
    }
  }
  return left;
}

/** Does what may name something that has gone meanwhile. */
async function unlessGone(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Error && GONE.test(error.name))) throw error;
    say({ gone: `${error.name}: ${error.message}` });
  }
}

function say(what: Record<string, unknown>): void {
  console.log(JSON.stringify(what));
}

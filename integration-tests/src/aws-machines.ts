/** State machines of a deployment, and their executions. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, deployed } from "./aws.ts";

/** Time limit of an execution, on a busy machine. */
export const EXECUTION_MS = 300_000;

/** An execution of a state machine. */
export interface Execution {
  readonly executionArn: string;
  readonly name: string;
  readonly status: string;
}

/** Calls Step Functions and returns its answer. */
async function states<Said>(action: string, body: object): Promise<Said> {
  const answer = await ask("states", `AWSStepFunctions.${action}`, body);
  assert.equal(answer.status, 200, answer.body);
  return JSON.parse(answer.body) as Said;
}

function arnOf(machine: string): string {
  const arn = deployed().machines[machine];
  assert.ok(arn, `there is no state machine ${machine}`);
  return arn;
}

/** Returns the executions of a state machine, including finished ones. */
export async function executions(machine: string): Promise<readonly Execution[]> {
  const body = { stateMachineArn: arnOf(machine) };
  return (await states<{ executions: Execution[] }>("ListExecutions", body)).executions;
}

/**
 * Returns the executions that a Distributed Map of an execution has started: one for each of its items, once it has begun.
 */
export async function childrenOf(executionArn: string): Promise<readonly Execution[]> {
  const { mapRuns } = await states<{ mapRuns: { mapRunArn: string }[] }>("ListMapRuns", { executionArn });
  const lists = mapRuns.map(({ mapRunArn }) =>
    states<{ executions: Execution[] }>("ListExecutions", { mapRunArn }),
  );
  return (await Promise.all(lists)).flatMap((list) => list.executions);
}

/** How an execution ended. */
export interface Outcome {
  readonly status: string;
  readonly error?: string;
  readonly cause?: string;
  /** JSON, of an execution that succeeded. */
  readonly output?: string;
}

/** Waits for the end of an execution. */
async function ended(executionArn: string): Promise<Outcome> {
  for (const end = performance.now() + EXECUTION_MS; ; await sleep(1000)) {
    const told = await states<Outcome>("DescribeExecution", { executionArn });
    if (told.status !== "RUNNING") return told;
    assert.ok(performance.now() < end, JSON.stringify(told));
  }
}

/** Waits for the end of an execution, which must succeed. */
export async function succeeded(executionArn: string): Promise<void> {
  const told = await ended(executionArn);
  assert.equal(told.status, "SUCCEEDED", JSON.stringify(told));
}

/** Returns the input of an execution. LocalStack lists one that a map starts before it has its input. */
export async function inputOf(executionArn: string): Promise<object | undefined> {
  const { input } = await states<{ input?: string }>("DescribeExecution", { executionArn });
  return input === undefined ? undefined : JSON.parse(input);
}

async function start(machine: string, input: object): Promise<string> {
  const body = { stateMachineArn: arnOf(machine), input: JSON.stringify(input) };
  return (await states<{ executionArn: string }>("StartExecution", body)).executionArn;
}

/** Starts a state machine, and returns how its execution ended. */
export const outcome = async (machine: string, input: object): Promise<Outcome> =>
  ended(await start(machine, input));

/** Starts a state machine, and waits for its end, which must be a success. */
export const execute = async (machine: string, input: object): Promise<void> =>
  succeeded(await start(machine, input));

/** The parts of an event in an execution's history that the tests use. */
interface HistoryEvent {
  readonly id: number;
  readonly previousEventId: number;
  readonly stateEnteredEventDetails?: { readonly name: string };
  readonly taskScheduledEventDetails?: { readonly parameters: string };
  readonly stateExitedEventDetails?: { readonly name: string; readonly output: string };
}

/** The history of an execution: the states that it went through. */
export class History {
  readonly #events: readonly HistoryEvent[];

  private constructor(events: readonly HistoryEvent[]) {
    this.#events = events;
  }

  /** Fetches the history so far. LocalStack returns all of it in one page. */
  static async of(executionArn: string): Promise<History> {
    const { events } = await states<{ events: HistoryEvent[] }>("GetExecutionHistory", { executionArn });
    return new History(events);
  }

  /** Returns the output of a state, once for each time that it was left. */
  left<Output>(state: string): Output[] {
    return this.#events.flatMap(({ stateExitedEventDetails: details }) =>
      details?.name === state ? [JSON.parse(details.output) as Output] : [],
    );
  }

  /** Returns the input of a task, once for each time that it was entered. */
  given(state: string): unknown[] {
    const entered = new Set(
      this.#events
        .filter(({ stateEnteredEventDetails: details }) => details?.name === state)
        .map(({ id }) => id),
    );
    return this.#events.flatMap(({ previousEventId, taskScheduledEventDetails: details }) =>
      details && entered.has(previousEventId) ? [JSON.parse(details.parameters)] : [],
    );
  }
}

/** Returns the status of an execution. */
export async function statusOfExecution(executionArn: string): Promise<string> {
  return (await states<{ status: string }>("DescribeExecution", { executionArn })).status;
}

/** Stops an execution, as a person would by hand. */
export async function stop(executionArn: string, cause: string): Promise<void> {
  await states("StopExecution", { executionArn, cause });
}

/**
 * Sends events to EventBridge's default bus in the name of an AWS service. AWS itself does not allow that; LocalStack
 * does, and lacks some of the services that would send them.
 */
export async function send(source: string, detailType: string, details: readonly object[]): Promise<void> {
  const Entries = details.map((detail) => ({
    Source: source,
    DetailType: detailType,
    Detail: JSON.stringify(detail),
  }));
  const answer = await ask("events", "AWSEvents.PutEvents", { Entries });
  assert.equal(answer.status, 200, answer.body);
  assert.equal(JSON.parse(answer.body).FailedEntryCount, 0, answer.body);
}

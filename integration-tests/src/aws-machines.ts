/** State machines of a deployment, and their executions. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, deployed } from "./aws.ts";

/** The longest that an execution may take, on a busy machine. */
export const EXECUTION_MS = 300_000;

/** An execution of a state machine. */
export interface Execution {
  readonly executionArn: string;
  readonly name: string;
  readonly status: string;
}

/** Asks Step Functions; answers what it says. */
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

/** Executions of a state machine, those that are over too. */
export async function executions(machine: string): Promise<readonly Execution[]> {
  const body = { stateMachineArn: arnOf(machine) };
  return (await states<{ executions: Execution[] }>("ListExecutions", body)).executions;
}

/** Waits for the end of an execution, which has to be a good one. */
export async function succeeded(executionArn: string): Promise<void> {
  for (const end = performance.now() + EXECUTION_MS; ; await sleep(1000)) {
    const told = await states<{ status: string }>("DescribeExecution", { executionArn });
    if (told.status === "SUCCEEDED") return;
    assert.ok(told.status === "RUNNING" && performance.now() < end, JSON.stringify(told));
  }
}

/** What an execution was started with. */
export async function inputOf(executionArn: string): Promise<unknown> {
  return JSON.parse((await states<{ input: string }>("DescribeExecution", { executionArn })).input);
}

/** Starts a state machine, and waits for its end. */
export async function execute(machine: string, input: object): Promise<void> {
  const body = { stateMachineArn: arnOf(machine), input: JSON.stringify(input) };
  await succeeded((await states<{ executionArn: string }>("StartExecution", body)).executionArn);
}

/** What the history of an execution says, of what we look at. */
interface HistoryEvent {
  readonly id: number;
  readonly previousEventId: number;
  readonly stateEnteredEventDetails?: { readonly name: string };
  readonly taskScheduledEventDetails?: { readonly parameters: string };
  readonly stateExitedEventDetails?: { readonly name: string; readonly output: string };
}

/** States that an execution went through. */
export class History {
  readonly #events: readonly HistoryEvent[];

  private constructor(events: readonly HistoryEvent[]) {
    this.#events = events;
  }

  /** As far as it got. LocalStack tells all of it at once. */
  static async of(executionArn: string): Promise<History> {
    const { events } = await states<{ events: HistoryEvent[] }>("GetExecutionHistory", { executionArn });
    return new History(events);
  }

  /** What a state put out, each time that it was left. */
  left<Output>(state: string): Output[] {
    return this.#events.flatMap(({ stateExitedEventDetails: details }) =>
      details?.name === state ? [JSON.parse(details.output) as Output] : [],
    );
  }

  /** What a task was given, each time that it was entered. */
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

/** The status of an execution. */
export async function statusOfExecution(executionArn: string): Promise<string> {
  return (await states<{ status: string }>("DescribeExecution", { executionArn })).status;
}

/** Stops an execution, as somebody does by hand. */
export async function stop(executionArn: string, cause: string): Promise<void> {
  await states("StopExecution", { executionArn, cause });
}

/**
 * Sends events to EventBridge's default bus in the name of a service of AWS. AWS itself lets nobody do that; LocalStack does, and has not all the services that would.
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

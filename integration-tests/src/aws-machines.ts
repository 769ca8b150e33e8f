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

/** Stops an execution, as somebody does by hand. */
export async function stop(executionArn: string, cause: string): Promise<void> {
  await states("StopExecution", { executionArn, cause });
}

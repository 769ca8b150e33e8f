/**
 * Runs definitions of state machines in LocalStack's Step Functions with given answers of what they call
 * (`SFN_MOCK_CONFIG`): the states, choices, retries, catches and paths between them are executed as they are. Only waits
 * are shorter: a second each.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ACCOUNT, type LocalStack, REGION } from "../../scripts/lib/localstack.mjs";
import type { Definition } from "../draw/draw.ts";
import { states } from "../test/definitions.ts";

/** Time limit of an execution, on a busy machine. */
const WITHIN_MS = 300_000;

/** An answer to one call of a task, or an error. */
export type Reply =
  | { readonly Return: unknown }
  | { readonly Throw: { readonly Error: string; readonly Cause: string } };

export const answer = (value: unknown): Reply => ({ Return: value });
export const error = (name: string, Cause: string): Reply => ({ Throw: { Error: name, Cause } });

/** A case: what the tasks answer, one reply for each call; the last reply is repeated. */
export type Case = Readonly<Record<string, readonly Reply[]>>;

/** A machine, its cases by name, and the names of the tasks that invoke our function. */
export interface Mocked {
  readonly machine: string;
  readonly cases: Readonly<Record<string, Case>>;
  readonly ofFunction: readonly string[];
}

/** What an execution did. */
export interface Run {
  readonly status: string;
  readonly error?: string;
  readonly cause?: string;
  /** The states that it entered. */
  readonly states: string[];
  /** Their inputs. */
  readonly inputs: string[];
  /** What services answered, as text. */
  readonly answers: string[];
  /** What services were asked, as text. */
  readonly asked: string[];
}

/** Wraps what the function answers, as Lambda does. */
function asLambda(reply: Reply): Reply {
  return "Return" in reply ? { Return: { StatusCode: 200, Payload: reply.Return } } : reply;
}

/** Returns LocalStack's file of replies. */
export function replies(machines: readonly Mocked[]): unknown {
  const responses: Record<string, Record<string, Reply>> = {};
  const all: Record<string, unknown> = {};
  for (const { machine, cases, ofFunction } of machines) {
    const testCases: Record<string, Record<string, string>> = {};
    for (const [name, tasks] of Object.entries(cases)) {
      const ids: Record<string, string> = {};
      testCases[name] = ids;
      for (const [task, list] of Object.entries(tasks)) {
        const id = `${machine}: ${name}: ${task}`;
        ids[task] = id;
        const said = list.map((reply) => (ofFunction.includes(task) ? asLambda(reply) : reply));
        responses[id] = Object.fromEntries(
          said.map((reply, at) => [at === list.length - 1 ? `${at}-${at + 99}` : String(at), reply]),
        );
      }
    }
    all[machine] = { TestCases: testCases };
  }
  return { StateMachines: all, MockedResponses: responses };
}

/** Returns a definition, given as text, with ARNs of LocalStack and waits of a second, also in its Maps. */
export function local(definition: string): Definition {
  const text = definition
    .replaceAll("<AWS::Partition>", "aws")
    .replaceAll("<AWS::Region>", REGION)
    .replaceAll("<AWS::AccountId>", ACCOUNT)
    .replaceAll(/<ServiceRebalanceFunction[^>]*>/g, `arn:aws:lambda:${REGION}:${ACCOUNT}:function:steps`)
    .replaceAll(/<ServiceRebalance[^>]*>/g, `arn:aws:states:${REGION}:${ACCOUNT}:stateMachine:other`)
    .replaceAll(/<[A-Za-z0-9][^>"]*>/g, "x");
  const parsed: Definition = JSON.parse(text);
  for (const [, state] of states(parsed)) {
    if (state.Type === "Wait") Object.assign(state, { Seconds: 1, SecondsPath: undefined });
  }
  return parsed;
}

/** Runs a case of a machine to its end. */
export async function runCase(
  stack: LocalStack,
  machineArn: string,
  name: string,
  input: unknown,
): Promise<Run> {
  const start = [
    "--state-machine-arn",
    `${machineArn}#${name}`,
    "--input",
    JSON.stringify(input),
    "--name",
    name,
  ];
  const { executionArn } = await stack.aws(["stepfunctions", "start-execution", ...start]);
  const arn = ["--execution-arn", executionArn];
  for (const end = Date.now() + WITHIN_MS; ; await sleep(500)) {
    const { status, error, cause } = await stack.aws(["stepfunctions", "describe-execution", ...arn]);
    if (status === "RUNNING" && Date.now() < end) continue;
    const { events } = await stack.aws(["stepfunctions", "get-execution-history", ...arn]);
    const all: {
      stateEnteredEventDetails?: { name: string; input: string };
      taskSucceededEventDetails?: { output: string };
      taskScheduledEventDetails?: { parameters: string };
      lambdaFunctionScheduledEventDetails?: { input: string };
    }[] = events;
    const entered = all.flatMap(({ stateEnteredEventDetails: one }) => (one ? [one] : []));
    return {
      ...{ status, error, cause },
      states: entered.map((state) => state.name),
      inputs: entered.map(({ input }) => input),
      answers: all.flatMap(({ taskSucceededEventDetails: task }) => (task ? [task.output] : [])),
      asked: all.flatMap(
        ({ taskScheduledEventDetails: task, lambdaFunctionScheduledEventDetails: lambda }) => [
          ...(task ? [task.parameters] : []),
          ...(lambda ? [lambda.input] : []),
        ],
      ),
    };
  }
}

/** A state that invokes a function of the fleet. */
import { Duration } from "aws-cdk-lib";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { retry } from "./retry.ts";

/** What is invoked, with what. */
interface Invocation {
  readonly function: IFunction;
  readonly comment: string;
  readonly payload: Record<string, unknown>;
  /** Where the answer goes in the state's output. */
  readonly resultPath: string;
}

/** Returns the state. Transient errors are retried. */
export function invocation(scope: Construct, id: string, of: Invocation): tasks.LambdaInvoke {
  const task = new tasks.LambdaInvoke(scope, id, {
    comment: of.comment,
    lambdaFunction: of.function,
    payload: sfn.TaskInput.fromObject(of.payload),
    payloadResponseOnly: true,
    resultPath: of.resultPath,
    retryOnServiceExceptions: false,
    taskTimeout: sfn.Timeout.duration(Duration.minutes(2)),
  });
  retry(task);
  return task;
}

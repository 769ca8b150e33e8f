/**
 * Looks once a minute whether replicas have to move, and starts the machine that does it. An execution is named by what is needed, the epoch of the map
 * and the time in steps of ten minutes, so that one that runs, or has just failed, is not started again each minute.
 */
import { Duration } from "aws-cdk-lib";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";

/** What it needs. */
export interface DetectProps {
  readonly function: lambda.IFunction;
  readonly heal: sfn.IStateMachine;
  readonly scaleOut: sfn.IStateMachine;
  readonly drain: sfn.IStateMachine;
  /** How long a lost node may take to come back. */
  readonly patience: Duration;
}

export function detect(scope: Construct, props: DetectProps): sfn.IChainable {
  const look = new tasks.LambdaInvoke(scope, "Look", {
    comment: "Takes nodes for lost that give no sign of life, and says what is needed",
    lambdaFunction: props.function,
    payload: sfn.TaskInput.fromObject({ step: "detect" }),
    payloadResponseOnly: true,
    retryOnServiceExceptions: false,
    taskTimeout: sfn.Timeout.duration(Duration.minutes(2)),
  });
  // Otherwise it comes again in a minute.
  look.addRetry({ errors: ["States.ALL"], maxAttempts: 1, interval: Duration.seconds(5) });
  const nothing = new sfn.Succeed(scope, "Nothing to do");
  const start = (id: string, machine: sfn.IStateMachine, input: Record<string, unknown>): sfn.IChainable => {
    const task = new tasks.StepFunctionsStartExecution(scope, id, {
      stateMachine: machine,
      name: sfn.JsonPath.stringAt("$.name"),
      input: sfn.TaskInput.fromObject(input),
      taskTimeout: sfn.Timeout.duration(Duration.minutes(1)),
    });
    task.addRetry({
      errors: ["StepFunctions.SdkClientException", "StepFunctions.ThrottlingException"],
      maxAttempts: 3,
      interval: Duration.seconds(2),
    });
    // It runs, or ended without having changed anything.
    task.addCatch(nothing, {
      errors: ["StepFunctions.ExecutionAlreadyExistsException"],
      resultPath: sfn.JsonPath.DISCARD,
    });
    return task.next(new sfn.Succeed(scope, `${id}: done`));
  };
  const needs = (what: string): sfn.Condition => sfn.Condition.stringEquals("$.needed", what);
  const choice = new sfn.Choice(scope, "What is needed?")
    .when(needs("heal"), start("Heal", props.heal, { patienceSeconds: props.patience.toSeconds() }))
    .when(needs("drain"), start("Drain", props.drain, { node: sfn.JsonPath.stringAt("$.node") }))
    .when(needs("scale-out"), start("Scale out", props.scaleOut, {}))
    .otherwise(nothing);
  return look.next(choice);
}

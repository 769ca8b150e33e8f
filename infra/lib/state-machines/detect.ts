/**
 * Checks once a minute whether replicas have to move, and starts the machine that moves them. The name of an execution
 * consists of the required action, the epoch of the map, and the time in steps of ten minutes. So a machine that is
 * running, or has just failed, is not started again every minute. With several graphs, one look is at all of them, and each
 * may need a machine.
 */
import { Duration } from "aws-cdk-lib";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";

/** Settings of the machine. */
export interface DetectProps {
  readonly function: lambda.IFunction;
  readonly heal: sfn.IStateMachine;
  readonly scaleOut: sfn.IStateMachine;
  readonly drain: sfn.IStateMachine;
  /** How long a lost node has to come back. */
  readonly patience: Duration;
  /** Whether there are several graphs. */
  readonly areSeveral: boolean;
}

export function detect(scope: Construct, props: DetectProps): sfn.IChainable {
  const look = new tasks.LambdaInvoke(scope, "Look", {
    comment: "Marks nodes without a sign of life as lost, and returns the required action",
    lambdaFunction: props.function,
    payload: sfn.TaskInput.fromObject({ step: props.areSeveral ? "detect-all" : "detect" }),
    payloadResponseOnly: true,
    retryOnServiceExceptions: false,
    taskTimeout: sfn.Timeout.duration(Duration.minutes(2)),
  });
  // After two failures, the next run follows within a minute.
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
    // The execution is running, or has ended without changing anything.
    task.addCatch(nothing, {
      errors: ["StepFunctions.ExecutionAlreadyExistsException"],
      resultPath: sfn.JsonPath.DISCARD,
    });
    return task.next(new sfn.Succeed(scope, `${id}: done`));
  };
  const graph = props.areSeveral ? { graph: sfn.JsonPath.stringAt("$.graph") } : {};
  const needs = (what: string): sfn.Condition => sfn.Condition.stringEquals("$.needed", what);
  const choice = new sfn.Choice(scope, "What is needed?")
    .when(needs("heal"), start("Heal", props.heal, { patienceSeconds: props.patience.toSeconds(), ...graph }))
    .when(needs("drain"), start("Drain", props.drain, { node: sfn.JsonPath.stringAt("$.node") }))
    .when(needs("scale-out"), start("Scale out", props.scaleOut, graph))
    .otherwise(nothing);
  if (!props.areSeveral) return look.next(choice);
  const each = new sfn.Map(scope, "Each graph", {
    itemsPath: sfn.JsonPath.stringAt("$.graphs"),
    resultPath: sfn.JsonPath.DISCARD,
  });
  each.itemProcessor(choice);
  return look.next(each);
}

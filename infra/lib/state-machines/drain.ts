/**
 * A node is to be taken away: it answers until others have what it holds. Input: `{ "node": "i-…" }`. If its machine is being taken away by the Auto Scaling
 * group, which waits for this, the group goes on at the end.
 */
import { Duration } from "aws-cdk-lib";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { Moves, type MovesProps } from "./moves.ts";

/** What else it needs. */
export interface DrainProps {
  readonly function: MovesProps["function"];
  readonly groupName: string;
  readonly groupArn: string;
  /** Of the lifecycle hook. */
  readonly hookName: string;
}

export function drain(scope: Construct, props: DrainProps): sfn.IChainable {
  const tell = new tasks.CallAwsService(scope, "Let the group go on", {
    comment: "A node whose machine stays has no such action, which is an error of no weight",
    service: "autoscaling",
    action: "completeLifecycleAction",
    parameters: {
      AutoScalingGroupName: props.groupName,
      LifecycleHookName: props.hookName,
      InstanceId: sfn.JsonPath.stringAt("$.node"),
      LifecycleActionResult: "CONTINUE",
    },
    iamAction: "autoscaling:CompleteLifecycleAction",
    iamResources: [props.groupArn],
    resultPath: sfn.JsonPath.DISCARD,
    taskTimeout: sfn.Timeout.duration(Duration.minutes(1)),
  });
  const drained = new sfn.Succeed(scope, "Drained");
  tell.addRetry({
    maxAttempts: 3,
    interval: Duration.seconds(2),
    errors: ["AutoScaling.ResourceContentionException"],
  });
  tell.addCatch(drained, { errors: ["States.ALL"], resultPath: sfn.JsonPath.DISCARD });
  // Another execution that has the lease empties the node as well.
  const wait = new sfn.Wait(scope, "Another one works", { time: sfn.WaitTime.duration(Duration.minutes(1)) });
  const moves = new Moves(scope, {
    function: props.function,
    goal: "repair",
    drains: true,
    busy: wait,
    whole: tell.next(drained),
  });
  const mark = moves.step(
    "Say that it leaves",
    "It answers reads and gets nothing more",
    { step: "drain", node: sfn.JsonPath.stringAt("$.node") },
    sfn.JsonPath.DISCARD,
  );
  wait.next(mark);
  return sfn.Chain.start(mark).next(moves.chain());
}

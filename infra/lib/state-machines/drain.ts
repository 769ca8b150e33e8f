/**
 * Drains a node that is going to be taken away: it answers until other nodes have its replicas. If the Auto Scaling
 * group is terminating the node's machine, the group waits for this state machine and is told to continue at the end.
 *
 * Input: `{ "node": "i-…" }`.
 *
 * With several graphs, the node is emptied of each in an execution of its own, because a history has a limit, and the group
 * goes on after all of them. A graph that cannot be moved fails this execution; the detector starts the next one.
 */
import { Duration } from "aws-cdk-lib";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { invocation } from "./invocation.ts";
import { Moves, type MovesProps } from "./moves.ts";

/** Further settings of the machine. */
export interface DrainProps {
  readonly function: MovesProps["function"];
  readonly groupName: string;
  readonly groupArn: string;
  /** Name of the lifecycle hook. */
  readonly hookName: string;
  /** Whether there are several graphs. */
  readonly areSeveral: boolean;
}

/** Graphs of which a node is emptied at the same time. */
const GRAPHS = 8;

export function drain(scope: Construct, props: DrainProps): sfn.IChainable {
  const tell = new tasks.CallAwsService(scope, "Let the group go on", {
    comment: "Fails for a node whose machine stays, because it has no such action; the failure is ignored",
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
  const emptied = props.areSeveral ? new sfn.Succeed(scope, "Emptied") : tell.next(drained);
  // Waits, because the execution that has the lease empties the node as well.
  const wait = new sfn.Wait(scope, "Another one works", { time: sfn.WaitTime.duration(Duration.minutes(1)) });
  const moves = new Moves(scope, {
    function: props.function,
    goal: "repair",
    drains: true,
    areSeveral: props.areSeveral,
    busy: wait,
    whole: emptied,
  });
  const mark = moves.step(
    "Say that it leaves",
    "The node answers reads and gets no more replicas",
    { step: "drain", node: sfn.JsonPath.stringAt("$.node") },
    sfn.JsonPath.DISCARD,
  );
  wait.next(mark);
  const chain = sfn.Chain.start(mark).next(moves.chain());
  if (!props.areSeveral) return chain;
  const graphs = invocation(scope, "List the graphs", {
    function: props.function,
    comment: "Those that exist: others are not made yet, or are being dropped",
    payload: { step: "graphs" },
    resultPath: "$.fleet",
  });
  const each = new sfn.DistributedMap(scope, "Each graph", {
    comment: "Empties the node of it",
    mapExecutionType: sfn.StateMachineType.STANDARD,
    itemsPath: sfn.JsonPath.stringAt("$.fleet.graphs"),
    itemSelector: { "node.$": "$.node", "graph.$": "$$.Map.Item.Value" },
    maxConcurrency: GRAPHS,
    resultPath: sfn.JsonPath.DISCARD,
  });
  each.itemProcessor(chain);
  return graphs.next(each).next(tell).next(drained);
}

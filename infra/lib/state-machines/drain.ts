/**
 * Drains a node that is going to be taken away: it answers until other nodes have its replicas. If the Auto Scaling
 * group is terminating the node's machine, the group waits for this state machine and is told to continue at the end.
 *
 * While replicas move, or another execution moves them, each round gives the group a sign of life, with which the time
 * of the lifecycle hook begins again. A drain that moves nothing gives none: then the group terminates the machine when
 * that time is over. AWS bounds all of it by 48 hours
 * (https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks.html).
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
import { unnamed } from "./retry.ts";

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

/** Time between two attempts to take the lease that another execution has. */
const BUSY = Duration.minutes(1);

/** Graphs of which a node is emptied at the same time. */
const GRAPHS = 8;

export function drain(scope: Construct, props: DrainProps): sfn.IChainable {
  const drained = new sfn.Succeed(scope, "Drained");
  const tell = then(
    ofMachine(scope, "Let the group go on", props, "completeLifecycleAction", {
      LifecycleActionResult: "CONTINUE",
    }),
    drained,
  );
  // Waits, because the execution that has the lease empties the node as well.
  const wait = new sfn.Wait(scope, "Another one works", { time: sfn.WaitTime.duration(BUSY) });
  const whole = props.areSeveral ? new sfn.Succeed(scope, "Emptied") : tell;
  const moves = new Moves(scope, {
    function: props.function,
    goal: "repair",
    drains: true,
    areSeveral: props.areSeveral,
    busy: wait,
    whole,
    moved: (next) => then(ofMachine(scope, "Replicas move", props, "recordLifecycleActionHeartbeat"), next),
  });
  const mark = moves.step(
    "Say that it leaves",
    "The node answers reads and gets no more replicas",
    { step: "drain", node: sfn.JsonPath.stringAt("$.node") },
    "$.marked",
  );
  wait.next(then(ofMachine(scope, "Another one moves them", props, "recordLifecycleActionHeartbeat"), mark));
  // A node that holds nothing gets nothing any more, and needs not wait for the execution that has the lease.
  const isEmpty = sfn.Condition.and(
    sfn.Condition.isPresent("$.marked.held"),
    sfn.Condition.numberEquals("$.marked.held", 0),
  );
  const holds = new sfn.Choice(scope, "Does it hold anything?").when(isEmpty, whole).otherwise(moves.chain());
  const chain = sfn.Chain.start(mark).next(holds);
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
  return graphs.next(each).next(tell);
}

/** Adds the next state, which follows after an error too. */
function then(task: sfn.TaskStateBase, next: sfn.IChainable): sfn.TaskStateBase {
  task.addCatch(next, { errors: ["States.ALL"], resultPath: sfn.JsonPath.DISCARD });
  task.next(next);
  return task;
}

/** Returns a call about the lifecycle action of the node's machine. */
function ofMachine(
  scope: Construct,
  id: string,
  { groupName, groupArn, hookName }: DrainProps,
  action: "completeLifecycleAction" | "recordLifecycleActionHeartbeat",
  more: Record<string, string> = {},
): tasks.CallAwsService {
  const task = new tasks.CallAwsService(scope, id, {
    comment: "Fails for a node whose machine stays, because it has no such action; the failure is ignored",
    service: "autoscaling",
    action,
    parameters: {
      AutoScalingGroupName: groupName,
      LifecycleHookName: hookName,
      InstanceId: sfn.JsonPath.stringAt("$.node"),
      ...more,
    },
    iamAction: `autoscaling:${action.charAt(0).toUpperCase()}${action.slice(1)}`,
    iamResources: [groupArn],
    resultPath: sfn.JsonPath.DISCARD,
    taskTimeout: sfn.Timeout.duration(Duration.minutes(1)),
  });
  const errors = ["AutoScaling.ResourceContentionException"];
  // A group that is not told to go on keeps the machine for hours. It says "too many requests" and "no such action" in the
  // same way, so few attempts have to do. A sign of life is sent again with the next round.
  if (action === "completeLifecycleAction") errors.push(...unnamed("AutoScaling"));
  task.addRetry({ maxAttempts: 3, interval: Duration.seconds(2), errors });
  return task;
}

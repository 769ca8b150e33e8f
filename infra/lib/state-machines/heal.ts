/**
 * Restores the replicas of a lost node on other nodes, unless it comes back in time. If it does not, its machine is
 * replaced: it may be one that runs while its daemon hangs, which the group does not notice. Machines of all lost nodes
 * that are still in service are replaced, also if an earlier execution moved their replicas and could not tell the group.
 * The first placement of a graph is a heal too.
 */
import { Duration } from "aws-cdk-lib";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { lookAtGroup } from "./group.ts";
import { Moves, type MovesProps } from "./moves.ts";
import { patiently, unnamed } from "./retry.ts";

/** Further settings of the machine. */
export interface HealProps {
  readonly function: MovesProps["function"];
  readonly groupName: string;
  readonly groupArn: string;
  /** Whether there are several graphs. */
  readonly areSeveral: boolean;
}

/** The states that an execution enters when the machine of a lost node was not reported. An alarm finds them in its log. */
export const UNTOLD = ["Nobody was told", "The machine stays"] as const;

/**
 * Input: `{ "patienceSeconds": 120 }`, the time that a lost node has to come back before anything moves; with several
 * graphs also the `graph`.
 */
export function heal(scope: Construct, props: HealProps): sfn.IChainable {
  const wait = new sfn.Wait(scope, "It may come back", {
    comment: "A restarted daemon restores its replicas sooner, and nothing has to move",
    time: sfn.WaitTime.secondsPath("$.patienceSeconds"),
  });
  const moves = new Moves(scope, {
    function: props.function,
    goal: "repair",
    drains: false,
    areSeveral: props.areSeveral,
    busy: new sfn.Succeed(scope, "Another one works", {
      comment: "The detector starts another execution while something is left",
    }),
    whole: new sfn.Succeed(scope, "Healed"),
  });
  const group = lookAtGroup(scope, "Look at the group", props.groupName, ["instances"]);
  const silent = moves.step(
    "Who is silent?",
    "Lost nodes that have not come back, with machines in service",
    { step: "silent", instances: sfn.JsonPath.objectAt("$.group.instances") },
    "$.silent",
  );
  const replace = new sfn.Map(scope, "Replace machines", {
    itemsPath: sfn.JsonPath.stringAt("$.silent.nodes"),
    itemSelector: { "node.$": "$$.Map.Item.Value" },
    maxConcurrency: 1,
    resultPath: sfn.JsonPath.DISCARD,
  });
  const tell = new tasks.CallAwsService(scope, "Tell the group", {
    comment: "It ends the machine, and starts another one",
    service: "autoscaling",
    action: "setInstanceHealth",
    parameters: {
      InstanceId: sfn.JsonPath.stringAt("$.node"),
      HealthStatus: "Unhealthy",
      // The node has been silent for the patience of this machine already. The grace period is that of a start, up to two
      // hours, in which the group would ignore this.
      ShouldRespectGracePeriod: false,
    },
    iamAction: "autoscaling:SetInstanceHealth",
    iamResources: [props.groupArn],
    resultPath: sfn.JsonPath.DISCARD,
    taskTimeout: sfn.Timeout.duration(Duration.minutes(1)),
  });
  tell.addRetry(patiently(["AutoScaling.ResourceContentionException", ...unnamed("AutoScaling")]));
  const told = new sfn.Succeed(scope, "Told");
  const stays = new sfn.Pass(scope, UNTOLD[1], { comment: "An alarm tells of it; a later heal tries again" });
  tell.addCatch(stays, { errors: ["States.ALL"], resultPath: sfn.JsonPath.DISCARD });
  stays.next(told);
  replace.itemProcessor(tell.next(told));
  const chain = sfn.Chain.start(moves.chain());
  // Replicas move in any case.
  const untold = new sfn.Pass(scope, UNTOLD[0], { comment: "An alarm tells of it; replicas move" });
  untold.next(chain);
  for (const look of [group, silent])
    look.addCatch(untold, { errors: ["States.ALL"], resultPath: sfn.JsonPath.DISCARD });
  // The description of the group is not needed any more, and has a line for each machine.
  const forget = new sfn.Pass(scope, "Forget the group", {
    result: sfn.Result.fromObject({}),
    resultPath: "$.group",
  });
  return wait.next(group).next(silent).next(forget).next(replace).next(chain);
}

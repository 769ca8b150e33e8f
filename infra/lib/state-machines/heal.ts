/**
 * Restores the replicas of a lost node on other nodes, unless it comes back in time. If it does not, its machine is
 * replaced: it may be one that runs while its daemon hangs, which the group does not notice. The first placement of a
 * graph is a heal too.
 */
import { Duration } from "aws-cdk-lib";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import * as tasks from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { Moves, type MovesProps } from "./moves.ts";

/** Further settings of the machine. */
export interface HealProps {
  readonly function: MovesProps["function"];
  readonly groupArn: string;
  /** Whether there are several graphs. */
  readonly areSeveral: boolean;
}

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
  const silent = moves.step(
    "Who is silent?",
    "Lost nodes that have not come back",
    { step: "silent" },
    "$.silent",
  );
  const replace = new sfn.Map(scope, "Replace machines", {
    itemsPath: sfn.JsonPath.stringAt("$.silent.nodes"),
    itemSelector: { "node.$": "$$.Map.Item.Value" },
    maxConcurrency: 1,
    resultPath: sfn.JsonPath.DISCARD,
  });
  const tell = new tasks.CallAwsService(scope, "Tell the group", {
    comment: "Fails for a machine that is gone already; the failure is ignored",
    service: "autoscaling",
    action: "setInstanceHealth",
    parameters: {
      InstanceId: sfn.JsonPath.stringAt("$.node"),
      HealthStatus: "Unhealthy",
      // A machine that has just started may still be slow.
      ShouldRespectGracePeriod: true,
    },
    iamAction: "autoscaling:SetInstanceHealth",
    iamResources: [props.groupArn],
    resultPath: sfn.JsonPath.DISCARD,
    taskTimeout: sfn.Timeout.duration(Duration.minutes(1)),
  });
  tell.addRetry({
    maxAttempts: 3,
    interval: Duration.seconds(2),
    errors: ["AutoScaling.ResourceContentionException"],
  });
  const told = new sfn.Succeed(scope, "Told");
  tell.addCatch(told, { errors: ["States.ALL"], resultPath: sfn.JsonPath.DISCARD });
  replace.itemProcessor(tell.next(told));
  const chain = sfn.Chain.start(moves.chain());
  // Replicas move in any case.
  silent.addCatch(chain, { errors: ["States.ALL"], resultPath: sfn.JsonPath.DISCARD });
  return wait.next(silent).next(replace).next(chain);
}

/**
 * Restores the replicas of a lost node on other nodes, unless it comes back in time. The first placement of a graph is
 * a heal too.
 */
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { Moves, type MovesProps } from "./moves.ts";

/** Input: `{ "patienceSeconds": 120 }`, the time that a lost node has to come back before anything moves. */
export function heal(scope: Construct, fn: MovesProps["function"]): sfn.IChainable {
  const wait = new sfn.Wait(scope, "It may come back", {
    comment: "A restarted daemon restores its replicas sooner, and nothing has to move",
    time: sfn.WaitTime.secondsPath("$.patienceSeconds"),
  });
  const moves = new Moves(scope, {
    function: fn,
    goal: "repair",
    drains: false,
    busy: new sfn.Succeed(scope, "Another one works", {
      comment: "The detector starts another execution while something is left",
    }),
    whole: new sfn.Succeed(scope, "Healed"),
  });
  return sfn.Chain.start(wait).next(moves.chain());
}

/** Gives all nodes their share of the replicas after nodes were added. Input: `{}`; with several graphs the `graph`. */
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { Moves, type MovesProps } from "./moves.ts";

export function scaleOut(
  scope: Construct,
  props: Pick<MovesProps, "function" | "areSeveral">,
): sfn.IChainable {
  const moves = new Moves(scope, {
    ...props,
    goal: "balance",
    drains: false,
    busy: new sfn.Succeed(scope, "Another one works", {
      comment: "The detector starts another execution while something is left",
    }),
    whole: new sfn.Succeed(scope, "Balanced"),
  });
  return moves.chain();
}

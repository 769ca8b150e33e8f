/** The tag by which the cost of a deployment is told from all others (docs/cost.md). */
import { Tags } from "aws-cdk-lib";
import type { Construct } from "constructs";
import { TAG } from "./names.ts";

/** Tags what is below a construct. */
export function tagCost(construct: Construct, name: string): void {
  Tags.of(construct).add(TAG, name);
}

/** The tag by which the cost of a deployment is told from all others (docs/cost.md). */
import { Tags } from "aws-cdk-lib";
import type { Construct } from "constructs";

/** The tag of every resource; its value is the name of the deployment. */
export const TAG = "tidegraph:deployment";

/** A second tag of what `tidegraph-remove` keeps unless it is told otherwise, and its value. */
export const PART = "tidegraph:part";
export const BACKUPS = "backups";

/** Tags what is below a construct. */
export function tagCost(construct: Construct, name: string): void {
  Tags.of(construct).add(TAG, name);
}

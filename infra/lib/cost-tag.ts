/** The tag by which the cost of a deployment is told from all others (docs/cost.md). */
import { Stack, Tags } from "aws-cdk-lib";
import type { Construct } from "constructs";

/** The tag of every resource; its value is the name of the deployment. */
export const TAG = "tidegraph:deployment";

/** CDK's own function for custom resources. CDK creates it once, at the top of the stack. */
export const PROVIDER = "AWS679f53fac002430cb0da5b7982bd2287";

/** Tags what is below a construct, and what CDK made for it at the top of the stack. */
export function tagCost(construct: Construct, name: string): void {
  const providers = Stack.of(construct).node.children.filter(({ node }) => node.id.startsWith(PROVIDER));
  for (const one of [construct, ...providers]) Tags.of(one).add(TAG, name);
}

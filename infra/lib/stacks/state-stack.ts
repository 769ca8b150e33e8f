/**
 * The stack with the durable state of a graph. It has termination protection, and its resources are retained. A first
 * deployment should have neither this protection nor that of the table (`deletionProtection`): the CDK's command line
 * sets it before it creates anything, and could then not delete a stack whose creation failed.
 */
import { Stack, type StackProps } from "aws-cdk-lib";
import type { Construct } from "constructs";
import { GraphState, type GraphStateProps } from "../constructs/state.ts";
import { setFlags } from "../flags.ts";

/** Settings of the stack, and the durable state of a graph. */
export interface StateStackProps extends GraphStateProps, StackProps {}

export class StateStack extends Stack {
  readonly state: GraphState;

  constructor(scope: Construct, id: string, props: StateStackProps) {
    super(scope, id, { terminationProtection: true, ...props });
    setFlags(this);
    this.state = new GraphState(this, "State", props);
  }
}

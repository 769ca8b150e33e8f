/** The stack with the processes of a graph. It can be deleted and created again. */
import { Stack, type StackProps } from "aws-cdk-lib";
import type { Construct } from "constructs";
import { GraphService, type GraphServiceProps } from "../constructs/service.ts";
import { setFlags } from "../flags.ts";

/** Settings of the stack, and the processes of a graph. */
export interface ServiceStackProps extends GraphServiceProps, StackProps {}

export class ServiceStack extends Stack {
  readonly service: GraphService;

  constructor(scope: Construct, id: string, props: ServiceStackProps) {
    super(scope, id, props);
    setFlags(this);
    this.service = new GraphService(this, "Service", props);
  }
}

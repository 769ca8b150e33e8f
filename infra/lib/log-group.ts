/**
 * Log groups of processes: named after the deployment, encrypted with the state's key, forgetting after a while, and gone with the service. That of the
 * brokers is not one of them: it stays with the state.
 */
import { RemovalPolicy } from "aws-cdk-lib";
import * as logs from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import type { GraphState } from "./constructs/state.ts";

/** A log group; `name` is what comes after the deployment's prefix. */
export function processLog(
  scope: Construct,
  id: string,
  state: GraphState,
  name: string,
  retention: logs.RetentionDays,
): logs.LogGroup {
  return new logs.LogGroup(scope, id, {
    logGroupName: `${state.logPrefix}${name}`,
    encryptionKey: state.key,
    retention,
    removalPolicy: RemovalPolicy.DESTROY,
  });
}

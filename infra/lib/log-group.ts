/**
 * Log groups of processes. They are named after the deployment, encrypted with the state's key, have a retention
 * period, and are deleted with the service. The brokers' log group is not among them: it belongs to the state.
 */
import { RemovalPolicy } from "aws-cdk-lib";
import * as logs from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import type { IGraphState } from "./constructs/graph-state.ts";

/** Creates a log group; `name` follows the deployment's prefix. */
export function processLog(
  scope: Construct,
  id: string,
  state: IGraphState,
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

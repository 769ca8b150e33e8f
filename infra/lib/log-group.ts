/**
 * Log groups of processes, and of services that deliver logs of ours. They are named after the deployment, encrypted with the state's key, have a retention
 * period, and are deleted with the service. The brokers' log group is not among them: it belongs to the state.
 */
import { RemovalPolicy } from "aws-cdk-lib";
import * as logs from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import type { IGraphState } from "./constructs/graph-state.ts";

/** Services of AWS that deliver logs by the permission of CloudWatch Logs, instead of by a role of ours. */
type Delivering = "states" | "msk";

/**
 * Returns the prefix of the names of log groups to which a service delivers. The permission is a policy of CloudWatch Logs,
 * which names each group and has a limit, unless the names begin with `/aws/vendedlogs/`.
 */
export function deliveredPrefix(deployment: string, service: Delivering): string {
  return `/aws/vendedlogs/${service}/tidegraph/${deployment}/`;
}

/** Creates the log group of a state machine. */
export function machineLog(
  scope: Construct,
  id: string,
  state: IGraphState,
  name: string,
  retention: logs.RetentionDays,
): logs.LogGroup {
  return makeLog(scope, id, state, `${deliveredPrefix(state.name, "states")}${name}`, retention);
}

/** Creates the log group of a process; `name` follows the deployment's prefix. */
export function processLog(
  scope: Construct,
  id: string,
  state: IGraphState,
  name: string,
  retention: logs.RetentionDays,
): logs.LogGroup {
  return makeLog(scope, id, state, `${state.logPrefix}${name}`, retention);
}

function makeLog(
  scope: Construct,
  id: string,
  state: IGraphState,
  logGroupName: string,
  retention: logs.RetentionDays,
): logs.LogGroup {
  return new logs.LogGroup(scope, id, {
    logGroupName,
    encryptionKey: state.key,
    retention,
    removalPolicy: RemovalPolicy.DESTROY,
  });
}

/**
 * Log groups of processes, and of services that deliver logs of ours. They are named after the deployment, encrypted with the state's key, have a retention
 * period, and are deleted with the service. The brokers' log group is not among them: it belongs to the state.
 */
import { RemovalPolicy } from "aws-cdk-lib";
import * as logs from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import type { IGraphState } from "./constructs/graph-state.ts";
import { deliveredPrefix } from "./names.ts";

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

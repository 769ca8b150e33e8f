/** Names and tags by which the resources of a deployment are found. Commands use them too, so that nothing of the CDK is here. */

/** The tag of every resource; its value is the name of the deployment. */
export const TAG = "tidegraph:deployment";

/** A second tag of what `tidegraph-remove` keeps unless it is told otherwise, and its value. */
export const PART = "tidegraph:part";
export const BACKUPS = "backups";

/** A tag of the role with which API Gateway writes logs, and the role's region: roles are of all regions, and that one is not. */
export const LOGS_REGION = "tidegraph:logs-region";

/** Services of AWS that deliver logs by the permission of CloudWatch Logs, instead of by a role of ours. */
export type Delivering = "states" | "msk";

/**
 * Returns the prefix of the names of log groups to which a service delivers. The permission is a policy of CloudWatch Logs,
 * which names each group and has a limit, unless the names begin with `/aws/vendedlogs/`.
 */
export function deliveredPrefix(deployment: string, service: Delivering): string {
  return `/aws/vendedlogs/${service}/tidegraph/${deployment}/`;
}

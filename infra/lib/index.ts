/** The public interface for other CDK apps. */
export { InvalidProp } from "./check.ts";
export type { BackupProps } from "./constructs/backup.ts";
export type { GivenLogProps } from "./constructs/given-log.ts";
export type { IngestProps } from "./constructs/ingest.ts";
export type { LogClusterProps } from "./constructs/log-cluster.ts";
export type { NetworkProps } from "./constructs/network.ts";
export type { QueryProps } from "./constructs/query-function.ts";
export type { RebalanceProps } from "./constructs/rebalance.ts";
export { GraphService, type GraphServiceProps, type GremlinProps } from "./constructs/service.ts";
export { GraphState, type GraphStateProps } from "./constructs/state.ts";
export type { NodesProps } from "./constructs/storage-nodes.ts";
export type { TracesProps } from "./constructs/traces.ts";
export type { UpgradeProps } from "./constructs/upgrade.ts";
export type { WorkersDomain, WorkersProps } from "./constructs/workers.ts";
export { ServiceStack } from "./stacks/service-stack.ts";
export { StateStack } from "./stacks/state-stack.ts";

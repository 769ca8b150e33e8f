/**
 * The public interface for other CDK apps. `GraphState` and `GraphService` make the other constructs: apps read these, and
 * make none of their own.
 */
export { InvalidProp } from "./check.ts";
export { Autoscaling, type NodesScalingProps } from "./constructs/autoscaling.ts";
export { type ArchivePlace, Backup, type BackupProps } from "./constructs/backup.ts";
export { Buckets } from "./constructs/buckets.ts";
export { Encryption, type EncryptionProps } from "./constructs/encryption.ts";
export { Endpoints } from "./constructs/endpoints.ts";
export type { GivenLogProps } from "./constructs/given-log.ts";
export type { IGraphLog, LogAlarm } from "./constructs/graph-log.ts";
export {
  GraphStateBase,
  type IGraphBuckets,
  type IGraphNetwork,
  type IGraphState,
  type IMapTable,
} from "./constructs/graph-state.ts";
export type { GraphProps, GremlinProps } from "./constructs/graphs.ts";
export type { GraphStateAttributes, ImportedLogAttributes } from "./constructs/imported-state.ts";
export { Ingest, type IngestProps } from "./constructs/ingest.ts";
export type { LogClusterProps } from "./constructs/log-cluster.ts";
export { MapBase, MapTable } from "./constructs/map-table.ts";
export { Network, type NetworkProps } from "./constructs/network.ts";
export type { ObjectivesProps } from "./constructs/objectives.ts";
export { QueryApi } from "./constructs/query-api.ts";
export { type QueryDomain, QueryFunction, type QueryProps } from "./constructs/query-function.ts";
export { Rebalance, type RebalanceProps } from "./constructs/rebalance.ts";
export { Removal } from "./constructs/removal.ts";
export { Secrets } from "./constructs/secrets.ts";
export { GraphService, type GraphServiceProps } from "./constructs/service.ts";
export { GraphState, type GraphStateProps } from "./constructs/state.ts";
export { type NodesProps, StorageNodes } from "./constructs/storage-nodes.ts";
export { Teardown } from "./constructs/teardown.ts";
export type { TracesProps } from "./constructs/traces.ts";
export { Upgrade, type UpgradeProps } from "./constructs/upgrade.ts";
export { Watch } from "./constructs/watch.ts";
export { WorkerDefinition } from "./constructs/worker-definition.ts";
export { Workers, type WorkersDomain, type WorkersProps } from "./constructs/workers.ts";
export { ServiceStack, type ServiceStackProps } from "./stacks/service-stack.ts";
export { StateStack, type StateStackProps } from "./stacks/state-stack.ts";
export { Join } from "./state-machines/join.ts";

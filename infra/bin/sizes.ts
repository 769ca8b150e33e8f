/**
 * The sizes of deployments: `production` is the example (`example.ts`); `development` is for a few people and data that
 * can be loaded again. `npm run template` makes templates of both.
 */
import type { LogClusterProps, NodesProps, QueryProps, WorkersProps } from "../lib/index.ts";

/** What a size decides. */
export interface Size {
  readonly partitions: number;
  readonly replication: number;
  readonly nodes: Required<Pick<NodesProps, "count" | "instanceType">>;
  readonly query: QueryProps;
  readonly workers: Required<Pick<WorkersProps, "count" | "most" | "cpu" | "memoryMib">>;
  readonly log: Required<Pick<LogClusterProps, "instanceType" | "volumeGib" | "mostVolumeGib">>;
}

const PRODUCTION: Size = {
  partitions: 64,
  replication: 2,
  nodes: { count: 3, instanceType: "i4g.xlarge" },
  query: { memoryMib: 1769, timeoutSeconds: 120, requestsPerSecond: 500, burst: 1000 },
  workers: { count: 2, most: 6, cpu: 1024, memoryMib: 4096 },
  log: { instanceType: "kafka.m7g.large", volumeGib: 100, mostVolumeGib: 1000 },
};

const DEVELOPMENT: Size = {
  partitions: 16,
  replication: 2,
  nodes: { count: 2, instanceType: "i4g.large" },
  query: { memoryMib: 1769, timeoutSeconds: 120, requestsPerSecond: 50, burst: 100 },
  workers: { count: 1, most: 2, cpu: 512, memoryMib: 2048 },
  log: { instanceType: "kafka.t3.small", volumeGib: 10, mostVolumeGib: 100 },
};

export const SIZES = { development: DEVELOPMENT, production: PRODUCTION } as const;

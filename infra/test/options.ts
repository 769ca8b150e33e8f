/** A service with every option that it has, so that a test of all alarms misses none. */
import { Duration, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { InterfaceVpcEndpoint } from "aws-cdk-lib/aws-ec2";
import { RetentionDays } from "aws-cdk-lib/aws-logs";
import { Bucket } from "aws-cdk-lib/aws-s3";
import type { BackupProps } from "../lib/constructs/backup.ts";
import type { EncryptionProps } from "../lib/constructs/encryption.ts";
import type { ObjectivesProps } from "../lib/constructs/objectives.ts";
import type { QueryProps } from "../lib/constructs/query-function.ts";
import type { GraphServiceProps } from "../lib/constructs/service.ts";
import type { GraphStateProps } from "../lib/constructs/state.ts";
import type { NodesProps } from "../lib/constructs/storage-nodes.ts";
import type { TracesProps } from "../lib/constructs/traces.ts";
import type { WorkersProps } from "../lib/constructs/workers.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { placeholders, testApp, workerEndpoint } from "./support.ts";

/**
 * All settings but a topic of others, with which the deployment has none of its own, and images that exist, which stand in
 * place of those that are built. A new setting that is missing here is an error of the compiler.
 */
type Every = Required<
  Omit<
    GraphServiceProps,
    "state" | "bundle" | "bundleSha256" | "alarms" | "nodes" | "query" | "workers" | "backup" | "traces"
  >
> & {
  readonly nodes: Required<Omit<NodesProps, "machineImage">>;
  // A private API has no name of its own.
  readonly query: Required<Omit<QueryProps, "domain">>;
  readonly workers: Required<Omit<WorkersProps, "image">>;
  readonly backup: Required<Omit<BackupProps, "image">>;
  readonly encryption: Required<EncryptionProps>;
  readonly objectives: Required<ObjectivesProps>;
  readonly traces: Required<Omit<TracesProps, "image">>;
};

const HERE = "eu-west-1:111122223333";
const IMAGE = `public.ecr.aws/amazonlinux/amazonlinux@sha256:${"0".repeat(64)}`;

/** Returns every option. */
function everyOption(): Every {
  const { certificate, accessKeys, zone } = workerEndpoint();
  const elsewhere = new Stack(testApp(), "Elsewhere");
  const bucket = (name: string) => Bucket.fromBucketName(elsewhere, name, name);
  const vpcEndpoint = InterfaceVpcEndpoint.fromInterfaceVpcEndpointAttributes(elsewhere, "Endpoint", {
    vpcEndpointId: "vpce-0123456789abcdef0",
    port: 443,
  });
  return {
    ...{ partitions: 16, shards: 2, replication: 3, gremlin: {}, streams: true, endpoints: true },
    graphs: [{ name: "orders" }],
    graphRemoval: true,
    nodes: {
      ...{ count: 4, most: 9, scaling: { cpuPercent: 50 }, instanceType: "i4g.xlarge" },
      ...{ fallbackInstanceTypes: ["i4g.2xlarge"], sessionManager: true, joinPatience: Duration.minutes(30) },
      ...{ restoresAtOnce: 3, restoreReads: 8, restoreBandwidth: 100 },
    },
    query: {
      ...{ memoryMib: 3538, architecture: "x86_64", timeoutSeconds: 60, concurrency: 50, log: "debug" },
      ...{ requestsPerSecond: 100, burst: 200, privateAccess: true, vpcEndpoint },
      webAcl: `arn:aws:wafv2:${HERE}:regional/webacl/any/1`,
    },
    rebalance: { patience: Duration.minutes(5), moves: 8, restoresPerNode: 8, concurrency: 10 },
    ingest: { concurrency: 32, reservedConcurrency: 64, longest: Duration.hours(12) },
    workers: {
      ...{ count: 3, most: 6, cpu: 2048, memoryMib: 8192, metrics: true, baseImage: IMAGE },
      ...{ certificate, accessKeys, domain: { name: "graph.example.com", zone } },
    },
    upgrade: { atOnce: 2, soak: Duration.minutes(5), patience: Duration.hours(1) },
    backup: {
      ...{ bucket: bucket("backups"), keyArn: `arn:aws:kms:${HERE}:key/1`, every: Duration.hours(6) },
      ...{
        archiveEvery: Duration.minutes(1),
        keep: 3,
        longest: Duration.hours(2),
        cpu: 4096,
        baseImage: IMAGE,
      },
    },
    restoreFrom: bucket("restored"),
    loadFrom: [bucket("loaded")],
    traces: {
      ratio: 0.1,
      agentImage: IMAGE,
      collectorLayer: `arn:aws:lambda:${HERE}:layer:collector:1`,
    },
    secretRotation: Duration.days(7),
    encryption: { mode: "required" },
    objectives: { availability: 99.5, latency: Duration.seconds(2) },
    logRetention: RetentionDays.ONE_WEEK,
    apiGatewayAccountRole: true,
  };
}

/** Makes a deployment with every option; the given ones replace those of the same name. */
export function exampleWithEverything(
  ofState: Partial<GraphStateProps> = {},
  ofService: Partial<GraphServiceProps> = {},
): { state: Template; service: Template } {
  const app = testApp();
  const { state } = new StateStack(app, "State", { name: "example", graph: "people", ...ofState });
  const service = new ServiceStack(app, "Service", {
    ...{ state, bundle: placeholders() },
    ...everyOption(),
    ...ofService,
  });
  return { state: Template.fromStack(Stack.of(state)), service: Template.fromStack(service) };
}

/**
 * What the processes of a graph need of its durable state: a `GraphState` of the same app, or an existing one
 * (`GraphState.fromAttributes`).
 */
import type { Duration } from "aws-cdk-lib";
import type { ITable } from "aws-cdk-lib/aws-dynamodb";
import type { ISubnet, IVpc } from "aws-cdk-lib/aws-ec2";
import type { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import { Construct, type IConstruct } from "constructs";
import { text } from "../check.ts";
import type { IGraphLog } from "./graph-log.ts";

/** The network of a deployment. */
export interface IGraphNetwork {
  readonly vpc: IVpc;
  /** One subnet in each zone. */
  readonly subnets: ISubnet[];
  /** Whether this app created the VPC, so that it has no other endpoints. */
  readonly isOwn: boolean;
}

/** The buckets of a graph. */
export interface IGraphBuckets {
  /** Checkpoints and segments. */
  readonly data: IBucket;
  /** Dropped files, and reports about them. */
  readonly drop: IBucket;
}

/** The table of the partition map. */
export interface IMapTable {
  readonly table: ITable;
  /** The value of `--table-prefix`. */
  readonly prefix: string;

  /** Returns the permissions to read the map of one graph. */
  reads(graph: string): PolicyStatement[];

  /** Returns the permissions to read and change the map of one graph. */
  changes(graph: string): PolicyStatement[];
}

/** The durable state of a graph. */
export interface IGraphState extends IConstruct {
  /** Name of the deployment. */
  readonly name: string;
  /** Name of the graph. */
  readonly graph: string;
  readonly key: IKey;
  readonly network: IGraphNetwork;
  readonly buckets: IGraphBuckets;
  readonly map: IMapTable;
  readonly log: IGraphLog;
  /** Age at which dropped files are deleted, if they are. */
  readonly dropExpiration: Duration | undefined;
  /** The prefix of log group names. */
  readonly logPrefix: string;
  /** The graph's topic, by the name that the daemons use. */
  readonly topic: string;
  /** The value of `--objects`. */
  readonly objects: string;
}

/** What follows from the other properties of a state. */
export abstract class GraphStateBase extends Construct implements IGraphState {
  abstract readonly name: string;
  abstract readonly graph: string;
  abstract readonly key: IKey;
  abstract readonly network: IGraphNetwork;
  abstract readonly buckets: IGraphBuckets;
  abstract readonly map: IMapTable;
  abstract readonly log: IGraphLog;
  abstract readonly dropExpiration: Duration | undefined;

  get logPrefix(): string {
    return `/tidegraph/${this.name}/`;
  }

  get topic(): string {
    return `tidegraph-${this.graph}`;
  }

  get objects(): string {
    return `s3://${this.buckets.data.bucketName}`;
  }
}

/** Checks the name of a deployment. */
export function deploymentName(name: string): string {
  const dashes =
    "2 to 32 lower-case letters, digits and dashes that begin with a letter and do not end with a dash";
  return text("name", name, /^[a-z][a-z0-9-]{0,30}[a-z0-9]$/, dashes);
}

/**
 * Checks the name of a graph: what the map allows (`engine-core/cluster/src/model.rs`), without dots and underscores,
 * because together they make Kafka's metric names ambiguous.
 */
export function graphName(graph: string): string {
  const expected = "1 to 64 letters, digits and dashes that begin with a letter or digit";
  return text("graph", graph, /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/, expected);
}

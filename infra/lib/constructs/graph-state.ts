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
import { graphName, InvalidProp, text } from "../check.ts";
import type { IGraphLog } from "./graph-log.ts";

/** How the names of topics begin. */
export const TOPICS = "tidegraph-";

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

  /** Returns the permissions to read the maps of graphs. */
  reads(...graphs: string[]): PolicyStatement[];

  /** Returns the permissions to read and change the maps of graphs. */
  changes(...graphs: string[]): PolicyStatement[];
}

/** The durable state of a graph. */
export interface IGraphState extends IConstruct {
  /** Name of the deployment. */
  readonly name: string;
  /** Name of the graph, or of the first one. */
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
  /** The topic of the graph that the state names, by the name that the daemons use. */
  readonly topic: string;
  /** The value of `--objects`. */
  readonly objects: string;

  /** Returns the topic of a graph, by the name that the daemons use. */
  topicOf(graph: string): string;

  /** Prepares the state for further graphs, or refuses those for which an existing state is not prepared. */
  addGraphs(...graphs: string[]): void;
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
    return this.topicOf(this.graph);
  }

  get objects(): string {
    return `s3://${this.buckets.data.bucketName}`;
  }

  topicOf(graph: string): string {
    return `${TOPICS}${graph}`;
  }

  abstract addGraphs(...graphs: string[]): void;
}

/** Checks the name of a deployment. */
export function deploymentName(name: string): string {
  const dashes =
    "2 to 32 lower-case letters, digits and dashes that begin with a letter and do not end with a dash";
  return text("name", name, /^[a-z][a-z0-9-]{0,30}[a-z0-9]$/, dashes);
}

/** Checks the name of a further graph, given the name of the first one. */
export function checkFurther(prop: string, graph: string, first: string): void {
  if (graphName(prop, graph) === first)
    throw new InvalidProp(prop, graph, "another name: the graph of the state has this one");
}

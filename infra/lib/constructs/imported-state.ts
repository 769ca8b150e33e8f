/** The durable state of a graph that another app made. */
import { type Duration, Fn, Token } from "aws-cdk-lib";
import * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import * as kms from "aws-cdk-lib/aws-kms";
import * as s3 from "aws-cdk-lib/aws-s3";
import type { Construct } from "constructs";
import { graphName, InvalidProp, placeOf, samePlace, text, whole } from "../check.ts";
import { setFlags } from "../flags.ts";
import { GivenLog, type GivenLogProps } from "./given-log.ts";
import type { IGraphLog } from "./graph-log.ts";
import {
  checkFurther,
  deploymentName,
  GraphStateBase,
  type IGraphBuckets,
  type IGraphNetwork,
  type IMapTable,
} from "./graph-state.ts";
import { MapBase } from "./map-table.ts";
import { MskLog } from "./msk-log.ts";
import { Network } from "./network.ts";

/** Brokers in MSK that exist. */
export interface ImportedLogAttributes {
  /** ARN of the cluster. */
  readonly clusterArn: string;
  /** Id of the brokers' security group, in which the service opens the port of the log. */
  readonly securityGroupId: string;
  /** Number of brokers, each of which gets an alarm. */
  readonly brokers: number;
}

/** A durable state that exists, in the account and region of the stack. The outputs of its stack have the values. */
export interface GraphStateAttributes {
  /** Name of the deployment. */
  readonly name: string;
  /**
   * Name of the graph; of the first one, if the deployment has several.
   *
   * @default "default"
   */
  readonly graph?: string;
  /**
   * Names of further graphs for which `addGraphs` of the state was called in its own app.
   *
   * @default none
   */
  readonly graphs?: string[];
  /** The VPC, with a private or isolated subnet in each zone. It has the endpoints that processes need, or another way. */
  readonly vpc: ec2.IVpc;
  /**
   * Number of availability zones.
   *
   * @default 3
   */
  readonly zones?: number;
  /** ARN of the key that encrypts everything. */
  readonly keyArn: string;
  /** The output `TablePrefix`: the name of the map's table without `map` at its end. */
  readonly tablePrefix: string;
  /** Name of the bucket of checkpoints and segments. */
  readonly dataBucket: string;
  /** Name of the bucket for dropped files. */
  readonly dropBucket: string;
  /** The brokers: those of MSK, or the `addresses` of another Kafka. */
  readonly log: ImportedLogAttributes | GivenLogProps;
  /**
   * Age at which files in the drop bucket are deleted, as its rule says.
   *
   * @default never
   */
  readonly dropExpiration?: Duration;
}

class ImportedMap extends MapBase {
  readonly table: dynamodb.ITable;
  readonly prefix: string;

  constructor(scope: Construct, id: string, prefix: string) {
    super(scope, id);
    this.prefix = prefix;
    this.table = dynamodb.Table.fromTableName(this, "Table", `${prefix}map`);
  }
}

class ImportedLog extends MskLog {
  readonly clusterArn: string;
  readonly clusterName: string;
  readonly brokers: number;
  readonly securityGroup: ec2.ISecurityGroup;

  constructor(scope: Construct, id: string, { clusterArn, securityGroupId, brokers }: ImportedLogAttributes) {
    super(scope, id);
    this.clusterArn = text(
      "log.clusterArn",
      clusterArn,
      /^arn:[^:]+:kafka:[^:]*:[^:]*:cluster\/[^/]+\/[^/]+$/,
      "the ARN of a cluster in MSK",
    );
    samePlace("log.clusterArn", clusterArn, placeOf(clusterArn), this);
    this.clusterName = Fn.select(1, Fn.split("/", clusterArn));
    this.brokers = whole("log.brokers", brokers, 3);
    // The rule that lets nodes in is the service's (`letIn`).
    const mutable = { mutable: false };
    this.securityGroup = ec2.SecurityGroup.fromSecurityGroupId(
      this,
      "SecurityGroup",
      securityGroupId,
      mutable,
    );
  }
}

export class ImportedState extends GraphStateBase {
  readonly name: string;
  readonly graph: string;
  readonly key: kms.IKey;
  readonly network: IGraphNetwork;
  readonly buckets: IGraphBuckets;
  readonly map: IMapTable;
  readonly log: IGraphLog;
  readonly dropExpiration: Duration | undefined;
  /** The graphs for which the state is prepared, besides the first one. */
  private readonly further: readonly string[];

  constructor(scope: Construct, id: string, given: GraphStateAttributes) {
    super(scope, id);
    setFlags(this);
    this.name = deploymentName(given.name);
    this.graph = graphName("graph", given.graph ?? "default");
    for (const [at, graph] of (given.graphs ?? []).entries())
      checkFurther(`graphs[${at}]`, graph, this.graph);
    this.further = given.graphs ?? [];
    this.checkPlace(given.keyArn);
    this.key = kms.Key.fromKeyArn(this, "Key", given.keyArn);
    const bucket = (name: string, bucketName: string): s3.IBucket =>
      s3.Bucket.fromBucketAttributes(this, name, { bucketName, encryptionKey: this.key });
    this.buckets = { data: bucket("Data", given.dataBucket), drop: bucket("Drop", given.dropBucket) };
    if (given.dropBucket === given.dataBucket)
      throw new InvalidProp("dropBucket", given.dropBucket, "another bucket than dataBucket");
    const { vpc, zones = 3 } = given;
    samePlace("vpc", vpc.vpcId, vpc.env, this);
    this.network = new Network(this, "Network", { vpc, zones }, undefined);
    const form = /^[a-z][a-z0-9-]*-$/;
    const prefix = text(
      "tablePrefix",
      given.tablePrefix,
      form,
      "the output TablePrefix, which ends with a dash",
    );
    this.map = new ImportedMap(this, "Map", prefix);
    this.log = "addresses" in given.log ? new GivenLog(given.log) : new ImportedLog(this, "Log", given.log);
    this.dropExpiration = given.dropExpiration;
  }

  /** Refuses a graph for which the app of the state did not prepare it: this app cannot change its buckets. */
  addGraphs(...graphs: string[]): void {
    for (const graph of graphs) {
      if (this.further.includes(graph)) continue;
      const prepared =
        "among `graphs` of fromAttributes, after addGraphs of the state prepared it in its own app";
      throw new InvalidProp("graphs", graph, prepared);
    }
  }

  /** Refuses the state of another place: the daemons know its table by name, which leads to their own account and region. */
  private checkPlace(keyArn: string): void {
    if (Token.isUnresolved(keyArn)) return;
    text("keyArn", keyArn, /^arn:[^:]+:kms:[^:]+:\d{12}:key\/.+$/, "the ARN of a key");
    samePlace("keyArn", keyArn, placeOf(keyArn), this);
  }
}

/**
 * `GraphState`: the durable state of a graph. It has the map's table, the buckets, the log, their key, and the brokers'
 * network. It changes rarely, is retained when its stack is deleted, and knows nothing of the processes that use it.
 *
 * A creation that fails leaves nothing that keeps it from being repeated: resources are retained except when their own
 * creation is rolled back, and names that have to be unique contain a part of the stack's id, which AWS draws anew. The
 * bucket of access logs is retained always, because it is never empty.
 *
 * One `GraphState` holds the data of one deployment, which may have several graphs (`GraphServiceProps.graphs`). The graph
 * that the state names has the root of the data bucket, and each other one a folder of its own.
 */
import { CfnOutput, type Duration, Fn, RemovalPolicy, Stack } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as kms from "aws-cdk-lib/aws-kms";
import * as logs from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import { graphName, samePlace, text, wholeDays } from "../check.ts";
import { tagCost } from "../cost-tag.ts";
import { setFlags } from "../flags.ts";
import { deliveredPrefix, folderOf } from "../names.ts";
import { Buckets } from "./buckets.ts";
import { GivenLog, type GivenLogProps } from "./given-log.ts";
import type { IGraphLog } from "./graph-log.ts";
import { checkFurther, deploymentName, GraphStateBase, type IGraphState } from "./graph-state.ts";
import { type GraphStateAttributes, ImportedState } from "./imported-state.ts";
import { LogCluster, type LogClusterProps } from "./log-cluster.ts";
import { MapTable } from "./map-table.ts";
import { Network, type NetworkProps } from "./network.ts";

/** What an upload needs. */
const PUT = ["s3:PutObject", "s3:AbortMultipartUpload"];

/** Settings of the durable state. */
export interface GraphStateProps {
  /**
   * Name of the deployment, unique in the account and region: the names of the table, brokers and log groups contain
   * it.
   */
  readonly name: string;
  /**
   * Name of the graph; of the first one, if the deployment has several (`GraphServiceProps.graphs`).
   *
   * @default "default"
   */
  readonly graph?: string;
  /**
   * The network of the deployment.
   *
   * @default a new VPC across three zones
   */
  readonly network?: NetworkProps;
  /**
   * The brokers of the log: MSK, which this app creates, or the `addresses` of an existing Kafka.
   *
   * @default three of kafka.m7g.large with 100 GiB each
   */
  readonly log?: LogClusterProps | GivenLogProps;
  /**
   * Whether DynamoDB refuses to delete the table of the map. `false` for the first deployment, so that it can be rolled
   * back; then turn it on, with the termination protection of the stack.
   *
   * @default true
   */
  readonly deletionProtection?: boolean;
  /**
   * Age at which files in the drop bucket are deleted, in whole days. It has to be longer than a load may take
   * (`ingest.longest`).
   *
   * @default never
   */
  readonly dropExpiration?: Duration;
  /**
   * Numbers of other accounts whose principals may drop files and read reports about them, if policies of their account
   * let them.
   *
   * @default only principals of this account
   */
  readonly dropFrom?: string[];
  /**
   * A key of your own that encrypts everything. If it is imported, its policy has to have what docs/deploy.md lists.
   *
   * @default a new key, which is rotated each year
   */
  readonly key?: kms.IKey;
}

export class GraphState extends GraphStateBase {
  /** Name of the deployment. */
  readonly name: string;
  /** Name of the graph, or of the first one. */
  readonly graph: string;
  readonly key: kms.IKey;
  readonly network: Network;
  readonly buckets: Buckets;
  readonly map: MapTable;
  readonly log: IGraphLog;
  /** Eight digits that no other stack has, not even one that is created again under the same name. */
  private readonly unique: string;
  /** Accounts whose principals may drop files. */
  private readonly dropFrom: readonly string[];
  /** The graphs that were added. */
  private readonly further = new Set<string>();
  /** Age at which dropped files are deleted, if they are. */
  readonly dropExpiration: Duration | undefined;

  constructor(scope: Construct, id: string, props: GraphStateProps) {
    super(scope, id);
    setFlags(this);
    this.name = deploymentName(props.name);
    this.graph = graphName("graph", props.graph ?? "default");
    // The id of a stack is an ARN that ends in its name and a UUID.
    const uuid = Fn.select(2, Fn.split("/", Stack.of(this).stackId));
    this.unique = Fn.select(0, Fn.split("-", uuid));
    this.dropExpiration = props.dropExpiration;
    // A century: S3 has no limit that anybody reaches.
    if (props.dropExpiration) wholeDays("dropExpiration", props.dropExpiration, 36_500);
    // Buckets, table and brokers take keys of their own region only.
    if (props.key) samePlace("key", props.key.keyArn, props.key.env, this, ["region"]);
    this.key = props.key ?? this.makeKey();
    this.letServicesUse(this.key);
    this.buckets = new Buckets(this, "Buckets", {
      key: this.key,
      ...(props.dropExpiration && { dropExpiration: props.dropExpiration }),
    });
    this.network = new Network(this, "Network", props.network ?? {}, this.buckets.logs);
    this.map = new MapTable(this, "Map", {
      prefix: `${this.name}-${this.unique}-`,
      key: this.key,
      deletionProtection: props.deletionProtection ?? true,
    });
    const log = props.log ?? {};
    if ("addresses" in log) {
      this.log = new GivenLog(log);
    } else {
      const brokers = this.makeBrokers(log);
      this.log = brokers;
      this.say("LogClusterArn", "Brokers of the log", brokers.clusterArn);
      this.say("LogSecurityGroup", "Security group of the brokers", brokers.securityGroup.securityGroupId);
    }
    this.dropFrom = props.dropFrom ?? [];
    this.letDrop();
    this.sayWhere();
    tagCost(this, this.name);
  }

  /** Returns an existing state, which another app made in the same account and region. */
  static fromAttributes(scope: Construct, id: string, attributes: GraphStateAttributes): IGraphState {
    return new ImportedState(scope, id, attributes);
  }

  /**
   * Prepares the state for further graphs, whose objects are below `graphs/NAME/`: what loads work with expires, and
   * other accounts may drop files for them too. A service in the same app does it; call it for one in another app.
   */
  addGraphs(...graphs: string[]): void {
    const more = graphs.filter((graph, at) => {
      checkFurther(`graphs[${at}]`, graph, this.graph);
      return !this.further.has(graph) && graphs.indexOf(graph) === at;
    });
    if (more.length === 0) return;
    for (const graph of more) this.buckets.expireLoadsBelow(`${folderOf(graph)}/`);
    this.letDropFurther(more);
    for (const graph of more) this.further.add(graph);
  }

  private letDropFurther(graphs: readonly string[]): void {
    if (this.dropFrom.length === 0) return;
    const { drop } = this.buckets;
    const below = (folder: string): string[] =>
      graphs.map((graph) => drop.arnForObjects(`${folder}/${graph}/*`));
    // The names of statements are unique in a policy.
    const nth = this.further.size === 0 ? "" : String(this.further.size);
    drop.addToResourcePolicy(this.letOthers(`OthersDropFurther${nth}`, PUT, below("drop")));
    drop.addToResourcePolicy(this.letOthers(`OthersReadFurther${nth}`, ["s3:GetObject"], below("reports")));
  }

  /** Writes the outputs that `fromAttributes` needs. */
  private sayWhere(): void {
    this.say("KeyArn", "Key that encrypts everything", this.key.keyArn);
    this.say("TablePrefix", "Prefix of the name of the map's table", this.map.prefix);
    this.say("DataBucketName", "Bucket of checkpoints and segments", this.buckets.data.bucketName);
    this.say("DropBucketName", "Bucket for dropped files", this.buckets.drop.bucketName);
    this.say("VpcId", "The network", this.network.vpc.vpcId);
  }

  private say(id: string, description: string, value: string): void {
    new CfnOutput(this, id, { description, value });
  }

  private makeBrokers(log: LogClusterProps): LogCluster {
    const logGroup = new logs.LogGroup(this, "BrokerLogs", {
      logGroupName: `${deliveredPrefix(this.name, "msk")}brokers-${this.unique}`,
      encryptionKey: this.key,
      retention: logs.RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    });
    const { network, key } = this;
    const name = `${this.name}-log-${this.unique}`;
    return new LogCluster(this, "Log", { ...log, name, network, key, logGroup });
  }

  /** Lets other accounts drop files, and read what became of them. */
  private letDrop(): void {
    for (const [index, account] of this.dropFrom.entries())
      text(`dropFrom[${index}]`, account, /^\d{12}$/, "the twelve digits of an account");
    if (this.dropFrom.length === 0) return;
    const { drop } = this.buckets;
    const dropped = drop.arnForObjects(`drop/${this.graph}/*`);
    drop.addToResourcePolicy(this.letOthers("OthersDrop", PUT, [dropped]));
    const reports = drop.arnForObjects(`reports/${this.graph}/*`);
    drop.addToResourcePolicy(this.letOthers("OthersReadReports", ["s3:GetObject"], [reports]));
    const { region, urlSuffix } = Stack.of(this);
    // S3 asks for them; the parts of a large file are decrypted when it is put together.
    const use = this.letOthers("OthersDrop", ["kms:GenerateDataKey", "kms:Decrypt"], ["*"]);
    use.addCondition("StringEquals", { "kms:ViaService": `s3.${region}.${urlSuffix}` });
    this.key.addToResourcePolicy(use);
  }

  private letOthers(sid: string, actions: string[], resources: string[]): iam.PolicyStatement {
    const principals = this.dropFrom.map((account) => new iam.AccountPrincipal(account));
    return new iam.PolicyStatement({ sid, principals, actions, resources });
  }

  private makeKey(): kms.Key {
    return new kms.Key(this, "Key", {
      alias: `alias/${this.name}`,
      description: `Data of the graph database ${this.name}`,
      enableKeyRotation: true,
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    });
  }

  /** Adds to the policy of a key, unless it is imported. */
  private letServicesUse(key: kms.IKey): void {
    const { region, account, partition } = Stack.of(this);
    // Services that use the key without one of our roles. In a key policy, `*` stands for the key itself.
    const service = (
      sid: string,
      name: string,
      actions: string[],
      conditions: Record<string, Record<string, string | string[]>>,
    ): void => {
      const principals = [new iam.ServicePrincipal(name)];
      key.addToResourcePolicy(
        new iam.PolicyStatement({ sid, principals, actions, resources: ["*"], conditions }),
      );
    };
    const basic = ["kms:Decrypt", "kms:GenerateDataKey"];
    const ofLogs = [...basic, "kms:Encrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:DescribeKey"];
    const prefixes = [
      this.logPrefix,
      ...(["states", "msk"] as const).map((service) => deliveredPrefix(this.name, service)),
    ];
    const groups = prefixes.map(
      (prefix) => `arn:${partition}:logs:${region}:${account}:log-group:${prefix}*`,
    );
    service("LogGroups", `logs.${region}.amazonaws.com`, ofLogs, {
      ArnLike: { "kms:EncryptionContext:aws:logs:arn": groups },
    });
    // Both publish to the topic for alarms, which is encrypted. EventBridge does not say for which account or rule it asks
    // KMS: "Adding the aws:SourceAccount, aws:SourceArn, and aws:SourceOrgID to a AWS KMS policy is not supported for
    // EventBridge-to-encrypted topics" (https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html). SNS names the topic.
    service("Alarms", "cloudwatch.amazonaws.com", basic, { StringEquals: { "aws:SourceAccount": account } });
    const topics = `arn:${partition}:sns:${region}:${account}:*`;
    service("Events", "events.amazonaws.com", basic, {
      ArnLike: { "kms:EncryptionContext:aws:sns:topicArn": topics },
    });
  }
}

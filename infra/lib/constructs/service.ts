/**
 * `GraphService`: the processes of a graph, or of several, on top of a `GraphState`. It has the storage nodes, the query function
 * behind a REST API, the workers behind a load balancer, and the monitoring of all of them. All of it can be deleted
 * and created again, because the graph is in the state.
 *
 * The allowed connections (`connect`):
 *
 *     API Gateway → query function → nodes ← workers ← balancer ← clients' security group
 *                                    nodes ↔ nodes → brokers
 *       drop bucket → ingest function → nodes
 *             backups, removal of a graph → brokers
 *     functions → DynamoDB, S3, endpoint of secrets; nodes and workers → also endpoints of logs, images
 *
 * The lifecycle hooks of `nodes.group` and a schedule start moves of replicas (`rebalance`). Events of the drop bucket
 * start loads of dropped files (`ingest`).
 */
import { CfnOutput, Duration, Reference, RemovalPolicy, Stack, Tokenization } from "aws-cdk-lib";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import type * as iam from "aws-cdk-lib/aws-iam";
import { RetentionDays } from "aws-cdk-lib/aws-logs";
import { CfnBucket, type IBucket } from "aws-cdk-lib/aws-s3";
import type { ITopic } from "aws-cdk-lib/aws-sns";
import { Construct } from "constructs";
import { Bundle } from "../bundle.ts";
import { InvalidProp, onlyFalse, samePlace, whole } from "../check.ts";
import { tagCost } from "../cost-tag.ts";
import { setFlags } from "../flags.ts";
import { explain } from "../nag.ts";
import { Autoscaling, boundsOf } from "./autoscaling.ts";
import { Backup, type BackupProps } from "./backup.ts";
import { Encryption, type EncryptionProps } from "./encryption.ts";
import { Endpoints } from "./endpoints.ts";
import { Grants } from "./grants.ts";
import type { IGraphState } from "./graph-state.ts";
import { checkedGraph, type GraphProps, Graphs, type GremlinProps } from "./graphs.ts";
import { Ingest, type IngestProps } from "./ingest.ts";
import { FLEET_PORT } from "./node-setup.ts";
import { Objectives, type ObjectivesProps } from "./objectives.ts";
import { QueryApi } from "./query-api.ts";
import { QueryFunction, type QueryProps } from "./query-function.ts";
import { Rebalance, type RebalanceProps } from "./rebalance.ts";
import { Removal } from "./removal.ts";
import { Rotation } from "./rotation.ts";
import { Secrets } from "./secrets.ts";
import { groupOfNodes, type NodesProps, StorageNodes } from "./storage-nodes.ts";
import type { TracesProps } from "./traces.ts";
import { Upgrade, type UpgradeProps } from "./upgrade.ts";
import { Watch } from "./watch.ts";
import { Workers, type WorkersProps } from "./workers.ts";

/** The processes of a graph. */
export interface GraphServiceProps {
  /** The durable state of the graph. */
  readonly state: IGraphState;
  /**
   * The programs: the archive of the release of these constructs for arm64, `tidegraph-VERSION-linux-arm64.tar.gz`, as a
   * file or an address (`https://…`); or a folder with `bootstrap`, `tidegraph`, `tidegraph-node`, `tidegraph-rebalance`,
   * `tidegraph-ingest`. They are built for arm64, except that `query.architecture` applies to those of the functions:
   * the first and the last two.
   */
  readonly bundle: string;
  /**
   * The SHA-256 of the archive that `bundle` is, in hexadecimal, as SHA256SUMS of the release has it. It is needed for an
   * address.
   *
   * @default a file is taken as it is
   */
  readonly bundleSha256?: string;
  /**
   * Number of partitions with which the graph is created, a power of two. Leave it afterwards: nodes refuse to start with
   * another number. `tidegraph fleet split` raises the number of partitions of a graph.
   *
   * @default 64
   */
  readonly partitions?: number;
  /**
   * Number of shards of the log, each a partition of its topic for a group of the graph's partitions. More than one is
   * needed if the write rate exceeds what one Kafka partition accepts (ADR 0013). It is fixed when the graph is
   * created.
   *
   * @default 1
   */
  readonly shards?: number;
  /**
   * Number of replicas of each partition, at most one for each zone. It is fixed when the graph is created.
   *
   * @default 2
   */
  readonly replication?: number;
  /**
   * What Gremlin means by ids and by properties without a cardinality. It is fixed when the graph is created: nodes
   * refuse to start with other settings.
   *
   * @default - what Neptune means, or the settings with which the graph was created
   */
  readonly gremlin?: GremlinProps;
  /**
   * Further graphs, which share brokers, nodes, functions and workers with the graph of the state. Each has a topic, a map,
   * a drop folder, backups and moves of its own (docs/deploy.md#several-graphs).
   *
   * @default none
   */
  readonly graphs?: GraphProps[];
  /**
   * Whether there is a state machine that removes a graph, with all its data, after it was taken out of `graphs`
   * (docs/deploy.md#several-graphs). Set it to true to remove the last one of them.
   *
   * @default true if `graphs` has any
   */
  readonly graphRemoval?: boolean;
  /**
   * Storage nodes.
   *
   * @default three of i4g.xlarge
   */
  readonly nodes?: NodesProps;
  /**
   * The query function and its API.
   *
   * @default a function with one processor, 500 requests a second
   */
  readonly query?: QueryProps;
  /**
   * How replicas move when nodes join and leave.
   *
   * @default a lost node has two minutes to come back
   */
  readonly rebalance?: RebalanceProps;
  /**
   * How dropped files are loaded.
   *
   * @default 64 tasks at once, each with one processor
   */
  readonly ingest?: IngestProps;
  /**
   * Long-lived workers; `false` for none. Without workers the loader API is not available, but dropped files are still
   * loaded.
   *
   * @default two with one processor each
   */
  readonly workers?: WorkersProps | false;
  /**
   * Upgrades to the next release, which somebody starts after a deployment.
   *
   * @default the first machine serves for 10 minutes before the next one is touched
   */
  readonly upgrade?: UpgradeProps;
  /**
   * Backups on a schedule.
   *
   * @default none
   */
  readonly backup?: BackupProps;
  /**
   * The bucket with the backups of another graph that this one is to be restored from. Nodes then create no graph: they
   * wait until somebody runs `tidegraph-node restore` on one of the machines (docs/backup.md).
   *
   * @default none: nodes create an empty graph
   */
  readonly restoreFrom?: IBucket;
  /**
   * Buckets, besides the drop bucket, from which workers may load files.
   *
   * @default none
   */
  readonly loadFrom?: IBucket[];
  /**
   * Whether the graph has a change stream: records of the log say what they change, which makes them two to three times
   * as long.
   *
   * @default false
   */
  readonly streams?: boolean;
  /**
   * Traces of requests to AWS X-Ray, from the API and from workers to nodes (docs/traces.md).
   *
   * @default none
   */
  readonly traces?: TracesProps;
  /**
   * Time between two rotations of the secret that the processes show each other, in whole days; `false` for none.
   *
   * @default 30 days
   */
  readonly secretRotation?: Duration | false;
  /**
   * Encryption of the connections between nodes, workers and functions, with certificates that the deployment makes and
   * renews (docs/deploy.md).
   *
   * @default none: these connections are plain TCP within the VPC
   */
  readonly encryption?: EncryptionProps;
  /**
   * Objectives of the API, with alarms when they are about to be missed.
   *
   * @default none
   */
  readonly objectives?: ObjectivesProps;
  /**
   * The topic that receives alarms, and events about machines and workers. The policy of an existing topic, and that of the
   * key that encrypts it, have to let CloudWatch and EventBridge publish (docs/deploy.md#watching).
   *
   * @default a new topic, to which somebody has to subscribe
   */
  readonly alarms?: ITopic;
  /**
   * Retention of the processes' logs.
   *
   * @default one month
   */
  readonly logRetention?: RetentionDays;
  /**
   * Whether to create endpoints for S3, DynamoDB, logs, secrets and images.
   *
   * @default true in a VPC that the state created; false in an existing one, which has endpoints or another route
   */
  readonly endpoints?: boolean;
  /**
   * Whether to create the role with which API Gateway writes logs. An account has one such role in each region, for all
   * APIs; use `false` if it is already set.
   *
   * @default true
   */
  readonly apiGatewayAccountRole?: boolean;
}

export class GraphService extends Construct implements ec2.IConnectable {
  readonly api: QueryApi;
  readonly query: QueryFunction;
  readonly nodes: StorageNodes;
  readonly rebalance: Rebalance;
  readonly ingest: Ingest;
  readonly workers: Workers | undefined;
  readonly backup: Backup | undefined;
  /** What removes a graph, if there are several or `graphRemoval` is true. */
  readonly removal: Removal | undefined;
  readonly secrets: Secrets;
  readonly encryption: Encryption | undefined;
  readonly endpoints: Endpoints | undefined;
  readonly watch: Watch;
  readonly upgrade: Upgrade;
  /** Nodes that come and go with the load, if `nodes.most` is given. */
  readonly autoscaling: Autoscaling | undefined;
  private readonly state: IGraphState;
  private readonly graphs: Graphs;
  private readonly grants: Grants;

  constructor(scope: Construct, id: string, props: GraphServiceProps) {
    super(scope, id);
    setFlags(this);
    const { state } = props;
    this.state = state;
    // Processes know table, brokers and buckets by names, which lead to their own account and region.
    const { account, region } = Stack.of(state);
    samePlace("state", state.name, { account, region }, this);
    if (props.alarms) samePlace("alarms", props.alarms.topicArn, props.alarms.env, this, ["region"]);
    this.graphs = checked(props);
    const { graphs } = this;
    if (graphs.areSeveral) state.addGraphs(...graphs.others.map(({ name }) => name));
    const bundle = new Bundle(props.bundle, props.bundleSha256);
    const retention = props.logRetention ?? RetentionDays.ONE_MONTH;
    const loadFrom = props.loadFrom ?? [];
    this.secrets = new Secrets(this, "Secrets", state.key);
    const every = props.secretRotation ?? Duration.days(30);
    let rotation: Rotation | undefined;
    if (every !== false) {
      rotation = new Rotation(this, "Rotation", { state, secret: this.secrets.fleet, every, retention });
    } else {
      explain(this.secrets.fleet, "SMG4", "The prop secretRotation is false: people rotate this secret.");
    }
    const brokers = state.log.addressesFor(this, state);
    const fleetSecret = this.secrets.fleet;
    if (props.encryption) {
      this.encryption = new Encryption(this, "Encryption", {
        ...props.encryption,
        ...{ state, graphs, retention, groupName: groupOfNodes(state) },
      });
    }
    const shared = { state, graphs, bundle, retention, fleetSecret };
    const ofFunctions = { ...shared, certificates: this.encryption?.functions };
    // Each process that writes must say it, or its transactions are missing in the stream.
    const streams = props.streams ?? false;
    if (props.backup) {
      this.backup = new Backup(this, "Backup", {
        ...props.backup,
        state,
        graphs,
        bundle,
        brokers,
        retention,
      });
    }
    this.nodes = new StorageNodes(this, "Nodes", {
      ...props.nodes,
      ...shared,
      certificates: this.encryption?.nodes,
      brokers,
      restoreFrom: props.restoreFrom,
      archives: this.backup?.archives,
      traces: props.traces,
    });
    this.rebalance = new Rebalance(this, "Rebalance", {
      ...props.rebalance,
      state,
      graphs,
      bundle,
      architecture: props.query?.architecture ?? "arm64",
      retention,
      nodes: this.nodes,
    });
    this.ingest = new Ingest(this, "Ingest", {
      ...props.ingest,
      ...ofFunctions,
      architecture: props.query?.architecture ?? "arm64",
    });
    this.query = new QueryFunction(this, "Query", {
      ...props.query,
      ...ofFunctions,
      streams,
      traces: props.traces,
    });
    this.api = new QueryApi(this, "Api", {
      ...props.query,
      state,
      graphs,
      query: this.query,
      retention,
      ownsAccountRole: props.apiGatewayAccountRole ?? true,
      traces: props.traces,
    });
    if (props.workers !== false) {
      this.workers = new Workers(this, "Workers", {
        ...props.workers,
        ...shared,
        secrets: this.secrets,
        certificates: this.encryption?.workers,
        loadFrom,
        streams,
        traces: props.traces,
      });
    }
    if (props.graphRemoval ?? graphs.areSeveral)
      this.removal = new Removal(this, "Removal", { state, graphs, bundle, brokers, retention });
    if (props.endpoints ?? state.network.isOwn) {
      this.endpoints = new Endpoints(this, "Endpoints", {
        state,
        tasks: this.workers !== undefined || this.backup !== undefined,
        sessionManager: props.nodes?.sessionManager ?? false,
        traces: props.traces !== undefined,
        loadFrom,
        backups: this.backup?.bucket,
        restoreFrom: props.restoreFrom,
        assets: this.nodes.program.bucket,
        removal: this.removal !== undefined,
      });
    }
    this.connect();
    this.order();
    this.encryption?.schedule(this.query, this.workers);
    keepBucketsOf(state, this);
    keepExports(state, this);
    this.watch = new Watch(this, "Watch", {
      state,
      graphs,
      api: this.api,
      query: this.query,
      nodes: this.nodes,
      rebalance: this.rebalance,
      rotation,
      ingest: this.ingest,
      workers: this.workers,
      backup: this.backup,
      encryption: this.encryption,
      topic: props.alarms,
    });
    this.watch.ofHeals(this.rebalance.healLog);
    if (props.objectives) {
      const stage = this.api.api.deploymentStage;
      const { topic } = this.watch;
      new Objectives(this, "Objectives", { ...props.objectives, name: state.name, stage, topic });
    }
    const bounds = boundsOf(props.nodes ?? {});
    if (bounds) {
      this.autoscaling = new Autoscaling(this, "Autoscaling", {
        ...props.nodes?.scaling,
        ...{ state, nodes: this.nodes, rebalance: this.rebalance, watch: this.watch, retention },
        most: bounds.most,
      });
    }
    this.upgrade = new Upgrade(this, "Upgrade", {
      ...props.upgrade,
      state,
      nodes: this.nodes,
      rebalance: this.rebalance,
      workers: this.workers,
      query: this.query,
      watch: this.watch,
      retention,
    });
    const { api, nodes, rebalance, ingest, upgrade, backup, workers, secrets, encryption, autoscaling } =
      this;
    this.grants = new Grants(this, {
      ...{ state, graphs, api, nodes, rebalance, ingest, upgrade, backup, autoscaling },
      ...{ workers, secrets, rotation, encryption },
    });
    this.sayWhere(props);
    tagCost(this, state.name);
  }

  /**
   * The way to the workers: `service.connections.allowDefaultPortFrom(client)` lets a client in the VPC connect to their
   * balancer.
   */
  get connections(): ec2.Connections {
    if (this.workers === undefined)
      throw new InvalidProp(
        "workers",
        false,
        "settings of workers: without workers there is nothing to connect to",
      );
    return this.workers.connections;
  }

  /**
   * Lets a grantee send all requests to the API; with a graph, those whose path names it.
   *
   * @param graph by default all graphs
   */
  grantQuery(grantee: iam.IGrantable, graph?: string): iam.Grant {
    return this.grants.query(grantee, graph);
  }

  /**
   * Lets a grantee send queries that read, with GET, and ask for statistics, the stream and the state.
   *
   * @param graph the graph that paths name; by default none, so that they are about the first graph
   */
  grantRead(grantee: iam.IGrantable, graph?: string): iam.Grant {
    return this.grants.read(grantee, graph);
  }

  /**
   * Lets a grantee send queries that read and write, and what `grantRead` allows.
   *
   * @param graph the graph that paths name; by default none, so that they are about the first graph
   */
  grantWrite(grantee: iam.IGrantable, graph?: string): iam.Grant {
    return this.grants.write(grantee, graph);
  }

  /**
   * Lets a grantee drop files that are loaded, and list and read the reports about them.
   *
   * @param into the graph that they are loaded into; by default the first one
   */
  grantDrop(grantee: iam.IGrantable, into?: string): iam.Grant {
    return this.grants.drop(grantee, into);
  }

  /**
   * Lets a grantee run the commands `tidegraph fleet …`: look at the nodes of a graph, move replicas, and split partitions.
   * The commands read and change the partition map, at DynamoDB alone. A grantee could change every item of it.
   *
   * @param graph by default all graphs
   */
  grantFleet(grantee: iam.IGrantable, graph?: string): iam.Grant {
    return this.grants.fleet(grantee, graph);
  }

  /**
   * Lets a grantee do what docs/runbook.md asks of an operator: look at logs, alarms, machines and executions; start and stop
   * upgrades, backups, and the machines that drain a node and settle a load; rotate and issue secrets again; and the commands
   * of `grantFleet`. It allows no query, no shell and no look at a secret.
   */
  grantOperate(grantee: iam.IGrantable): iam.Grant {
    return this.grants.operate(grantee);
  }

  /** Lets a grantee send all requests to the API, and start upgrades and backups and see how they go. */
  grantAdmin(grantee: iam.IGrantable): iam.Grant {
    return this.grants.admin(grantee);
  }

  /**
   * Lets a grantee remove graphs that were taken out of `graphs`, with all their data: start the machine that does it, see
   * how it goes, and stop it.
   */
  grantRemoval(grantee: iam.IGrantable): iam.Grant {
    if (this.removal === undefined)
      throw new InvalidProp("graphRemoval", false, "true: without it there is no machine to start");
    return this.grants.removal(grantee, this.removal.machine);
  }

  /** Sets up the security groups: which components connect to which, and at which port. */
  private connect(): void {
    const { nodes, query, ingest, workers, endpoints } = this;
    const [ofQuery] = query.function.connections.securityGroups;
    const callers: [ec2.SecurityGroup, string][] = [
      [ofQuery as ec2.SecurityGroup, "The query function asks nodes"],
      [ingest.securityGroup, "The function that loads asks nodes"],
    ];
    if (workers) callers.push([workers.securityGroup, "Workers ask nodes"]);
    for (const [group, what] of callers) nodes.allow(group, what);
    // All other nodes send requests to the sequencer.
    nodes.securityGroup.connections.allowInternally(ec2.Port.tcp(FLEET_PORT), "Nodes ask each other");
    // S3 and DynamoDB are reached through gateway endpoints, and they have many addresses. Without internet access this
    // rule leads nowhere else.
    const backup = this.backup?.securityGroup;
    const removal = this.removal?.securityGroup;
    for (const group of [
      nodes.securityGroup,
      ...callers.map(([group]) => group),
      ...(backup ? [backup] : []),
      ...(removal ? [removal] : []),
    ]) {
      group.addEgressRule(ec2.Peer.anyIpv4(), ec2.Port.tcp(443), "AWS, by endpoints");
    }
    this.state.log.letIn(this, nodes.securityGroup);
    for (const [group, who] of [
      [nodes.securityGroup, "Nodes"],
      [workers?.securityGroup, "Workers"],
      [ofQuery as ec2.SecurityGroup, "Query functions"],
      [ingest.securityGroup, "Functions that load"],
      [backup, "Backups"],
    ] as const) {
      if (group)
        endpoints?.securityGroup.addIngressRule(group, ec2.Port.tcp(443), `${who} use services of AWS`);
    }
  }

  /**
   * Sets the order in which CloudFormation creates resources, beyond what references say; it deletes in the reverse
   * order.
   */
  private order(): void {
    const { nodes, workers, endpoints, encryption, query, api, ingest } = this;
    const group = nodes.group.node;
    // Without the endpoints a machine fetches nothing, and a worker has no image.
    if (endpoints) {
      group.addDependency(endpoints);
      workers?.service.node.addDependency(endpoints);
      this.backup?.rule.node.addDependency(endpoints);
    }
    // A worker without certificates does not start, and ECS would give up.
    if (encryption) {
      group.addDependency(encryption.issued);
      workers?.service.node.addDependency(encryption.issued);
    }
    // Late, so that what fails before leaves no machines behind. Once there are machines, removing them needs `Teardown`.
    group.addDependency(query, api, ingest);
    workers?.service.node.addDependency(nodes.teardown);
  }

  /** Writes the outputs that people need after a deployment. */
  private sayWhere(props: GraphServiceProps): void {
    const say = (id: string, description: string, value: string): void => {
      new CfnOutput(this, id, { description, value });
    };
    say("Endpoint", "Queries, signed (IAM, service execute-api)", this.api.url);
    if (this.api.clients)
      say(
        "ApiClientSecurityGroup",
        "Security group for clients of the API",
        this.api.clients.securityGroupId,
      );
    say("DropBucket", "Bucket for files to load, below drop/", this.state.buckets.drop.bucketName);
    say("UpgradeMachine", "Starts the programs of this deployment", this.upgrade.machine.stateMachineArn);
    say("DrainMachine", "Empties a node by hand", this.rebalance.drain.stateMachineArn);
    say("SettleMachine", "Settles a load by hand", this.ingest.settle.stateMachineArn);
    if (this.backup) say("BackupMachine", "Makes a backup by hand", this.backup.machine.stateMachineArn);
    say("AlarmTopic", "Topic of alarms: subscribe to it", this.watch.topic.topicArn);
    if (this.removal)
      say("RemovalMachine", "Removes a graph with all its data", this.removal.machine.stateMachineArn);
    if (this.backup) {
      say("BackupBucket", "Bucket of backups", this.backup.bucket.bucketName);
      // What the policies of a bucket of another account, and of its key, have to name (docs/backup.md#another-account).
      say("BackupRole", "Role of the task that writes backups", this.backup.taskRole.roleArn);
      say("NodesRole", "Role of nodes, which archive the log", this.nodes.group.role.roleArn);
    }
    if (this.workers === undefined) return;
    say(
      "WorkerEndpoint",
      "Queries and loads from within the VPC",
      this.workers.endpoint(props.workers || {}),
    );
    const { accessKeys } = props.workers || {};
    if (accessKeys === undefined)
      say("ClientSecret", "Secret that clients of workers send", this.secrets.client.secretArn);
    say("ClientSecurityGroup", "Security group for clients of workers", this.workers.clients.securityGroupId);
  }
}

/**
 * Keeps the buckets of a state in the stack of its service whatever happens. If the creation of such a stack fails after nodes
 * ran, the data bucket has objects, and CloudFormation cannot delete it: the rollback would fail. In a stack of its own the
 * creation of the state ends before a process starts, so that the buckets are empty if it fails.
 */
function keepBucketsOf({ buckets }: IGraphState, service: GraphService): void {
  for (const { node } of [buckets.data, buckets.drop]) {
    const bucket = node.defaultChild;
    if (bucket instanceof CfnBucket && bucket.stack === Stack.of(service))
      bucket.applyRemovalPolicy(RemovalPolicy.RETAIN);
  }
}

/**
 * Exports the route tables, which only the endpoints import, whether there are endpoints or not. `cdk deploy Service` deploys
 * the state first, and CloudFormation deletes no export that the deployed service still imports: without these exports,
 * endpoints could not be taken away again.
 */
function keepExports({ network }: IGraphState, service: GraphService): void {
  for (const subnet of network.subnets) {
    const producer = Stack.of(subnet);
    const { routeTableId } = subnet.routeTable;
    // The id of a table that exists already is a text, an import, or not known.
    const isMade = routeTableId !== undefined && Reference.isReference(Tokenization.reverse(routeTableId));
    if (isMade && producer !== Stack.of(service)) producer.exportValue(routeTableId);
  }
}

/** Checks props that depend on each other, and returns the graphs. */
function checked(props: GraphServiceProps): Graphs {
  onlyFalse("secretRotation", props.secretRotation, "a duration");
  onlyFalse("workers", props.workers, "settings of workers");
  const { graph, network } = props.state;
  const limits = {
    zones: network.subnets.length,
    nodes: whole("nodes.count", props.nodes?.count ?? 3, 1, 300),
  };
  return new Graphs(checkedGraph("", graph, props, limits), props.graphs ?? [], limits);
}

/**
 * The brokers of the log: Amazon MSK with IAM over TLS as the only access, and three copies of which two have to be in
 * sync (ADR 0008). Brokers delete nothing on their own: the sequencer trims the log once checkpoints contain the
 * records, and a record that a broker deleted earlier would be lost.
 */
import { ArnFormat, Duration, Fn, RemovalPolicy, Stack, Token } from "aws-cdk-lib";
import * as scaling from "aws-cdk-lib/aws-applicationautoscaling";
import { Metric } from "aws-cdk-lib/aws-cloudwatch";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import type * as iam from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type * as logs from "aws-cdk-lib/aws-logs";
import * as msk from "aws-cdk-lib/aws-msk";
import { Construct } from "constructs";
import { InvalidProp, text, whole } from "../check.ts";
import { statement } from "../statement.ts";
import { Brokers } from "./brokers.ts";
import type { IGraphLog, LogAlarm } from "./graph-log.ts";
import type { Network } from "./network.ts";
import type { GraphState } from "./state.ts";

/** Settings of the brokers. */
export interface LogClusterProps {
  /**
   * Instance type of the brokers, which must be standard ones. Express brokers have other settings and are untested.
   *
   * @default "kafka.m7g.large"
   */
  readonly instanceType?: string;
  /**
   * Number of brokers: a multiple of the number of zones, at least three.
   *
   * @default the minimum: three in three zones, four in two
   */
  readonly brokers?: number;
  /**
   * Disk size of each broker at first, in GiB. The log is trimmed below the oldest checkpoint, so the disk has to hold
   * several times the records that are written between two checkpoints.
   *
   * @default 100
   */
  readonly volumeGib?: number;
  /**
   * Size up to which the disks grow by themselves when they fill up, in GiB. They never shrink. The value of `volumeGib`
   * keeps their size.
   *
   * @default ten times volumeGib, at most 16,384
   */
  readonly mostVolumeGib?: number;
  /**
   * The Kafka version, as MSK names it.
   *
   * @default "3.9.x.kraft"
   */
  readonly kafkaVersion?: string;
}

/** MSK's limit of a broker's disk. */
const MOST_GIB = 16_384;

/**
 * Percent of the disks in use at which they grow: below the alarm, which tells that they do not grow fast enough. MSK lets
 * a disk grow once in six hours.
 */
const GROWS_AT = 60;
const ALARM_AT = 75;

/** The port of MSK for IAM clients inside the VPC. */
const BROKER_PORT = 9098;

/** Copies of each record, and how many of them must be in sync before a record is acknowledged. */
const COPIES = 3;
const COPIES_IN_SYNC = 2;

/** Settings of the brokers. `tidegraph-node init` repeats most of them for our topics. */
const PROPERTIES: Record<string, string | number | boolean> = {
  "auto.create.topics.enable": false,
  "default.replication.factor": COPIES,
  "min.insync.replicas": COPIES_IN_SYNC,
  "unclean.leader.election.enable": false,
  "log.cleanup.policy": "delete",
  // Brokers delete nothing on their own; the sequencer trims the log.
  "log.retention.ms": -1,
  "log.retention.bytes": -1,
};

export class LogCluster extends Construct implements IGraphLog {
  readonly cluster: msk.CfnCluster;
  readonly securityGroup: ec2.SecurityGroup;
  /** The number of brokers; MSK numbers them from 1. */
  readonly brokers: number;
  readonly copies = COPIES;
  readonly copiesInSync = COPIES_IN_SYNC;
  /** Further variables of the nodes: IAM tokens are signed for the brokers' region. */
  readonly variables: Readonly<Record<string, string>>;

  constructor(
    scope: Construct,
    id: string,
    props: LogClusterProps & {
      /** Name of the cluster and its configuration. */
      readonly name: string;
      readonly network: Network;
      readonly key: IKey;
      readonly logGroup: logs.ILogGroup;
    },
  ) {
    super(scope, id);
    const { network } = props;
    this.variables = { TIDEGRAPH_KAFKA_IAM_REGION: Stack.of(this).region };
    const zones = network.subnets.length;
    const least = Math.ceil(COPIES / zones) * zones;
    const brokers = whole("log.brokers", props.brokers ?? least, least, 90);
    if (brokers % zones !== 0)
      throw new InvalidProp("log.brokers", brokers, `a multiple of the ${zones} zones`);
    this.brokers = brokers;
    const volumeSize = whole("log.volumeGib", props.volumeGib ?? 100, 1, MOST_GIB);
    const grown = props.mostVolumeGib ?? Math.min(volumeSize * 10, MOST_GIB);
    const most = whole("log.mostVolumeGib", grown, volumeSize, MOST_GIB);
    const instanceType = text(
      "log.instanceType",
      props.instanceType ?? "kafka.m7g.large",
      /^kafka\.(t3\.small|m5\.\d*x?large|m7g\.\d*x?large)$/,
      "a standard broker of MSK, such as kafka.m7g.large",
    );
    this.securityGroup = new ec2.SecurityGroup(this, "SecurityGroup", {
      vpc: network.vpc,
      description: "Brokers of the log: storage nodes come in",
      allowAllOutbound: false,
    });
    const configuration = new msk.CfnConfiguration(this, "Configuration", {
      name: props.name,
      serverProperties: Object.entries(PROPERTIES)
        .map(([name, value]) => `${name}=${value}`)
        .join("\n"),
    });
    configuration.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
    this.cluster = new msk.CfnCluster(this, "Cluster", {
      clusterName: props.name,
      kafkaVersion: props.kafkaVersion ?? "3.9.x.kraft",
      numberOfBrokerNodes: brokers,
      brokerNodeGroupInfo: {
        instanceType,
        clientSubnets: network.subnets.map((subnet) => subnet.subnetId),
        securityGroups: [this.securityGroup.securityGroupId],
        storageInfo: { ebsStorageInfo: { volumeSize } },
        connectivityInfo: { publicAccess: { type: "DISABLED" } },
      },
      clientAuthentication: { sasl: { iam: { enabled: true } }, unauthenticated: { enabled: false } },
      encryptionInfo: {
        encryptionAtRest: { dataVolumeKmsKeyId: props.key.keyArn },
        encryptionInTransit: { clientBroker: "TLS", inCluster: true },
      },
      configurationInfo: {
        arn: configuration.attrArn,
        revision: Token.asNumber(configuration.getAtt("LatestRevision.Revision")),
      },
      // The level without charge. It has the metrics of the alarms.
      enhancedMonitoring: "DEFAULT",
      loggingInfo: {
        brokerLogs: { cloudWatchLogs: { enabled: true, logGroup: props.logGroup.logGroupName } },
      },
    });
    this.cluster.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
    if (most > volumeSize) this.grow(most);
  }

  /** Lets the disks grow. */
  private grow(most: number): void {
    const target = new scaling.CfnScalableTarget(this, "Disks", {
      serviceNamespace: "kafka",
      resourceId: this.cluster.attrArn,
      scalableDimension: "kafka:broker-storage:VolumeSize",
      minCapacity: 1,
      maxCapacity: most,
    });
    new scaling.CfnScalingPolicy(this, "DisksGrow", {
      policyName: "disks-grow",
      policyType: "TargetTrackingScaling",
      scalingTargetId: target.ref,
      targetTrackingScalingPolicyConfiguration: {
        predefinedMetricSpecification: { predefinedMetricType: "KafkaBrokerStorageUtilization" },
        targetValue: GROWS_AT,
        // Disks cannot shrink.
        disableScaleIn: true,
      },
    });
  }

  /** Returns the permissions that a node needs, including those for `init`: only for the topics of its graphs. */
  uses(...topics: string[]): iam.PolicyStatement[] {
    const cluster = this.cluster.attrArn;
    const onTopic = [
      "DescribeTopic",
      "DescribeTopicDynamicConfiguration",
      "CreateTopic",
      "DeleteTopic",
      "ReadData",
      "WriteData",
    ];
    const name = (action: string): string => `kafka-cluster:${action}`;
    return [
      statement("ReachLog", ["Connect", "WriteDataIdempotently"].map(name), [cluster]),
      // Kafka treats deleting records, by which the sequencer trims the log, as deleting a topic.
      statement(
        "UseLog",
        onTopic.map(name),
        topics.map((topic) => this.arnOf("topic", topic)),
      ),
      // The reader names a group, although it keeps track of its own position.
      statement("ReadLog", [name("DescribeGroup")], [this.arnOf("group", "tidegraph")]),
    ];
  }

  reads(...topics: string[]): iam.PolicyStatement[] {
    const name = (action: string): string => `kafka-cluster:${action}`;
    return [
      statement("ReachLog", [name("Connect")], [this.cluster.attrArn]),
      statement(
        "ReadTopic",
        ["DescribeTopic", "ReadData"].map(name),
        topics.map((topic) => this.arnOf("topic", topic)),
      ),
      // The reader names a group, although it keeps track of its own position.
      statement("ReadLog", [name("DescribeGroup")], [this.arnOf("group", "tidegraph")]),
    ];
  }

  /** Asks MSK for the addresses: CloudFormation does not know them. */
  addressesFor(scope: Construct, state: GraphState): string {
    const { addresses } = new Brokers(scope, "Brokers", state, this.cluster.attrArn);
    Brokers.explainProvider(Stack.of(scope));
    return addresses;
  }

  letIn(scope: Construct, nodes: ec2.SecurityGroup): void {
    nodes.addEgressRule(this.securityGroup, ec2.Port.tcp(BROKER_PORT), "Nodes use the log");
    new ec2.CfnSecurityGroupIngress(scope, "NodesUseLog", {
      groupId: this.securityGroup.securityGroupId,
      sourceSecurityGroupId: nodes.securityGroupId,
      ipProtocol: "tcp",
      fromPort: BROKER_PORT,
      toPort: BROKER_PORT,
      description: "Nodes use the log",
    });
  }

  alarms(): LogAlarm[] {
    const full = this.brokerIds().map((broker) => ({
      id: `LogFull${broker}`,
      description:
        "A broker's disk fills up faster than it grows: checkpoints are not written, or log.mostVolumeGib is too small.",
      metric: this.metric("KafkaDataLogsDiskUsed", broker),
      above: ALARM_AT,
    }));
    const offline = {
      id: "LogOffline",
      description: "A partition of the log has no leader: look at the log group brokers.",
      metric: this.metric("OfflinePartitionsCount"),
      above: 0,
      minutes: 2,
    };
    return [offline, ...full];
  }

  disks(): Metric[] {
    return this.brokerIds().map((broker) => this.metric("KafkaDataLogsDiskUsed", broker));
  }

  /** Returns the ids of the brokers, which MSK numbers from 1. */
  private brokerIds(): string[] {
    return Array.from({ length: this.brokers }, (_, index) => String(index + 1));
  }

  /** Returns the maximum of a metric over all brokers, or the metric of one. */
  private metric(metricName: string, broker?: string): Metric {
    const dimensionsMap = {
      "Cluster Name": this.cluster.clusterName,
      ...(broker !== undefined && { "Broker ID": broker }),
    };
    return new Metric({
      namespace: "AWS/Kafka",
      metricName,
      dimensionsMap,
      period: Duration.minutes(1),
      statistic: "Maximum",
    });
  }

  /** Returns the ARN of a topic or group, which contains the name and the unique id of the cluster. */
  private arnOf(resource: string, name: string): string {
    const cluster = Fn.select(1, Fn.split(":cluster/", this.cluster.attrArn));
    return Stack.of(this).formatArn({
      service: "kafka",
      resource,
      resourceName: `${cluster}/${name}`,
      arnFormat: ArnFormat.SLASH_RESOURCE_NAME,
    });
  }
}

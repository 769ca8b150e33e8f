/**
 * The brokers of the log: Amazon MSK with IAM over TLS as the only access, and three copies of which two have to be in
 * sync (ADR 0008). Brokers delete nothing on their own: the sequencer trims the log once checkpoints contain the
 * records, and a record that a broker deleted earlier would be lost.
 */
import { RemovalPolicy, Token } from "aws-cdk-lib";
import * as scaling from "aws-cdk-lib/aws-applicationautoscaling";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type * as logs from "aws-cdk-lib/aws-logs";
import * as msk from "aws-cdk-lib/aws-msk";
import type { Construct } from "constructs";
import { InvalidProp, text, whole } from "../check.ts";
import { COPIES, COPIES_IN_SYNC, MskLog } from "./msk-log.ts";
import type { Network } from "./network.ts";

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
 * Percent of the disks in use at which they grow: below the alarm (`msk-log.ts`), which tells that they do not grow fast enough. MSK lets
 * a disk grow once in six hours.
 */
const GROWS_AT = 60;

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

export class LogCluster extends MskLog {
  readonly cluster: msk.CfnCluster;
  readonly securityGroup: ec2.SecurityGroup;
  /** The number of brokers; MSK numbers them from 1. */
  readonly brokers: number;
  readonly clusterName: string;

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
    this.clusterName = props.name;
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
    // The brokers stay, with their network interfaces.
    this.securityGroup.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
    network.keep();
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

  get clusterArn(): string {
    return this.cluster.attrArn;
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
}

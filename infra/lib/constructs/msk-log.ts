/**
 * A log in Amazon MSK, with IAM over TLS as the only access: what nodes and backups may do with it, how they reach it, and
 * its alarms. `LogCluster` makes its brokers; `ImportedLog` has those of an existing state.
 */
import { ArnFormat, Duration, Fn, Stack } from "aws-cdk-lib";
import { Metric } from "aws-cdk-lib/aws-cloudwatch";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import type * as iam from "aws-cdk-lib/aws-iam";
import { Construct } from "constructs";
import { explainWildcard } from "../nag.ts";
import { denied, statement } from "../statement.ts";
import { Brokers } from "./brokers.ts";
import type { IGraphLog, LogAlarm } from "./graph-log.ts";
import { type IGraphState, TOPICS } from "./graph-state.ts";

/** Copies of each record, and how many of them must be in sync before a record is acknowledged. */
export const COPIES = 3;
export const COPIES_IN_SYNC = 2;

/** Percent of the disks in use at which an alarm goes off. */
const ALARM_AT = 75;

/** The port of MSK for IAM clients inside the VPC. */
const BROKER_PORT = 9098;

export abstract class MskLog extends Construct implements IGraphLog {
  readonly copies: number = COPIES;
  readonly copiesInSync: number = COPIES_IN_SYNC;
  /** Further variables of the nodes: IAM tokens are signed for the brokers' region. */
  readonly variables: Readonly<Record<string, string>>;
  abstract readonly clusterArn: string;
  abstract readonly clusterName: string;
  /** The number of brokers; MSK numbers them from 1. */
  abstract readonly brokers: number;
  abstract readonly securityGroup: ec2.ISecurityGroup;

  constructor(scope: Construct, id: string) {
    super(scope, id);
    this.variables = { TIDEGRAPH_KAFKA_IAM_REGION: Stack.of(this).region };
  }

  /** Returns the permissions that a node needs, including those for `init`: only for the topics of its graphs. */
  uses(...topics: string[]): iam.PolicyStatement[] {
    const cluster = this.clusterArn;
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
      statement("ReachLog", [name("Connect")], [this.clusterArn]),
      statement(
        "ReadTopic",
        ["DescribeTopic", "ReadData"].map(name),
        topics.map((topic) => this.arnOf("topic", topic)),
      ),
      // The reader names a group, although it keeps track of its own position.
      statement("ReadLog", [name("DescribeGroup")], [this.arnOf("group", "tidegraph")]),
    ];
  }

  letDelete(role: iam.Role, kept: string[]): void {
    const name = (action: string): string => `kafka-cluster:${action}`;
    const all = (cluster: string): string => this.arnOf("topic", `${TOPICS}*`, cluster);
    role.addToPolicy(statement("ReachLog", [name("Connect")], [this.clusterArn]));
    role.addToPolicy(
      statement("RemoveTopic", ["DescribeTopic", "DeleteTopic"].map(name), [all(this.clusterArn)]),
    );
    const topics = kept.map((topic) => this.arnOf("topic", topic));
    role.addToPolicy(denied("KeepTopics", [name("DeleteTopic")], topics));
    const reason =
      "Topics of graphs that the deployment does not have any more, by names that it does not know.";
    explainWildcard(role, all(this.clusterArn), reason);
  }

  /** Asks MSK for the addresses: CloudFormation does not know them. */
  addressesFor(scope: Construct, state: IGraphState): string {
    return new Brokers(scope, "Brokers", state, this.clusterArn).addresses;
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
      "Cluster Name": this.clusterName,
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
  private arnOf(resource: string, name: string, clusterArn = this.clusterArn): string {
    const cluster = Fn.select(1, Fn.split(":cluster/", clusterArn));
    return Stack.of(this).formatArn({
      service: "kafka",
      resource,
      resourceName: `${cluster}/${name}`,
      arnFormat: ArnFormat.SLASH_RESOURCE_NAME,
    });
  }
}

/**
 * What the rest of the app needs of the durable log, whoever runs its brokers: MSK in this account (`LogCluster`) or an
 * existing Kafka (`GivenLog`). Another kind of log implements this interface, and `state.ts` chooses it.
 */
import type { Metric } from "aws-cdk-lib/aws-cloudwatch";
import type { SecurityGroup } from "aws-cdk-lib/aws-ec2";
import type { PolicyStatement, Role } from "aws-cdk-lib/aws-iam";
import type { Construct } from "constructs";
import type { IGraphState } from "./graph-state.ts";

/** An alarm on a metric of the log. */
export interface LogAlarm {
  readonly id: string;
  /** What is wrong, and where to look. */
  readonly description: string;
  readonly metric: Metric;
  /** The alarm goes off above this value, in the metric's unit. */
  readonly above: number;
  /** How long the value has to be above it. By default as long as for other alarms. */
  readonly minutes?: number;
}

export interface IGraphLog {
  /** Copies of each record. */
  readonly copies: number;
  /** Number of copies that must be in sync before a record is acknowledged. */
  readonly copiesInSync: number;
  /** Further variables of the nodes. */
  readonly variables: Readonly<Record<string, string>>;

  /** Returns the permissions that a node's role needs to use the topics of graphs. */
  uses(...topics: string[]): PolicyStatement[];

  /** Returns the permissions that a role needs to read the topics of graphs. */
  reads(...topics: string[]): PolicyStatement[];

  /**
   * Lets a role delete the topics of graphs that the deployment does not have any more.
   *
   * @param kept the topics of graphs that it has, which the role must not delete
   */
  letDelete(role: Role, kept: string[]): void;

  /**
   * Returns the addresses of some brokers, as `host:port` with commas between.
   *
   * @param scope where the resources stand that find the addresses, if there have to be any
   */
  addressesFor(scope: Construct, state: IGraphState): string;

  /**
   * Lets nodes connect to the brokers.
   *
   * @param scope where rules of the brokers stand, because the state does not know of nodes
   */
  letIn(scope: Construct, nodes: SecurityGroup): void;

  /** Returns the alarms on the brokers: none for brokers that others watch. */
  alarms(): LogAlarm[];

  /** Returns how full the brokers' disks are, in percent: nothing for brokers that others watch. */
  disks(): Metric[];
}

/**
 * An existing Kafka, used in place of MSK. This app does not create, watch or pay for its brokers; it only knows how
 * nodes reach them.
 *
 * The brokers have to meet the requirements of the log (ADR 0008): `copiesInSync` brokers acknowledge each record, and
 * no broker deletes a record on its own. `tidegraph-node init` sets both for the graph's topic.
 */
import type { Metric } from "aws-cdk-lib/aws-cloudwatch";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import type * as iam from "aws-cdk-lib/aws-iam";
import type { Construct } from "constructs";
import { InvalidProp, text, whole } from "../check.ts";
import type { IGraphLog, LogAlarm } from "./graph-log.ts";

/** How nodes reach existing brokers. */
export interface GivenLogProps {
  /** `host:port` of some brokers, separated by commas. The VPC must be able to resolve the host names. */
  readonly addresses: string;
  /**
   * How nodes connect: with TLS, verified against the machines' trusted authorities, or without encryption.
   *
   * @default "tls"
   */
  readonly security?: "tls" | "plaintext";
  /**
   * Location of the brokers: security groups or address ranges that nodes may reach at the ports in `addresses`. The
   * rules on the brokers' side that let nodes in are up to their owner.
   *
   * @default the private ranges of IPv4 (10.0.0.0/8, 172.16.0.0/12 and 192.168.0.0/16)
   */
  readonly peers?: ec2.IPeer[];
  /**
   * Copies of each record.
   *
   * @default 3
   */
  readonly copies?: number;
  /**
   * Number of copies that must be in sync before a record is acknowledged.
   *
   * @default 2, or 1 if there is only one copy
   */
  readonly copiesInSync?: number;
}

const PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];

export class GivenLog implements IGraphLog {
  /** `host:port` of some brokers, separated by commas. */
  readonly addresses: string;
  readonly copies: number;
  readonly copiesInSync: number;
  /** Further variables of the nodes. */
  readonly variables: Readonly<Record<string, string>>;
  private readonly peers: readonly ec2.IPeer[];
  private readonly ports: readonly number[];

  constructor(props: GivenLogProps) {
    this.addresses = text(
      "log.addresses",
      props.addresses,
      /^[A-Za-z0-9][A-Za-z0-9.-]*:\d{1,5}(,[A-Za-z0-9][A-Za-z0-9.-]*:\d{1,5})*$/,
      "host:port of brokers with commas between, such as b-1.example.com:9094,b-2.example.com:9094",
    );
    const ports = this.addresses.split(",").map((one) => Number(one.slice(one.lastIndexOf(":") + 1)));
    for (const port of ports) whole("log.addresses", port, 1, 65_535);
    this.ports = [...new Set(ports)];
    const security = props.security ?? "tls";
    if (security !== "tls" && security !== "plaintext") {
      throw new InvalidProp("log.security", security, '"tls" or "plaintext"');
    }
    this.variables = security === "tls" ? { TIDEGRAPH_KAFKA_TLS: "true" } : {};
    this.peers = props.peers ?? PRIVATE.map((range) => ec2.Peer.ipv4(range));
    if (this.peers.length === 0) throw new InvalidProp("log.peers", [], "at least one");
    this.copies = whole("log.copies", props.copies ?? 3, 1, 90);
    this.copiesInSync = whole(
      "log.copiesInSync",
      props.copiesInSync ?? Math.min(2, this.copies),
      1,
      this.copies,
    );
  }

  /** Returns the permissions that a node's role needs: none, because these brokers do not use IAM. */
  uses(..._topics: string[]): iam.PolicyStatement[] {
    return [];
  }

  /** Returns the permissions that a reader's role needs: none either. */
  reads(..._topics: string[]): iam.PolicyStatement[] {
    return [];
  }

  /** Needs no permissions: these brokers do not use IAM. */
  letDelete(_role: iam.Role, _kept: string[]): void {}

  addressesFor(): string {
    return this.addresses;
  }

  letIn(_scope: Construct, nodes: ec2.SecurityGroup): void {
    for (const peer of this.peers) {
      for (const port of this.ports) nodes.addEgressRule(peer, ec2.Port.tcp(port), "Nodes use the log");
    }
  }

  alarms(): LogAlarm[] {
    return [];
  }

  disks(): Metric[] {
    return [];
  }
}

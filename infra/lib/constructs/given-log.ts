/**
 * Brokers that are there already: a Kafka of one's own in the place of MSK. They are not made here, not watched, and not paid for; nothing is known of
 * them but how nodes reach them.
 *
 * They have to keep what the log needs (ADR 0008): records are acknowledged by `copiesInSync` brokers, and none is forgotten by itself.
 * `tidegraph-node init` says both for the graph's topic.
 */
import * as ec2 from "aws-cdk-lib/aws-ec2";
import type * as iam from "aws-cdk-lib/aws-iam";
import { InvalidProp, text, whole } from "../check.ts";

/** How nodes reach brokers that are there already. */
export interface GivenLogProps {
  /** `host:port` of some of them, with commas between. The hosts' names have to be known in the VPC. */
  readonly addresses: string;
  /**
   * How nodes speak with them: TLS, checked with the authorities that machines trust, or nothing.
   *
   * @default "tls"
   */
  readonly security?: "tls" | "plaintext";
  /**
   * Where they are: a security group or a range of addresses, which nodes may speak with at the ports in `addresses`. What lets nodes in
   * there is said there.
   *
   * @default the private ranges of IPv4 (10.0.0.0/8, 172.16.0.0/12 and 192.168.0.0/16)
   */
  readonly peers?: readonly ec2.IPeer[];
  /**
   * Copies of each record.
   *
   * @default 3
   */
  readonly copies?: number;
  /**
   * How many of them have to be there before a record is acknowledged.
   *
   * @default 2, or 1 where there is one copy
   */
  readonly copiesInSync?: number;
}

const PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];

export class GivenLog {
  /** `host:port` of some brokers, with commas between them. */
  readonly addresses: string;
  readonly copies: number;
  readonly copiesInSync: number;
  /** What nodes are told besides the addresses. */
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

  /** What a node's role needs: nothing, for they do not ask IAM. */
  uses(_topic: string): iam.PolicyStatement[] {
    return [];
  }

  /** Lets nodes speak with them, as far as nodes are concerned. */
  letOut(nodes: ec2.SecurityGroup): void {
    for (const peer of this.peers) {
      for (const port of this.ports) nodes.addEgressRule(peer, ec2.Port.tcp(port), "Nodes use the log");
    }
  }
}

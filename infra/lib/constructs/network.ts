/**
 * The network that everything stands in. By default a VPC of its own without any way to the internet: no gateway, no NAT, no public subnet, no
 * address that is reachable from outside. What components need of AWS they reach by endpoints, which `Endpoints` makes.
 */
import { Fn } from "aws-cdk-lib";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";
import { InvalidProp, text, whole } from "../check.ts";

/** Where everything stands. */
export interface NetworkProps {
  /**
   * How many availability zones.
   *
   * @default 3
   */
  readonly zones?: number;
  /**
   * Which ones. Instance types with NVMe are not in every zone of a region: `aws ec2 describe-instance-type-offerings --location-type
   * availability-zone` says where.
   *
   * @default the first ones of the region
   */
  readonly availabilityZones?: readonly string[];
  /**
   * The addresses of a VPC that is made here.
   *
   * @default "10.42.0.0/16"
   */
  readonly cidr?: string;
  /**
   * A VPC that is there already. It needs a private or isolated subnet in each of at least two zones, DNS names and resolution switched on.
   *
   * @default one is made
   */
  readonly vpc?: ec2.IVpc;
}

/** A VPC, or the part of one that is used. */
export class Network extends Construct {
  readonly vpc: ec2.IVpc;
  /** One subnet for each zone. */
  readonly subnets: ec2.ISubnet[];
  /** Whether the VPC is ours, so that nobody else made endpoints in it. */
  readonly isOwn: boolean;

  /** @param logs a bucket that gets a line for each refused connection of a VPC that is made here */
  constructor(scope: Construct, id: string, props: NetworkProps, logs: IBucket) {
    super(scope, id);
    const zones = whole("network.zones", props.zones ?? props.availabilityZones?.length ?? 3, 2, 3);
    const named = props.availabilityZones;
    if (named !== undefined && (named.length !== zones || new Set(named).size !== zones)) {
      throw new InvalidProp("network.availabilityZones", named, `${zones} different zones`);
    }
    this.isOwn = props.vpc === undefined;
    this.vpc = props.vpc ?? this.makeVpc(props, zones, logs);
    this.subnets = this.chooseSubnets(zones);
  }

  private makeVpc(props: NetworkProps, zones: number, logs: IBucket): ec2.Vpc {
    const cidr = text(
      "network.cidr",
      props.cidr ?? "10.42.0.0/16",
      /^\d{1,3}(\.\d{1,3}){3}\/(1[6-9]|2[0-2])$/,
      "an IPv4 range with /16 to /22, such as 10.42.0.0/16",
    );
    const first = Array.from({ length: zones }, (_, index) => Fn.select(index, Fn.getAzs()));
    const vpc = new ec2.Vpc(this, "Vpc", {
      ipAddresses: ec2.IpAddresses.cidr(cidr),
      availabilityZones: [...(props.availabilityZones ?? first)],
      natGateways: 0,
      subnetConfiguration: [{ name: "graph", subnetType: ec2.SubnetType.PRIVATE_ISOLATED }],
      // A custom resource would do it. Nothing of ours is in that group.
      restrictDefaultSecurityGroup: false,
    });
    vpc.addFlowLog("Refused", {
      destination: ec2.FlowLogDestination.toS3(logs, "vpc/"),
      trafficType: ec2.FlowLogTrafficType.REJECT,
    });
    return vpc;
  }

  /** Those without a public address, one for each zone. */
  private chooseSubnets(zones: number): ec2.ISubnet[] {
    const byZone = new Map<string, ec2.ISubnet>();
    for (const subnet of [...this.vpc.isolatedSubnets, ...this.vpc.privateSubnets]) {
      if (!byZone.has(subnet.availabilityZone)) byZone.set(subnet.availabilityZone, subnet);
    }
    const chosen = [...byZone.values()].slice(0, zones);
    if (chosen.length < zones) {
      const found = chosen.map((subnet) => subnet.availabilityZone);
      throw new InvalidProp("network.vpc", found, `a VPC with private or isolated subnets in ${zones} zones`);
    }
    return chosen;
  }
}

/**
 * The network of the deployment. By default it is a VPC of its own without internet access: no gateway, no NAT, no
 * public subnet, and no address that is reachable from outside. Components reach AWS through endpoints, which
 * `Endpoints` creates.
 */
import { CfnResource, Fn, RemovalPolicy } from "aws-cdk-lib";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";
import { InvalidProp, text, whole } from "../check.ts";
import type { IGraphNetwork } from "./graph-state.ts";

/** Settings of the network. */
export interface NetworkProps {
  /**
   * Number of availability zones.
   *
   * @default 3
   */
  readonly zones?: number;
  /**
   * The availability zones to use. Not every zone of a region has instance types with NVMe; `aws ec2
   * describe-instance-type-offerings --location-type availability-zone` lists the zones that do.
   *
   * @default the first ones of the region
   */
  readonly availabilityZones?: string[];
  /**
   * The address range of the VPC, if this app creates it.
   *
   * @default "10.42.0.0/16"
   */
  readonly cidr?: string;
  /**
   * An existing VPC. It needs a private or isolated subnet in each of at least two zones, with DNS names and DNS
   * resolution enabled.
   *
   * @default a new VPC
   */
  readonly vpc?: ec2.IVpc;
}

/** A VPC, or the part of one that the deployment uses. */
export class Network extends Construct implements IGraphNetwork {
  readonly vpc: ec2.IVpc;
  /** One subnet in each zone. */
  readonly subnets: ec2.ISubnet[];
  /** Whether this app created the VPC, so that it has no other endpoints. */
  readonly isOwn: boolean;

  /** @param logs the bucket that logs each refused connection of a VPC that is created here */
  constructor(scope: Construct, id: string, props: NetworkProps, logs: IBucket | undefined) {
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

  /**
   * Keeps the VPC and its subnets when the stack is deleted, if this app made them: what is retained in them has network
   * interfaces there, so that AWS refuses to delete them. Flow logs are deleted.
   */
  keep(): void {
    if (!this.isOwn) return;
    for (const one of this.vpc.node.findAll()) {
      if (CfnResource.isCfnResource(one) && one.cfnResourceType !== "AWS::EC2::FlowLog")
        one.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
    }
  }

  private makeVpc(props: NetworkProps, zones: number, logs: IBucket | undefined): ec2.Vpc {
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
      // CDK would add a custom resource for this, and none of our resources is in that group.
      restrictDefaultSecurityGroup: false,
    });
    if (logs) {
      vpc.addFlowLog("Refused", {
        destination: ec2.FlowLogDestination.toS3(logs, "vpc/"),
        trafficType: ec2.FlowLogTrafficType.REJECT,
      });
    }
    return vpc;
  }

  /** Chooses one subnet without public addresses in each zone. */
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

/**
 * How components reach AWS without a way to the internet. S3 and DynamoDB by gateway endpoints, which cost nothing, and only what this deployment
 * uses; the rest by interface endpoints, which cost by the hour and zone, so there are no more of them than somebody cannot live without:
 *
 * - `logs`: nodes and workers write their logs and metrics.
 * - `secretsmanager`: nodes and workers fetch the secret of the fleet.
 * - `ecr.api`, `ecr.dkr`: Fargate pulls the worker's image. Only where there are workers.
 *
 * The query function needs none of them: Lambda takes its logs and its secret on its own ways.
 */
import { Stack } from "aws-cdk-lib";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import * as iam from "aws-cdk-lib/aws-iam";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";
import type { GraphState } from "./state.ts";

/** Settings of endpoints. */
export interface EndpointsProps {
  readonly state: GraphState;
  /** Whether there are workers. */
  readonly workers: boolean;
  /** Buckets besides our own that files are loaded from. */
  readonly loadFrom: readonly IBucket[];
  /** The bucket that programs are downloaded from. */
  readonly assets: IBucket;
}

export class Endpoints extends Construct {
  /** Of the interface endpoints. */
  readonly securityGroup: ec2.SecurityGroup;

  constructor(scope: Construct, id: string, props: EndpointsProps) {
    super(scope, id);
    const { vpc, subnets } = props.state.network;
    const at = [{ subnets }];
    const { GatewayVpcEndpointAwsService: gateway, InterfaceVpcEndpointAwsService: service } = ec2;
    const objects = new ec2.GatewayVpcEndpoint(this, "S3", { vpc, service: gateway.S3, subnets: at });
    for (const allowed of this.ofS3(props)) objects.addToPolicy(allowed);
    const map = new ec2.GatewayVpcEndpoint(this, "DynamoDB", { vpc, service: gateway.DYNAMODB, subnets: at });
    const table = props.state.map.table.tableArn;
    const items = ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"];
    map.addToPolicy(allow(items, [table, `${table}/index/*`]));
    this.securityGroup = new ec2.SecurityGroup(this, "SecurityGroup", {
      vpc,
      description: "Interface endpoints: nodes and workers come in",
      allowAllOutbound: false,
    });
    const needed = [
      ["Logs", service.CLOUDWATCH_LOGS],
      ["Secrets", service.SECRETS_MANAGER],
      ...(props.workers
        ? ([
            ["Ecr", service.ECR],
            ["Images", service.ECR_DOCKER],
          ] as const)
        : []),
    ] as const;
    for (const [name, of] of needed) {
      new ec2.InterfaceVpcEndpoint(this, name, {
        vpc,
        service: of,
        subnets: { subnets },
        securityGroups: [this.securityGroup],
        // Who comes in is said by the security groups of nodes and workers.
        open: false,
      });
    }
  }

  /** What may pass to S3: our buckets, programs, AWS's packages for the machines, and layers of images. */
  private ofS3({ state, loadFrom, assets }: EndpointsProps): iam.PolicyStatement[] {
    const { region, partition } = Stack.of(this);
    const { data, drop } = state.buckets;
    const [changed, read] = [[data], [drop, ...loadFrom]];
    const write = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"];
    const below = (bucket: IBucket): string => `${bucket.bucketArn}/*`;
    return [
      allow(
        ["s3:ListBucket"],
        [...changed, ...read].map((bucket) => bucket.bucketArn),
      ),
      allow(write, changed.map(below)),
      allow(
        ["s3:GetObject"],
        [
          ...[...read, assets].map(below),
          `arn:${partition}:s3:::al2023-repos-${region}-*/*`,
          `arn:${partition}:s3:::prod-${region}-starport-layer-bucket/*`,
        ],
      ),
    ];
  }
}

/** A statement of an endpoint's policy: whoever it is, his own policy has to allow it too. */
function allow(actions: string[], resources: string[]): iam.PolicyStatement {
  return new iam.PolicyStatement({ principals: [new iam.AnyPrincipal()], actions, resources });
}

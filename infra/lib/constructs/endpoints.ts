/**
 * The VPC endpoints through which components reach AWS without internet access. S3 and DynamoDB have gateway endpoints,
 * which are free of charge and admit only the resources of this deployment. The rest are interface endpoints, which are
 * billed by hour and zone, so there are only the necessary ones:
 *
 * - `logs`: nodes and workers write their logs and metrics.
 * - `secretsmanager`: nodes, workers and functions fetch the secret of the fleet.
 * - `ssm`, `ssmmessages`: people open a shell on a machine. They exist only if that is allowed.
 * - `xray`: agents send traces. It exists only if there are traces.
 * - `ecr.api`, `ecr.dkr`: Fargate pulls images. They exist only if there are workers or backups.
 *
 * An interface endpoint admits principals of this account only, so that nobody sends data out through it with the
 * credentials of another one. Lambda delivers the logs of functions by another path.
 */
import { Stack } from "aws-cdk-lib";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import * as iam from "aws-cdk-lib/aws-iam";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";
import type { IGraphState } from "./graph-state.ts";
import { FINDS, REMOVES } from "./removal.ts";

/**
 * What programs in the VPC ask DynamoDB to do with the items of the map, transactions included. `tidegraph-node
 * drop-graph` alone deletes items: the role of the function that removes a graph may, or a person on a machine.
 */
export const ITEM_ACTIONS = [
  "dynamodb:GetItem",
  "dynamodb:Query",
  "dynamodb:PutItem",
  "dynamodb:UpdateItem",
  "dynamodb:DeleteItem",
];
/** What programs in the VPC do with objects that they may change. */
export const OBJECT_ACTIONS = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"];

/** Settings of endpoints. */
export interface EndpointsProps {
  readonly state: IGraphState;
  /** Whether the service has tasks on Fargate: workers or backups. */
  readonly tasks: boolean;
  /** Whether people may open a shell on the machines. */
  readonly sessionManager: boolean;
  /** Whether processes send traces. */
  readonly traces: boolean;
  /** Further buckets from which files are loaded. */
  readonly loadFrom: readonly IBucket[];
  /** The bucket that backups are written to. */
  readonly backups: IBucket | undefined;
  /** The bucket of backups that a graph is restored from. */
  readonly restoreFrom: IBucket | undefined;
  /** The bucket from which machines download programs. */
  readonly assets: IBucket;
  /** Whether the service has the function that removes a graph. */
  readonly removal: boolean;
}

export class Endpoints extends Construct {
  /** The security group of the interface endpoints. */
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
    map.addToPolicy(allow(ITEM_ACTIONS, [table, `${table}/index/*`]));
    this.securityGroup = new ec2.SecurityGroup(this, "SecurityGroup", {
      vpc,
      description: "Interface endpoints: nodes, workers and functions come in",
      allowAllOutbound: false,
    });
    const needed = [
      ["Logs", service.CLOUDWATCH_LOGS],
      ["Secrets", service.SECRETS_MANAGER],
      ...(props.sessionManager
        ? ([
            ["Ssm", service.SSM],
            ["SsmMessages", service.SSM_MESSAGES],
          ] as const)
        : []),
      ...(props.traces ? ([["Traces", service.XRAY]] as const) : []),
      ...(props.tasks
        ? ([
            ["Ecr", service.ECR],
            ["Images", service.ECR_DOCKER],
          ] as const)
        : []),
    ] as const;
    for (const [name, of] of needed) {
      const endpoint = new ec2.InterfaceVpcEndpoint(this, name, {
        vpc,
        service: of,
        subnets: { subnets },
        securityGroups: [this.securityGroup],
        // The ingress rules come from the security groups of nodes, workers and functions.
        open: false,
      });
      endpoint.addToPolicy(ours(Stack.of(this).account));
    }
  }

  /** What the S3 endpoint admits: our buckets, programs, AWS's packages for the machines, and image layers. */
  private ofS3({
    state,
    loadFrom,
    backups,
    restoreFrom,
    assets,
    removal,
  }: EndpointsProps): iam.PolicyStatement[] {
    const { region, partition } = Stack.of(this);
    const { data, drop } = state.buckets;
    const changed = backups ? [data, backups] : [data];
    const read = [drop, ...loadFrom, ...(restoreFrom ? [restoreFrom] : [])];
    const below = (bucket: IBucket): string => `${bucket.bucketArn}/*`;
    return [
      allow(
        ["s3:ListBucket"],
        [...changed, ...read].map((bucket) => bucket.bucketArn),
      ),
      allow(OBJECT_ACTIONS, changed.map(below)),
      allow(
        ["s3:GetObject"],
        [
          ...[...read, assets].map(below),
          `arn:${partition}:s3:::al2023-repos-${region}-*/*`,
          `arn:${partition}:s3:::prod-${region}-starport-layer-bucket/*`,
        ],
      ),
      ...(removal
        ? [
            allow(
              FINDS,
              [data, drop].map((bucket) => bucket.bucketArn),
            ),
            allow(REMOVES, [
              `${data.bucketArn}/graphs/*`,
              `${drop.bucketArn}/drop/*`,
              `${drop.bucketArn}/reports/*`,
            ]),
          ]
        : []),
    ];
  }
}

/**
 * Makes a statement of an endpoint's policy. It admits any principal, because the principal's own policy must allow the
 * action too.
 */
function allow(actions: string[], resources: string[]): iam.PolicyStatement {
  return new iam.PolicyStatement({ principals: [new iam.AnyPrincipal()], actions, resources });
}

/** Makes the statement of an interface endpoint's policy. It admits whatever principals of the account may do. */
function ours(account: string): iam.PolicyStatement {
  return new iam.PolicyStatement({
    principals: [new iam.AnyPrincipal()],
    actions: ["*"],
    resources: ["*"],
    conditions: { StringEquals: { "aws:PrincipalAccount": account } },
  });
}

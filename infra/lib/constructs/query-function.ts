/**
 * The query function: `tidegraph-lambda` (docs/lambda.md), in the VPC of the nodes. It reads the map and asks nodes and the sequencer; it never
 * speaks with the log or S3.
 */
import { Duration } from "aws-cdk-lib";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import * as iam from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type * as logs from "aws-cdk-lib/aws-logs";
import type { ISecret } from "aws-cdk-lib/aws-secretsmanager";
import { Construct } from "constructs";
import type { Architecture, Bundle } from "../bundle.ts";
import { InvalidProp, whole } from "../check.ts";
import { processLog } from "../log-group.ts";
import { explainWildcard } from "../nag.ts";
import { statement, useKey } from "../statement.ts";
import type { GraphState } from "./state.ts";

/** Settings of queries through the API. */
export interface QueryProps {
  /**
   * MiB of memory of the function; its share of processors grows with it, one at 1,769.
   *
   * @default 1769
   */
  readonly memoryMib?: number;
  /**
   * The processor, for which `bootstrap` and `tidegraph-rebalance` in the bundle have to be.
   *
   * @default "arm64", which costs less
   */
  readonly architecture?: Architecture;
  /**
   * Longest time of a query in seconds, at most what API Gateway streams an answer for.
   *
   * @default 120
   */
  readonly timeoutSeconds?: number;
  /**
   * Most environments of the function at the same time; beyond that callers are told to slow down.
   *
   * @default what the account allows
   */
  readonly concurrency?: number;
  /**
   * Requests a second that the API takes on average.
   *
   * @default 500
   */
  readonly requestsPerSecond?: number;
  /**
   * Requests that it takes at once beyond that.
   *
   * @default 1000
   */
  readonly burst?: number;
  /**
   * What the function logs, such as `tidegraph_fleet=debug`.
   *
   * @default "info"
   */
  readonly log?: string;
}

/** What the function needs. */
interface Parts extends QueryProps {
  readonly state: GraphState;
  readonly bundle: Bundle;
  readonly fleetSecret: ISecret;
  readonly retention: logs.RetentionDays;
}

const PROCESSORS: Partial<Record<string, lambda.Architecture>> = {
  arm64: lambda.Architecture.ARM_64,
  x86_64: lambda.Architecture.X86_64,
} satisfies Record<Architecture, lambda.Architecture>;

export class QueryFunction extends Construct {
  readonly function: lambda.Function;
  readonly timeout: Duration;

  constructor(scope: Construct, id: string, props: Parts) {
    super(scope, id);
    const { state, bundle } = props;
    const { vpc, subnets } = state.network;
    const seconds = whole("query.timeoutSeconds", props.timeoutSeconds ?? 120, 1, 900);
    this.timeout = Duration.seconds(seconds);
    const memorySize = whole("query.memoryMib", props.memoryMib ?? 1769, 128, 10_240);
    const { concurrency } = props;
    if (concurrency !== undefined) whole("query.concurrency", concurrency, 1);
    const architecture = props.architecture ?? "arm64";
    const processor = PROCESSORS[architecture];
    if (processor === undefined) {
      const known = Object.keys(PROCESSORS).join(" or ");
      throw new InvalidProp("query.architecture", architecture, known);
    }
    const logGroup = processLog(this, "Logs", state, "query", props.retention);
    const securityGroup = new ec2.SecurityGroup(this, "SecurityGroup", {
      vpc,
      description: "The query function: nobody comes in",
      allowAllOutbound: false,
    });
    this.function = new lambda.Function(this, "Function", {
      description: `Queries of the graph ${state.graph}`,
      runtime: lambda.Runtime.PROVIDED_AL2023,
      architecture: processor,
      handler: "bootstrap",
      code: lambda.Code.fromAsset(bundle.folderWith("bootstrap", [], architecture)),
      memorySize,
      timeout: this.timeout,
      ...(concurrency !== undefined && { reservedConcurrentExecutions: concurrency }),
      vpc,
      vpcSubnets: { subnets },
      securityGroups: [securityGroup],
      role: this.role(state, logGroup),
      logGroup,
      environmentEncryption: Key.fromKeyArn(this, "Key", state.key.keyArn),
      environment: {
        TIDEGRAPH_GRAPH: state.graph,
        TIDEGRAPH_TABLE_PREFIX: state.map.prefix,
        // CloudFormation puts the secret itself there. Fetching it would cost an endpoint, and time of each cold start.
        TIDEGRAPH_FLEET_TOKEN: props.fleetSecret.secretValue.unsafeUnwrap(),
        TIDEGRAPH_QUERY_TIMEOUT_MS: String(seconds * 1000),
        TIDEGRAPH_RESPONSES: "stream",
        TIDEGRAPH_LOG: props.log ?? "info",
      },
    });
  }

  private role(state: GraphState, logGroup: logs.ILogGroup): iam.Role {
    const role = new iam.Role(this, "Role", {
      assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
      description: `The query function of ${state.name}`,
    });
    for (const allowed of state.map.reads(state.graph)) role.addToPolicy(allowed);
    const write = ["logs:CreateLogStream", "logs:PutLogEvents"];
    role.addToPolicy(statement("WriteLog", write, [logGroup.logGroupArn]));
    role.addToPolicy(useKey(this, state.key, ["dynamodb", "lambda"]));
    // What Lambda does to stand in a VPC.
    const interfaces = ["Create", "Delete", "Describe"].map((verb) =>
      verb === "Describe" ? "ec2:DescribeNetworkInterfaces" : `ec2:${verb}NetworkInterface`,
    );
    const addresses = ["ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"];
    role.addToPolicy(statement("StandInVpc", [...interfaces, "ec2:DescribeSubnets", ...addresses], ["*"]));
    explainWildcard(
      role,
      "*",
      "Lambda's way into a VPC: its network interfaces have no names before they are made, and describing knows no resources.",
    );
    return role;
  }
}

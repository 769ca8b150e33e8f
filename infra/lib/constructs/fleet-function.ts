/**
 * A function that talks to the fleet: a program in the VPC of the nodes that reads the map and sends requests to nodes
 * and the sequencer, as a worker does. The query function is one; the function that loads dropped files is another.
 * This file has their common parts: the variables by which they find the fleet, and their permissions.
 */
import { type Duration, RemovalPolicy } from "aws-cdk-lib";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import * as iam from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type * as logs from "aws-cdk-lib/aws-logs";
import type { ISecret } from "aws-cdk-lib/aws-secretsmanager";
import type { Construct } from "constructs";
import type { Architecture } from "../bundle.ts";
import { InvalidProp } from "../check.ts";
import { processLog } from "../log-group.ts";
import { explainWildcard } from "../nag.ts";
import { readSecret, statement, useKey } from "../statement.ts";
import type { IGraphState } from "./graph-state.ts";
import type { Graphs } from "./graphs.ts";
import { collector, type TracesProps, traceVariables } from "./traces.ts";

/** Settings of one of these functions. */
export interface FleetFunctionProps {
  readonly state: IGraphState;
  readonly graphs: Graphs;
  /** The name of the function in logs and roles. */
  readonly name: string;
  readonly description: string;
  /** A folder with `bootstrap`. */
  readonly code: string;
  readonly architecture: Architecture;
  readonly memorySize: number;
  readonly timeout: Duration;
  /** Maximum number of concurrent environments; `undefined` for the account's limit. */
  readonly concurrency?: number | undefined;
  readonly fleetSecret: ISecret;
  /** The secret with certificates of functions; `undefined` for none. */
  readonly certificates: ISecret | undefined;
  readonly retention: logs.RetentionDays;
  /** The log filter. */
  readonly log: string;
  /** Services, besides DynamoDB and Lambda, through which the function uses the key. */
  readonly keyServices?: readonly string[];
  /** Further environment variables of this function. */
  readonly environment: Readonly<Record<string, string>>;
  /** Traces of the function; by default none. */
  readonly traces?: TracesProps | undefined;
}

/** The resources that were created. */
export interface FleetFunction {
  readonly function: lambda.Function;
  readonly role: iam.Role;
  readonly securityGroup: ec2.SecurityGroup;
}

const PROCESSORS: Partial<Record<string, lambda.Architecture>> = {
  arm64: lambda.Architecture.ARM_64,
  x86_64: lambda.Architecture.X86_64,
} satisfies Record<Architecture, lambda.Architecture>;

/** Returns the processor for the value of a prop. */
export function processor(prop: string, architecture: Architecture): lambda.Architecture {
  const found = PROCESSORS[architecture];
  if (found === undefined) throw new InvalidProp(prop, architecture, Object.keys(PROCESSORS).join(" or "));
  return found;
}

/** Creates a function with its log, role and security group. It needs a scope of its own. */
export function fleetFunction(scope: Construct, props: FleetFunctionProps): FleetFunction {
  const { state, name } = props;
  const { vpc, subnets } = state.network;
  const logGroup = processLog(scope, "Logs", state, name, props.retention);
  const securityGroup = new ec2.SecurityGroup(scope, "SecurityGroup", {
    vpc,
    description: `The ${name} function: nobody comes in`,
    allowAllOutbound: false,
  });
  const role = makeRole(scope, props, logGroup);
  const { concurrency, traces } = props;
  const architecture = processor("query.architecture", props.architecture);
  const made = new lambda.Function(scope, "Function", {
    description: props.description,
    runtime: lambda.Runtime.PROVIDED_AL2023,
    architecture,
    handler: "bootstrap",
    code: lambda.Code.fromAsset(props.code),
    memorySize: props.memorySize,
    timeout: props.timeout,
    ...(concurrency !== undefined && { reservedConcurrentExecutions: concurrency }),
    // The role gets the rights of X-Ray, for Lambda's segments and for the collector's.
    ...(traces && { tracing: lambda.Tracing.ACTIVE, layers: [collector(scope, traces, architecture)] }),
    vpc,
    vpcSubnets: { subnets },
    securityGroups: [securityGroup],
    role,
    logGroup,
    // Callers have the version before until an upgrade gives them the new one.
    currentVersionOptions: { removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE },
    environmentEncryption: Key.fromKeyArn(scope, "Key", state.key.keyArn),
    environment: {
      TIDEGRAPH_GRAPH: props.graphs.variable,
      TIDEGRAPH_TABLE_PREFIX: state.map.prefix,
      // Fetched at run time: CloudFormation would insert the secret once, and not again when it is rotated.
      TIDEGRAPH_FLEET_SECRET: props.fleetSecret.secretArn,
      ...(props.certificates && { TIDEGRAPH_TLS_SECRET: props.certificates.secretArn }),
      ...(traces && traceVariables(traces)),
      ...props.environment,
      TIDEGRAPH_LOG: props.log,
    },
  });
  return { function: made, role, securityGroup };
}

function makeRole(scope: Construct, props: FleetFunctionProps, logGroup: logs.ILogGroup): iam.Role {
  const { state } = props;
  const role = new iam.Role(scope, "Role", {
    assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
    description: `The ${props.name} function of ${state.name}`,
  });
  for (const allowed of state.map.reads(...props.graphs.names)) role.addToPolicy(allowed);
  const write = ["logs:CreateLogStream", "logs:PutLogEvents"];
  role.addToPolicy(statement("WriteLog", write, [logGroup.logGroupArn]));
  role.addToPolicy(readSecret(props.fleetSecret, props.certificates));
  const services = ["dynamodb", "lambda", "secretsmanager", ...(props.keyServices ?? [])];
  role.addToPolicy(useKey(scope, state.key, services));
  standInVpc(role);
  return role;
}

/** Lets a role attach its function to a VPC. */
export function standInVpc(role: iam.Role): void {
  const interfaces = ["Create", "Delete", "Describe"].map((verb) =>
    verb === "Describe" ? "ec2:DescribeNetworkInterfaces" : `ec2:${verb}NetworkInterface`,
  );
  const addresses = ["ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"];
  role.addToPolicy(statement("StandInVpc", [...interfaces, "ec2:DescribeSubnets", ...addresses], ["*"]));
  explainWildcard(
    role,
    "*",
    "Lambda's way into a VPC: its network interfaces have no names before they are made, and describing knows no resources. X-Ray's traces, if there are any, are no resources.",
  );
}

/**
 * Templates with the longest names and ARNs that AWS can give in the place of references. What has a limit of bytes is
 * measured with them, because a template itself has only short names of what it refers to.
 */
import type { Template } from "aws-cdk-lib/assertions";
import { deployed } from "./deployed.ts";

/** Where a deployment is, in the parts of ARNs. */
export interface Place {
  readonly partition: string;
  readonly region: string;
}

/** A region of each partition, with a name that is as long as any. */
export const PLACES: readonly Place[] = [
  { partition: "aws", region: "ap-southeast-1" },
  { partition: "aws-cn", region: "cn-northwest-1" },
  { partition: "aws-us-gov", region: "us-gov-east-1" },
];

/** CloudFormation's limit of the name of a stack. Names that it makes begin with it, and are cut. */
const STACK = "s".repeat(128);

/** Limits of names that CloudFormation makes; those of other types are ids, such as those of subnets. */
const MOST: Readonly<Record<string, number>> = {
  "AWS::CloudWatch::Alarm": 255,
  "AWS::DynamoDB::Table": 255,
  "AWS::ECS::Cluster": 255,
  "AWS::ECS::Service": 255,
  "AWS::Events::Rule": 64,
  "AWS::IAM::Role": 64,
  "AWS::Lambda::Function": 64,
  "AWS::S3::Bucket": 63,
  "AWS::SNS::Topic": 256,
  "AWS::StepFunctions::StateMachine": 80,
};

/** Properties that give a resource its name. */
const NAMING = [
  "AlarmName",
  "AutoScalingGroupName",
  "ClusterName",
  "FunctionName",
  "LogGroupName",
  "StateMachineName",
  "TableName",
];

/** Attributes that AWS gives. */
const ATTRIBUTES: Readonly<Record<string, unknown>> = {
  // MSK names three brokers; their names have a part of the cluster's.
  Addresses: ["1", "2", "3"]
    .map((n) => `b-${n}.${"c".repeat(32)}.abcdef.c12.kafka.ap-southeast-1.amazonaws.com:9098`)
    .join(),
  Version: "1000",
  GroupId: "sg-0123456789abcdef0",
  DnsEntries: ["1", "2", "3"].map((n) => `Z${n}:${"d".repeat(120)}`),
};

function generated(logicalId: string, type: string): string {
  const suffix = "R".repeat(12);
  if (type === "AWS::SecretsManager::Secret") return `${logicalId}-${suffix}`;
  return `${STACK}-${logicalId}-${suffix}`.slice(0, MOST[type] ?? "subnet-0123456789abcdef0".length);
}

/** Returns what replaces the references in values of these templates, by the names of their stacks. */
export function longest(
  templates: Readonly<Record<string, Template>>,
  place: Place,
): (stack: string, value: unknown) => unknown {
  // A file's or an image's id.
  const parameters = Object.values(templates).flatMap((one) => Object.keys(one.toJSON().Parameters ?? {}));
  const { values } = deployed(
    templates,
    Object.fromEntries(parameters.map((name) => [name, "p".repeat(63)])),
    { ...place, stackName: STACK, generated, naming: NAMING },
  );
  return (stack, value) => values.of(stack, withAttributes(value));
}

/** Returns a value of a template with the attributes that AWS gives. */
function withAttributes(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withAttributes);
  const { "Fn::GetAtt": [, attribute = ""] = [] } = value as { "Fn::GetAtt"?: string[] };
  return (
    ATTRIBUTES[attribute] ??
    Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withAttributes(one)]))
  );
}

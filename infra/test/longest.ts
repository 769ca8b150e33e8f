/**
 * Templates with the longest names and ARNs that AWS can give in the place of references. What has a limit of bytes is
 * measured with them, because a template itself has only short names of what it refers to.
 */

import type { Template } from "aws-cdk-lib/assertions";
import { type Resource, resources } from "./support.ts";

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

const ACCOUNT = "123456789012";
const UUID = "01234567-89ab-cdef-0123-456789abcdef";
/** CloudFormation's limit of the name of a stack. Names that it makes begin with it, and are cut. */
const STACK = "s".repeat(128);
/** MSK names three brokers; their names have a part of the cluster's. */
const BROKERS = ["1", "2", "3"]
  .map((n) => `b-${n}.${"c".repeat(32)}.abcdef.c12.kafka.ap-southeast-1.amazonaws.com:9098`)
  .join();

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
const NAMES = [
  "AlarmName",
  "AutoScalingGroupName",
  "ClusterName",
  "FunctionName",
  "LogGroupName",
  "StateMachineName",
  "TableName",
];

/** Services and resources in ARNs of a name. */
const ARNS: Readonly<Record<string, (name: string) => readonly [service: string, resource: string]>> = {
  "AWS::CloudWatch::Alarm": (name) => ["cloudwatch", `alarm:${name}`],
  "AWS::DynamoDB::Table": (name) => ["dynamodb", `table/${name}`],
  "AWS::ECS::Cluster": (name) => ["ecs", `cluster/${name}`],
  "AWS::ECS::Service": (name) => ["ecs", `service/${"c".repeat(255)}/${name}`],
  "AWS::Events::Rule": (name) => ["events", `rule/${name}`],
  "AWS::KMS::Key": () => ["kms", `key/${UUID}`],
  "AWS::Lambda::Alias": (name) => ["lambda", `function:${"f".repeat(64)}:${name}`],
  "AWS::Lambda::Function": (name) => ["lambda", `function:${name}`],
  "AWS::Lambda::Version": () => ["lambda", `function:${"f".repeat(64)}:1`],
  "AWS::Logs::LogGroup": (name) => ["logs", `log-group:${name}:*`],
  "AWS::MSK::Cluster": (name) => ["kafka", `cluster/${name}/${UUID}-12`],
  "AWS::SNS::Topic": (name) => ["sns", name],
  "AWS::SecretsManager::Secret": (name) => ["secretsmanager", `secret:${name}-AbCdEf`],
  "AWS::StepFunctions::StateMachine": (name) => ["states", `stateMachine:${name}`],
};

/** Types whose reference is their ARN. */
const BY_ARN = /^AWS::(ECS::Service|Lambda::(Alias|Version)|MSK|SNS|SecretsManager|StepFunctions)/;

/** Returns what replaces the references in values of these templates, by the names of their stacks. */
export function longest(
  templates: Readonly<Record<string, Template>>,
  { partition, region }: Place,
): (stack: string, value: unknown) => unknown {
  const pseudo: Readonly<Record<string, string | undefined>> = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": partition,
    "AWS::Region": region,
    "AWS::StackId": `arn:${partition}:cloudformation:${region}:${ACCOUNT}:stack/${STACK}/${UUID}`,
    "AWS::StackName": STACK,
    "AWS::URLSuffix": partition === "aws-cn" ? "amazonaws.com.cn" : "amazonaws.com",
  };
  const all = Object.fromEntries(Object.entries(templates).map(([name, one]) => [name, resources(one)]));
  const outputs = Object.entries(templates).flatMap(([stack, template]) =>
    Object.values(template.toJSON().Outputs as Record<string, { Value: unknown; Export?: { Name: unknown } }>)
      .filter(({ Export }) => Export !== undefined)
      .map(({ Value, Export }) => ({ stack, Value, name: of(stack, Export?.Name) })),
  );

  function of(stack: string, value: unknown): unknown {
    if (Array.isArray(value)) return value.map((one) => of(stack, one));
    if (typeof value !== "object" || value === null) return value;
    const [[kind, given] = ["", undefined], ...more] = Object.entries(value);
    if (more.length === 0 && (kind === "Ref" || kind.startsWith("Fn::"))) return called(stack, kind, given);
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, of(stack, one)]));
  }

  function called(stack: string, kind: string, given: unknown): unknown {
    const [first, second] = Array.isArray(given) ? given : [given];
    switch (kind) {
      case "Ref":
        return pseudo[String(given)] ?? physical(stack, String(given));
      case "Fn::GetAtt":
        return attribute(stack, first, second);
      case "Fn::Join":
        return (of(stack, second) as unknown[]).join(first);
      case "Fn::Split":
        return String(of(stack, second)).split(first);
      case "Fn::Select":
        return (of(stack, second) as unknown[])[Number(first)];
      case "Fn::Base64":
        return of(stack, given);
      case "Fn::Sub":
        return String(given).replaceAll(/\$\{([^}]+)\}/g, (_, name) => String(called(stack, "Ref", name)));
      case "Fn::ImportValue": {
        const found = outputs.find(({ name }) => name === of(stack, given));
        if (found === undefined) throw new Error(`no stack exports ${JSON.stringify(given)}`);
        return of(found.stack, found.Value);
      }
      default:
        throw new Error(`${kind} of ${stack}`);
    }
  }

  function resource(stack: string, id: string): Resource | undefined {
    return all[stack]?.get(id);
  }

  function named(stack: string, id: string, { Type, Properties = {} }: Resource): string {
    const given = NAMES.find((name) => Properties[name] !== undefined);
    if (given !== undefined) return String(of(stack, Properties[given]));
    if (Type === "AWS::SecretsManager::Secret") return `${id}-${"R".repeat(12)}`;
    const made = `${STACK}-${id}-${"R".repeat(12)}`;
    return made.slice(0, MOST[Type] ?? "subnet-0123456789abcdef0".length);
  }

  function physical(stack: string, id: string): string {
    const found = resource(stack, id);
    // A parameter, which has a file's or an image's id.
    if (found === undefined) return "p".repeat(63);
    return BY_ARN.test(found.Type) ? arn(stack, id, found) : named(stack, id, found);
  }

  function arn(stack: string, id: string, found: Resource): string {
    const name = named(stack, id, found);
    if (found.Type === "AWS::S3::Bucket") return `arn:${partition}:s3:::${name}`;
    if (found.Type === "AWS::IAM::Role") return `arn:${partition}:iam::${ACCOUNT}:role/${name}`;
    const [service, rest] = ARNS[found.Type]?.(name) ?? ["any", name];
    return `arn:${partition}:${service}:${region}:${ACCOUNT}:${rest}`;
  }

  function attribute(stack: string, id: string, name: string): unknown {
    const found = resource(stack, id);
    if (found === undefined) throw new Error(`there is no ${id} in ${stack}`);
    if (name === "Addresses") return BROKERS;
    if (/Arn$/.test(name)) return arn(stack, id, found);
    if (name === "DnsEntries") return ["1", "2", "3"].map((n) => `Z${n}:${"d".repeat(120)}`);
    return named(stack, id, found);
  }

  return of;
}

/** Templates as if they were deployed: with names and ARNs in the forms that AWS gives them, and without an account. */
import type { Stack } from "@aws-sdk/client-cloudformation";
import type { Template } from "aws-cdk-lib/assertions";
import { Deployment, type Properties, type Resource, withParameters } from "../doctor/deployment.ts";
import { Unresolved } from "../doctor/values.ts";
import { STAGE } from "../lib/constructs/query-api.ts";
import { flat } from "./support.ts";

const ACCOUNT = "123456789012";

type Arn = (service: string, rest: string) => string;

/** Physical names by type, of generated names; those of other types are the generated names. */
const PHYSICAL: Readonly<Record<string, (id: string, arn: Arn) => string>> = {
  "AWS::ApiGateway::RestApi": () => "a1b2c3d4e5",
  "AWS::ApiGateway::Stage": () => STAGE,
  "AWS::ECS::Service": (id, arn) => arn("ecs", `service/${id}/${id}`),
  "AWS::ECS::TaskDefinition": (id, arn) => arn("ecs", `task-definition/${id}:1`),
  "AWS::KMS::Key": () => "01234567-89ab-cdef-0123-456789abcdef",
  "AWS::MSK::Cluster": (id, arn) => arn("kafka", `cluster/${id}/01234567-89ab-cdef-0123-456789abcdef-12`),
  "AWS::S3::Bucket": (id) => id.toLowerCase(),
  "AWS::SecretsManager::Secret": (id, arn) => arn("secretsmanager", `secret:${id}-AbCdEf`),
  "AWS::SNS::Topic": (id, arn) => arn("sns", id),
  "AWS::StepFunctions::StateMachine": (id, arn) => arn("states", `stateMachine:${id}`),
};

interface Output {
  readonly Value: unknown;
  readonly Export?: { readonly Name: unknown };
}

/** Where a deployment is, and the names in it. */
interface Made {
  readonly partition?: string;
  readonly region?: string;
  /** The name of a stack in its ARN. By default that of the template. */
  readonly stackName?: string;
  /** How CloudFormation makes names of logical ids. By default they are the names. */
  readonly generated?: (logicalId: string, type: string) => string;
  /** Properties that give a resource its name. By default none do. */
  readonly naming?: readonly string[];
}

/**
 * Returns the deployment of templates, by the names of their stacks, with values of their parameters.
 *
 * @param made by default in Ireland
 */
export function deployed(
  templates: Readonly<Record<string, Template>>,
  parameters: Readonly<Record<string, string>> = {},
  { partition = "aws", region = "eu-west-1", stackName, generated = (id) => id, naming = [] }: Made = {},
): Deployment {
  const arn: Arn = (service, rest) => `arn:${partition}:${service}:${region}:${ACCOUNT}:${rest}`;
  const resources: Resource[] = [];
  const stacks: Stack[] = [];
  const given = new Map(Object.entries(parameters));
  for (const [name, template] of Object.entries(templates)) {
    const { Resources = {}, Outputs = {}, Parameters = {} } = template.toJSON();
    const stack: Stack = {
      StackName: name,
      StackId: arn("cloudformation", `stack/${stackName ?? name}/01234567-89ab-cdef-0123-456789abcdef`),
      CreationTime: new Date(0),
      StackStatus: "CREATE_COMPLETE",
      Parameters: Object.keys(Parameters).flatMap((ParameterKey) => {
        const ParameterValue = given.get(ParameterKey);
        return ParameterValue === undefined ? [] : [{ ParameterKey, ParameterValue }];
      }),
    };
    stacks.push(stack);
    const { values } = new Deployment(stacks, resources);
    for (const [logicalId, one] of Object.entries(Resources)) {
      const { Type: type, Properties: properties = {} } = one as { Type: string; Properties?: object };
      const named = naming.map((property) => (properties as Properties)[property]).find(Boolean);
      const made = named === undefined ? generated(logicalId, type) : String(values.of(name, named));
      const id = PHYSICAL[type]?.(made, arn) ?? made;
      resources.push({ stack: name, type, logicalId, id, properties: withParameters(properties, given) });
    }
    stack.Outputs = Object.values(Outputs as Record<string, Output>).flatMap(({ Value, Export }) => {
      if (Export === undefined) return [];
      try {
        const ExportName = String(values.of(name, Export.Name));
        return [{ ExportName, OutputValue: String(values.of(name, Value)) }];
      } catch (error) {
        // Names that only AWS gives, such as those of security groups. Policies have none of them.
        if (error instanceof Unresolved) return [];
        throw new Error(`the output ${flat(Value)}`, { cause: error });
      }
    });
  }
  return new Deployment(stacks, resources);
}

/** Returns the identity policies of a deployment, as IAM would see them, by the logical ids of their resources. */
export function policiesOf({ resources, values }: Deployment): Record<string, { Statement: unknown }> {
  const found: Record<string, { Statement: unknown }> = {};
  for (const { stack, type, logicalId, properties } of resources) {
    if (type === "AWS::IAM::Policy" || type === "AWS::IAM::ManagedPolicy")
      found[logicalId] = values.of(stack, properties.PolicyDocument) as { Statement: unknown };
    for (const { PolicyName, PolicyDocument } of type === "AWS::IAM::Role" ? (properties.Policies ?? []) : [])
      found[`${logicalId}/${PolicyName}`] = values.of(stack, PolicyDocument) as { Statement: unknown };
  }
  return found;
}

/** Templates as if they were deployed: with names and ARNs in the forms that AWS gives them, and without an account. */
import type { Stack } from "@aws-sdk/client-cloudformation";
import type { Template } from "aws-cdk-lib/assertions";
import { Deployment, type Resource, withParameters } from "../doctor/deployment.ts";
import { Unresolved } from "../doctor/values.ts";
import { flat } from "./support.ts";

const ACCOUNT = "123456789012";
const REGION = "eu-west-1";
const arn = (service: string, rest: string): string => `arn:aws:${service}:${REGION}:${ACCOUNT}:${rest}`;

/** Physical names by type; those of other types are their logical ids. */
const PHYSICAL: Readonly<Record<string, (id: string) => string>> = {
  "AWS::ECS::Service": (id) => arn("ecs", `service/cluster/${id}`),
  "AWS::ECS::TaskDefinition": (id) => arn("ecs", `task-definition/${id}:1`),
  "AWS::KMS::Key": () => "01234567-89ab-cdef-0123-456789abcdef",
  "AWS::MSK::Cluster": (id) => arn("kafka", `cluster/${id}/01234567-89ab-cdef-0123-456789abcdef-1`),
  "AWS::S3::Bucket": (id) => id.toLowerCase(),
  "AWS::SecretsManager::Secret": (id) => arn("secretsmanager", `secret:${id}-AbCdEf`),
  "AWS::SNS::Topic": (id) => arn("sns", id),
  "AWS::StepFunctions::StateMachine": (id) => arn("states", `stateMachine:${id}`),
};

interface Output {
  readonly Value: unknown;
  readonly Export?: { readonly Name: unknown };
}

/** Returns the deployment of templates, by the names of their stacks, with values of their parameters. */
export function deployed(
  templates: Readonly<Record<string, Template>>,
  parameters: Readonly<Record<string, string>> = {},
): Deployment {
  const resources: Resource[] = [];
  const stacks: Stack[] = [];
  const given = new Map(Object.entries(parameters));
  for (const [name, template] of Object.entries(templates)) {
    const { Resources = {}, Outputs = {}, Parameters = {} } = template.toJSON();
    for (const [logicalId, one] of Object.entries(Resources)) {
      const { Type: type, Properties: properties = {} } = one as { Type: string; Properties?: object };
      const id = PHYSICAL[type]?.(logicalId) ?? logicalId;
      resources.push({ stack: name, type, logicalId, id, properties: withParameters(properties, given) });
    }
    const stack: Stack = {
      StackName: name,
      StackId: arn("cloudformation", `stack/${name}/01234567-89ab-cdef-0123-456789abcdef`),
      CreationTime: new Date(0),
      StackStatus: "CREATE_COMPLETE",
      Parameters: Object.keys(Parameters).flatMap((ParameterKey) => {
        const ParameterValue = given.get(ParameterKey);
        return ParameterValue === undefined ? [] : [{ ParameterKey, ParameterValue }];
      }),
    };
    stacks.push(stack);
    const { values } = new Deployment([stack], resources);
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

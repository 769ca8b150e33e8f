/**
 * Explanations of cdk-nag findings. An explanation is next to the resource that it is about, and covers exactly one
 * finding: a new wildcard is a new, unexplained finding.
 */
import { ArnFormat, Stack, Validations } from "aws-cdk-lib";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import type { IConstruct } from "constructs";

/** Records why a finding at a construct, or below it, is acceptable. */
export function explain(construct: IConstruct, rule: string, reason: string): void {
  Validations.of(construct).acknowledge({ id: `AwsSolutions-${rule}`, reason });
}

/** Explains a wildcard in a policy statement; `resource` must equal the text in the statement. */
export function explainWildcard(construct: IConstruct, resource: string, reason: string): void {
  const flat = flatten(Stack.of(construct).resolve(resource));
  explain(construct, `IAM5[Resource::${flat}]`, reason);
}

/** Explains the wildcards of a role that changes a group of machines and starts the machine that drains. */
export function explainGroup(role: IConstruct, groupArn: string, drain: IStateMachine): void {
  const group = "One group; the id in its ARN is drawn when it is made, and differs in each deployment.";
  explainWildcard(role, groupArn, group);
  const stack = Stack.of(role);
  const { resourceName } = stack.splitArn(drain.stateMachineArn, ArnFormat.COLON_RESOURCE_NAME);
  const drains = stack.formatArn({
    service: "states",
    resource: "execution",
    arnFormat: ArnFormat.COLON_RESOURCE_NAME,
    resourceName: `${resourceName}*`,
  });
  explainWildcard(role, drains, "Executions that drain, whose names are made when they start.");
}

/**
 * Explains a wildcard below the ARN of a resource that may be in another stack. In that case the finding names the
 * export through which this stack reads the ARN. The export is created here, as the reference itself would create it.
 */
export function explainBelow(
  construct: IConstruct,
  owner: IConstruct,
  arn: string,
  below: string,
  reason: string,
): void {
  explainReference(construct, owner, arn, (one) => `${one}${below}`, reason);
}

/** Explains a wildcard in a text that is made of the ARN of a resource, which may be in another stack. */
export function explainReference(
  construct: IConstruct,
  owner: IConstruct,
  arn: string,
  text: (arn: string) => string,
  reason: string,
): void {
  const producer = Stack.of(owner);
  // Only what a stack creates is exported. The ARN of a resource that exists already is a text.
  const own: unknown = producer.resolve(arn);
  const isCreated = typeof own === "object" && own !== null && ("Fn::GetAtt" in own || "Ref" in own);
  const isImported = producer !== Stack.of(construct) && isCreated;
  explainWildcard(construct, text(isImported ? producer.exportValue(arn) : arn), reason);
}

/** Formats a reference as cdk-nag does. */
function flatten(node: unknown): string {
  if (typeof node === "string") return node.replaceAll("${", "<").replaceAll("}", ">");
  if (typeof node !== "object" || node === null) return "";
  if ("Fn::Join" in node) {
    const [delimiter, items] = node["Fn::Join"] as [string, unknown[]];
    return items.map(flatten).join(delimiter);
  }
  if ("Fn::Sub" in node) return flatten(node["Fn::Sub"]);
  if ("Fn::ImportValue" in node) return flatten(node["Fn::ImportValue"]);
  if ("Fn::GetAtt" in node) {
    const [resource, attribute] = node["Fn::GetAtt"] as [string, string];
    return `<${resource}.${attribute}>`;
  }
  if ("Ref" in node) return `<${node.Ref}>`;
  return JSON.stringify(node);
}

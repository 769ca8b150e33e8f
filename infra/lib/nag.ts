/**
 * Explanations of cdk-nag findings. An explanation is next to the resource that it is about, and covers exactly one
 * finding: a new wildcard is a new, unexplained finding.
 */
import {
  ArnFormat,
  DefaultTokenResolver,
  type IPostProcessor,
  type IResolvable,
  type IResolveContext,
  Reference,
  Stack,
  Token,
  Tokenization,
  Validations,
} from "aws-cdk-lib";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import type { IConstruct } from "constructs";

/** Records why a finding at a construct, or below it, is acceptable. */
export function explain(construct: IConstruct, rule: string, reason: string): void {
  Validations.of(construct).acknowledge({ id: `AwsSolutions-${rule}`, reason });
}

/**
 * Explains a wildcard in a policy statement; `resource` must equal the text in the statement. The policy may be in another
 * stack than what it names. In that case the finding names the exports through which the stack of the policy reads it. The
 * exports are created here, as the references themselves would create them.
 */
export function explainWildcard(construct: IConstruct, resource: string, reason: string): void {
  explain(construct, `IAM5[Resource::${finding(construct, resource)}]`, reason);
}

/** Returns a text with references as the rules name it in a finding in the stack of a construct. */
function finding(construct: IConstruct, resource: string): string {
  const consumer = Stack.of(construct);
  const resolver = new (class extends DefaultTokenResolver {
    override resolveToken(
      token: IResolvable,
      context: IResolveContext,
      postProcessor: IPostProcessor,
    ): unknown {
      const producer = Reference.isReference(token) ? Stack.of(token.target) : consumer;
      const usual = (): unknown => super.resolveToken(token, context, postProcessor);
      if (producer === consumer) return usual();
      // Stacks of other places, and those within stacks, read each other in other ways.
      if (producer.environment !== consumer.environment || producer.nested || consumer.nested) return usual();
      return producer.resolve(producer.exportValue(Token.asString(token)));
    }
  })({ join: (left: unknown, right: unknown) => ({ "Fn::Join": ["", [left, right]] }) });
  return flatten(Tokenization.resolve(resource, { scope: construct, resolver, preparing: false }));
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

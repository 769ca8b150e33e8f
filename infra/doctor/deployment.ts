/**
 * What a deployment consists of: the resources of its CloudFormation stacks, with their physical names, and the
 * properties of the templates that were deployed. Checks compare what AWS has with these.
 */
import * as cfn from "@aws-sdk/client-cloudformation";
import type { Clients } from "./clients.ts";
import { CallFailed } from "./finding.ts";
import { Values } from "./values.ts";

/** A mistake of the user: wrong flags, no credentials, no such stack. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

// biome-ignore lint/suspicious/noExplicitAny: properties of templates have no types
export type Properties = any;

/** A resource of a stack. */
export interface Resource {
  readonly stack: string;
  readonly type: string;
  /** The name in the template. */
  readonly logicalId: string;
  /** The name or ARN in AWS. */
  readonly id: string;
  /** The properties in the template, with the values of parameters; other references are not resolved. */
  readonly properties: Properties;
}

export class Deployment {
  readonly stacks: readonly cfn.Stack[];
  readonly resources: readonly Resource[];

  constructor(stacks: readonly cfn.Stack[], resources: readonly Resource[]) {
    this.stacks = stacks;
    this.resources = resources;
  }

  /** Reads the stacks. A stack that does not exist is the user's mistake. */
  static async read(clients: Clients, names: readonly string[], region: string): Promise<Deployment> {
    const stacks: cfn.Stack[] = [];
    const resources: Resource[] = [];
    for (const name of names) {
      const read = await readStack(clients, name, region);
      stacks.push(read.stack);
      resources.push(...read.resources);
    }
    return new Deployment(stacks, resources);
  }

  /** Returns the resources of a type whose logical id, without its hash, ends as given. */
  all(type: string, ending = ""): Resource[] {
    return this.resources.filter(
      (one) => one.type === type && one.logicalId.replace(/[0-9A-F]{8}$/, "").endsWith(ending),
    );
  }

  /** Returns the first of them, if there is one. */
  one(type: string, ending = ""): Resource | undefined {
    return this.all(type, ending)[0];
  }

  /** Returns the resource that a value of a template refers to, if it is in these stacks. */
  referred(value: unknown): Resource | undefined {
    if (typeof value !== "object" || value === null) return undefined;
    const { Ref, "Fn::GetAtt": get } = value as { Ref?: string; "Fn::GetAtt"?: string[] };
    const id = Ref ?? get?.[0];
    return this.resources.find(({ logicalId }) => logicalId === id);
  }

  /** The values of the templates, with references resolved. */
  get values(): Values {
    return new Values(this.stacks, this.resources);
  }

  /** Returns the value of an output by the name that the construct gave it. */
  output(name: string): string | undefined {
    // The API's construct has an output of its own, `ApiEndpoint`.
    const form = new RegExp(`(^|[a-z])(?<!Api|Worker)${name}[0-9A-F]{8}$`);
    for (const { Outputs = [] } of this.stacks) {
      const found = Outputs.find(({ OutputKey = "" }) => form.test(OutputKey));
      if (found?.OutputValue !== undefined) return found.OutputValue;
    }
    return undefined;
  }

  /** The beginning of the names of the deployment's log groups. */
  get logs(): string {
    const group = this.one("AWS::AutoScaling::AutoScalingGroup", "NodesGroupASG")?.id ?? "NAME-nodes";
    return `/tidegraph/${group.replace(/-nodes$/, "")}`;
  }

  /** The query function's variables, which name the graphs. */
  get #variables(): Record<string, unknown> {
    return this.one("AWS::Lambda::Function", "QueryFunction")?.properties.Environment?.Variables ?? {};
  }

  /** The names of the graphs: none without a service. */
  get graphs(): string[] {
    const { TIDEGRAPH_GRAPH: graphs } = this.#variables;
    return typeof graphs === "string" ? graphs.split(",") : [];
  }
}

async function readStack(
  clients: Clients,
  StackName: string,
  region: string,
): Promise<{ stack: cfn.Stack; resources: Resource[] }> {
  const { Stacks: [stack] = [] } = await clients.cfn
    .send(new cfn.DescribeStacksCommand({ StackName }))
    .catch((error: unknown) => {
      const isMissing = error instanceof CallFailed && /does not exist/.test(error.cause.message);
      if (!isMissing) throw error;
      throw new UsageError(
        `there is no stack ${StackName} in ${region}: name the deployment with --name, its stacks with --stack, ` +
          "another region with --region (aws cloudformation describe-stacks --query 'Stacks[].StackName')",
      );
    });
  if (stack === undefined) throw new UsageError(`CloudFormation knows no stack ${StackName} in ${region}`);
  const [templates, summaries] = await Promise.all([
    clients.cfn.send(new cfn.GetTemplateCommand({ StackName, TemplateStage: "Original" })),
    listResources(clients, StackName),
  ]);
  const given = new Map(
    (stack.Parameters ?? []).map(({ ParameterKey = "", ParameterValue }) => [ParameterKey, ParameterValue]),
  );
  const properties = withParameters(propertiesIn(StackName, templates.TemplateBody ?? ""), given);
  const resources = summaries.flatMap(
    ({ ResourceType: type = "", LogicalResourceId: logicalId = "", PhysicalResourceId: id }) =>
      // Without a physical name it has not been created, or is deleted.
      id === undefined || id === ""
        ? []
        : [{ stack: StackName, type, logicalId, id, properties: properties[logicalId]?.Properties ?? {} }],
  );
  return { stack, resources };
}

async function listResources(clients: Clients, StackName: string): Promise<cfn.StackResourceSummary[]> {
  const found: cfn.StackResourceSummary[] = [];
  for await (const page of cfn.paginateListStackResources({ client: clients.cfn }, { StackName }))
    found.push(...(page.StackResourceSummaries ?? []));
  return found.filter(({ ResourceStatus = "" }) => ResourceStatus !== "DELETE_COMPLETE");
}

function propertiesIn(stack: string, template: string): Record<string, { Properties?: Properties }> {
  try {
    return JSON.parse(template).Resources ?? {};
  } catch {
    throw new UsageError(
      `the template of ${stack} is not JSON: it was deployed neither by the CDK nor from a template of Tidegraph`,
    );
  }
}

/** Replaces references to parameters, which templates without the CDK have, by what the stack was given. */
export function withParameters<Value>(value: Value, given: ReadonlyMap<string, string | undefined>): Value {
  return JSON.parse(JSON.stringify(value), (_, one: { Ref?: unknown } | null) => {
    if (typeof one !== "object" || one === null || Object.keys(one).length !== 1) return one;
    return typeof one.Ref === "string" ? (given.get(one.Ref) ?? one) : one;
  });
}

/** Returns the literal parts of a value of a template, without its references. */
export function literal(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "";
  const { "Fn::Join": join } = value as { "Fn::Join"?: [string, unknown[]] };
  return join ? join[1].map(literal).join(join[0]) : "";
}

/**
 * Values of deployed templates with names and ARNs in the place of references, as CloudFormation has resolved them. The
 * names come from the stacks' resources, outputs and parameters; forms of ARNs are AWS's.
 */
import type { Stack } from "@aws-sdk/client-cloudformation";
import type { Resource } from "./deployment.ts";

/** A value that the stacks do not tell. */
export class Unresolved extends Error {
  override readonly name = "Unresolved";
}

/** Where a stack is. */
export interface Place {
  readonly partition: string;
  readonly region: string;
  readonly account: string;
}

/** The forms of ARNs, by the type of the resource. Physical names of other types are ARNs already. */
const ARNS: Readonly<Record<string, (resource: Resource, place: Place) => string>> = {
  "AWS::DynamoDB::Table": ({ id }, place) => regional("dynamodb", place, `table/${id}`),
  "AWS::ECS::Cluster": ({ id }, place) => regional("ecs", place, `cluster/${id}`),
  "AWS::IAM::Role": ({ id, properties }, { partition, account }) =>
    `arn:${partition}:iam::${account}:role${properties.Path ?? "/"}${id}`,
  "AWS::KMS::Key": ({ id }, place) => regional("kms", place, `key/${id}`),
  "AWS::Lambda::Function": ({ id }, place) => regional("lambda", place, `function:${id}`),
  "AWS::Logs::LogGroup": ({ id }, place) => regional("logs", place, `log-group:${id}:*`),
  "AWS::S3::Bucket": ({ id }, { partition }) => `arn:${partition}:s3:::${id}`,
};

const regional = (service: string, { partition, region, account }: Place, rest: string): string =>
  `arn:${partition}:${service}:${region}:${account}:${rest}`;

export class Values {
  readonly #stacks: readonly Stack[];
  readonly #resources: readonly Resource[];

  constructor(stacks: readonly Stack[], resources: readonly Resource[]) {
    this.#stacks = stacks;
    this.#resources = resources;
  }

  /** Returns a value of a stack's template. What the stacks do not tell is thrown as `Unresolved`. */
  of(stack: string, value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((one) => this.of(stack, one));
    const entries = Object.entries(value);
    const [kind = "", given] = entries[0] ?? [];
    if (entries.length === 1 && (kind === "Ref" || kind.startsWith("Fn::")))
      return this.#called(stack, kind, given);
    return Object.fromEntries(entries.map(([name, one]) => [name, this.of(stack, one)]));
  }

  /** Returns the ARN of a resource. */
  arn(resource: Resource): string {
    if (resource.id.startsWith("arn:")) return resource.id;
    const make = ARNS[resource.type];
    if (make === undefined)
      throw new Unresolved(`the form of an ARN of ${resource.type} (${resource.logicalId})`);
    return make(resource, this.place(resource.stack));
  }

  /** Returns where a stack is, from its ARN. */
  place(stack: string): Place {
    const [, partition = "", , region = "", account = ""] = (this.#stack(stack).StackId ?? "").split(":");
    if (account === "") throw new Unresolved(`the id of the stack ${stack}`);
    return { partition, region, account };
  }

  /** Calls an intrinsic function of CloudFormation. */
  #called(stack: string, kind: string, given: unknown): unknown {
    const text = (value: unknown): string => String(this.of(stack, value));
    switch (kind) {
      case "Ref":
        return this.#ref(stack, String(given));
      case "Fn::GetAtt":
        return this.#attribute(stack, given as [string, string]);
      case "Fn::ImportValue":
        return this.#exported(text(given));
      case "Fn::Join": {
        const [between, parts] = given as [string, unknown];
        return (this.of(stack, parts) as unknown[]).join(between);
      }
      case "Fn::Select": {
        const [index, list] = given as [number | string, unknown];
        return (this.of(stack, list) as unknown[])[Number(index)];
      }
      case "Fn::Split": {
        const [between, whole] = given as [string, unknown];
        return text(whole).split(between);
      }
      case "Fn::Sub": {
        if (typeof given !== "string") throw new Unresolved("Fn::Sub with values of its own");
        return given.replaceAll(/\$\{([^}]+)\}/g, (_, name: string) => String(this.#ref(stack, name)));
      }
      default:
        throw new Unresolved(kind);
    }
  }

  #stack(name: string): Stack {
    const found = this.#stacks.find(({ StackName }) => StackName === name);
    if (found === undefined) throw new Unresolved(`the stack ${name}`);
    return found;
  }

  #resource(stack: string, id: string): Resource {
    const found = this.#resources.find((one) => one.stack === stack && one.logicalId === id);
    if (found === undefined) throw new Unresolved(`${id} of ${stack}`);
    return found;
  }

  #ref(stack: string, name: string): string {
    const { StackId, StackName, Parameters = [] } = this.#stack(stack);
    const parameter = Parameters.find(({ ParameterKey }) => ParameterKey === name)?.ParameterValue;
    if (parameter !== undefined) return parameter;
    if (!name.startsWith("AWS::")) return this.#resource(stack, name).id;
    const { partition, region, account } = this.place(stack);
    const pseudo: Readonly<Record<string, string | undefined>> = {
      "AWS::AccountId": account,
      "AWS::Partition": partition,
      "AWS::Region": region,
      "AWS::StackId": StackId,
      "AWS::StackName": StackName,
      "AWS::URLSuffix": partition === "aws-cn" ? "amazonaws.com.cn" : "amazonaws.com",
    };
    const value = pseudo[name];
    if (value === undefined) throw new Unresolved(name);
    return value;
  }

  #attribute(stack: string, [id, attribute]: readonly [string, string]): string {
    const resource = this.#resource(stack, id);
    if (attribute === "Arn") return this.arn(resource);
    // The id of a state machine or of a service of ECS is its ARN, which ends with the name.
    if (attribute === "Name" && resource.id.startsWith("arn:"))
      return resource.id.split(/[:/]/).at(-1) ?? resource.id;
    throw new Unresolved(`${attribute} of ${id}`);
  }

  #exported(name: string): string {
    const outputs = this.#stacks.flatMap(({ Outputs = [] }) => Outputs);
    const value = outputs.find(({ ExportName }) => ExportName === name)?.OutputValue;
    if (value === undefined) throw new Unresolved(`the export ${name}: name its stack too (--stack)`);
    return value;
  }
}

/** The identity policies of templates with names and ARNs in the place of references, as IAM would see them. */
import type { Template } from "aws-cdk-lib/assertions";

const ACCOUNT = "123456789012";
const REGION = "eu-west-1";
const arn = (service: string, rest: string): string => `arn:aws:${service}:${REGION}:${ACCOUNT}:${rest}`;

/** The ARN of a resource by its type. */
const ARNS: Readonly<Record<string, (name: string) => string>> = {
  "AWS::ApiGateway::RestApi": (name) => name.slice(-10).toLowerCase(),
  "AWS::DynamoDB::Table": (name) => arn("dynamodb", `table/${name}`),
  "AWS::ECS::Cluster": (name) => arn("ecs", `cluster/${name}`),
  "AWS::ECS::Service": (name) => arn("ecs", `service/cluster/${name}`),
  "AWS::ECS::TaskDefinition": (name) => arn("ecs", `task-definition/${name}:1`),
  "AWS::IAM::Role": (name) => `arn:aws:iam::${ACCOUNT}:role/${name}`,
  "AWS::KMS::Key": () => arn("kms", "key/01234567-89ab-cdef-0123-456789abcdef"),
  "AWS::Lambda::Function": (name) => arn("lambda", `function:${name}`),
  "AWS::Logs::LogGroup": (name) => arn("logs", `log-group:${name}:*`),
  "AWS::MSK::Cluster": (name) => arn("kafka", `cluster/${name}/01234567-89ab-cdef-0123-456789abcdef-1`),
  "AWS::S3::Bucket": (name) => `arn:aws:s3:::${name.toLowerCase()}`,
  "AWS::SNS::Topic": (name) => arn("sns", name),
  "AWS::SecretsManager::Secret": (name) => arn("secretsmanager", `secret:${name}-AbCdEf`),
  "AWS::StepFunctions::StateMachine": (name) => arn("states", `stateMachine:${name}`),
};

/** Types whose `Ref` is their ARN. */
const REF_IS_ARN = new Set([
  "AWS::ECS::Service",
  "AWS::ECS::TaskDefinition",
  "AWS::SNS::Topic",
  "AWS::SecretsManager::Secret",
  "AWS::StepFunctions::StateMachine",
]);

type Value = Record<string, unknown>;

export class Concrete {
  readonly #templates: readonly Value[];

  constructor(templates: readonly Template[]) {
    this.#templates = templates.map((template) => template.toJSON());
  }

  /** Returns the identity policies by the logical ids of their resources. */
  policies(): Record<string, unknown> {
    const found: Record<string, unknown> = {};
    for (const { Resources = {} } of this.#templates) {
      for (const [id, { Type, Properties }] of Object.entries(Resources as Record<string, Value>)) {
        const properties = Properties as Value | undefined;
        if (Type === "AWS::IAM::Policy" || Type === "AWS::IAM::ManagedPolicy")
          found[id] = this.value(properties?.PolicyDocument);
        for (const { PolicyName, PolicyDocument } of (properties?.Policies as Value[] | undefined) ?? [])
          found[`${id}/${PolicyName}`] = this.value(PolicyDocument);
      }
    }
    return found;
  }

  value(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((one) => this.value(one));
    const [[kind = "", of] = []] = Object.entries(value);
    switch (kind) {
      case "Ref":
        return this.#ref(String(of));
      case "Fn::GetAtt": {
        const [id = "", attribute = ""] = of as string[];
        return attribute === "Arn" ? this.#arn(id) : `${id}-${attribute}`;
      }
      case "Fn::ImportValue":
        return this.#exported(this.value(of));
      case "Fn::Join": {
        const [between, parts] = of as [string, unknown[]];
        return parts.map((part) => this.value(part)).join(between);
      }
      case "Fn::Select": {
        const [index, list] = of as [number, unknown];
        return (this.value(list) as unknown[])[index];
      }
      case "Fn::Split": {
        const [between, text] = of as [string, unknown];
        return String(this.value(text)).split(between);
      }
      case "Fn::Sub":
        return String(of).replaceAll(/\$\{([^}]+)\}/g, (_, name) => String(this.#ref(name)));
      default:
        return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.value(one)]));
    }
  }

  #type(id: string): string {
    for (const { Resources } of this.#templates) {
      const found = (Resources as Record<string, { Type: string }>)[id];
      if (found) return found.Type;
    }
    throw new Error(`no template has ${id}`);
  }

  #arn(id: string): string {
    const type = this.#type(id);
    const make = ARNS[type];
    if (make === undefined) throw new Error(`how the ARN of ${type} looks is not known here (${id})`);
    return make(id);
  }

  #ref(id: string): string {
    const pseudo: Record<string, string> = {
      "AWS::AccountId": ACCOUNT,
      "AWS::Partition": "aws",
      "AWS::Region": REGION,
      "AWS::StackId": arn("cloudformation", "stack/example/01234567-89ab-cdef-0123-456789abcdef"),
      "AWS::URLSuffix": "amazonaws.com",
    };
    const known = pseudo[id];
    if (known !== undefined) return known;
    const type = this.#type(id);
    if (REF_IS_ARN.has(type)) return this.#arn(id);
    return type === "AWS::S3::Bucket" || type === "AWS::ApiGateway::RestApi"
      ? id.toLowerCase().slice(-20)
      : id;
  }

  #exported(name: unknown): unknown {
    for (const { Outputs = {} } of this.#templates) {
      for (const { Export, Value: value } of Object.values(Outputs as Record<string, Value>)) {
        if (this.value((Export as Value | undefined)?.Name) === name) return this.value(value);
      }
    }
    throw new Error(`nobody exports ${name}`);
  }
}

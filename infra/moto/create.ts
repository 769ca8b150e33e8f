/**
 * Creates the resources of templates with AWS's SDK, each from its own properties, after the resources that it refers
 * to.
 *
 * moto's CloudFormation is not used. It knows most of these types but drops important parts: lifecycle hooks of a
 * group, the launch type and the balancer of a service, processors and roles of a task definition. It also makes every
 * balancer an application balancer, and does not support MSK.
 *
 * Resources of a template that are left out here (roles, keys, buckets, log groups, secrets) become plain values in
 * references to them.
 */
import * as asg from "@aws-sdk/client-auto-scaling";
import * as ec2 from "@aws-sdk/client-ec2";
import * as ecs from "@aws-sdk/client-ecs";
import * as elb from "@aws-sdk/client-elastic-load-balancing-v2";
import * as kafka from "@aws-sdk/client-kafka";
import { begin } from "../definition/definition.ts";
import { flat } from "../test/support.ts";
import type { Template } from "./templates.ts";

export const REGION = "eu-west-1";
/** The account id that moto uses. */
export const ACCOUNT = "123456789012";

/** The ARN of a stack. */
export const stackId = (stack: string): string =>
  `arn:aws:cloudformation:${REGION}:${ACCOUNT}:stack/${stack}/0123abcd-4567-89ab-cdef-0123456789ab`;

// biome-ignore lint/suspicious/noExplicitAny: properties of templates have no types
export type Properties = any;
type Json = Record<string, unknown>;

/** The values of `Ref` and `Fn::GetAtt` for a created resource. */
export interface Made {
  readonly ref: string;
  readonly attributes?: Readonly<Record<string, string>>;
}

/** Clients of moto's services. */
export class Clients {
  readonly asg: asg.AutoScalingClient;
  readonly ec2: ec2.EC2Client;
  readonly ecs: ecs.ECSClient;
  readonly elb: elb.ElasticLoadBalancingV2Client;
  readonly kafka: kafka.KafkaClient;
  readonly #endpoint: string;

  constructor(endpoint: string) {
    this.#endpoint = endpoint;
    const credentials = { accessKeyId: "test", secretAccessKey: "test" };
    const options = { endpoint, region: REGION, credentials };
    this.asg = new asg.AutoScalingClient(options);
    this.ec2 = new ec2.EC2Client(options);
    this.ecs = new ecs.ECSClient(options);
    this.elb = new elb.ElasticLoadBalancingV2Client(options);
    this.kafka = new kafka.KafkaClient(options);
  }

  /**
   * Returns MSK's description of a cluster, as plain JSON. moto writes times without a time zone, which the SDK cannot
   * parse.
   */
  async brokers(clusterArn: string): Promise<Properties> {
    const scope = `test/20260101/${REGION}/kafka/aws4_request`;
    const authorization = `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host, Signature=0`;
    const path = `/v1/clusters/${encodeURIComponent(clusterArn)}`;
    const answer = await fetch(`${this.#endpoint}${path}`, { headers: { authorization } });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return ((await answer.json()) as { clusterInfo: Properties }).clusterInfo;
  }

  destroy(): void {
    for (const client of [this.asg, this.ec2, this.ecs, this.elb, this.kafka]) client.destroy();
  }
}

/** Creates a resource with its properties, in which references are resolved. */
export type Maker = (clients: Clients, properties: Properties, id: string) => Promise<Made>;

export class Creation {
  readonly #clients: Clients;
  readonly #templates: Readonly<Record<string, Template>>;
  readonly #makers: Readonly<Record<string, Maker>>;
  /**
   * Created resources by stack and logical id. They are promises, since several resources may refer to the same one
   * concurrently.
   */
  readonly #made = new Map<string, Promise<Made>>();
  /** The types that were left out. */
  readonly leftOut = new Set<string>();

  /** @param further makers of types that are left out otherwise */
  constructor(
    clients: Clients,
    templates: Readonly<Record<string, Template>>,
    further: Readonly<Record<string, Maker>> = {},
  ) {
    this.#clients = clients;
    this.#templates = templates;
    this.#makers = { ...MAKERS, ...further };
  }

  /** Creates a resource, unless it exists or is left out, and returns the value of `Ref`. */
  async physical(stack: string, id: string): Promise<string> {
    return (await this.#resource(stack, id)).ref;
  }

  /** Creates all resources of a type in a stack, unless they exist, and returns the value of `Ref` for each. */
  async all(stack: string, type: string): Promise<string[]> {
    const ids = Object.entries(this.#template(stack).Resources).flatMap(([id, { Type }]) =>
      Type === type ? [id] : [],
    );
    return Promise.all(ids.map(async (id) => (await this.#resource(stack, id)).ref));
  }

  /** Resolves the references in a value of a template. */
  async value(stack: string, value: unknown): Promise<Properties> {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return Promise.all(value.map((one) => this.value(stack, one)));
    const [[kind = "", of] = []] = Object.entries(value);
    switch (kind) {
      case "Ref":
        return this.#ref(stack, String(of));
      case "Fn::GetAtt": {
        const [id = "", ...attribute] = of as string[];
        return this.#attribute(stack, id, attribute.join("."));
      }
      case "Fn::ImportValue":
        return this.#exported(flat(of));
      case "Fn::Join": {
        const [between, parts] = of as [string, unknown[]];
        return (await this.value(stack, parts)).join(between);
      }
      case "Fn::Select": {
        const [index, list] = of as [number, unknown];
        return (await this.value(stack, list))[index];
      }
      case "Fn::Split": {
        const [between, text] = of as [string, unknown];
        return String(await this.value(stack, text)).split(between);
      }
      case "Fn::GetAZs":
        return this.#zones();
      case "Fn::Base64":
        return Buffer.from(String(await this.value(stack, of))).toString("base64");
      case "Fn::Sub": {
        const names = [...String(of).matchAll(/\$\{([^}]+)\}/g)].map(([, name = ""]) => name);
        const values = await Promise.all(names.map((name) => this.#ref(stack, name)));
        return names.reduce((text, name, at) => text.replace(`\${${name}}`, values[at] ?? ""), String(of));
      }
      default: {
        const entries = Object.entries(value).map(
          async ([name, one]) => [name, await this.value(stack, one)] as const,
        );
        return Object.fromEntries(await Promise.all(entries));
      }
    }
  }

  #template(stack: string): Template {
    const template = this.#templates[stack];
    if (template === undefined) throw new Error(`there is no template ${stack}`);
    return template;
  }

  async #ref(stack: string, name: string): Promise<string> {
    const pseudo: Record<string, string> = {
      "AWS::Region": REGION,
      "AWS::AccountId": ACCOUNT,
      "AWS::Partition": "aws",
      "AWS::URLSuffix": "amazonaws.com",
      "AWS::StackId": stackId(stack),
    };
    const known = pseudo[name];
    if (known !== undefined) return known;
    if (name in (this.#template(stack).Parameters ?? {})) return this.#image();
    return (await this.#resource(stack, name)).ref;
  }

  async #attribute(stack: string, id: string, attribute: string): Promise<string> {
    const { ref, attributes } = await this.#resource(stack, id);
    const found = attributes?.[attribute];
    if (found !== undefined) return found;
    if (attributes !== undefined) throw new Error(`${id} has no ${attribute}`);
    // The attribute of a resource that is left out.
    return attribute.endsWith("Arn") ? `arn:aws:left:${REGION}:${ACCOUNT}:out/${ref}` : `${ref}.${attribute}`;
  }

  #exported(name: string): Promise<string> {
    for (const [stack, { Outputs = {} }] of Object.entries(this.#templates)) {
      const found = Object.values(Outputs).find(({ Export }) => Export && flat(Export.Name) === name);
      if (found) return this.value(stack, found.Value);
    }
    throw new Error(`nobody exports ${name}`);
  }

  async #zones(): Promise<string[]> {
    const { AvailabilityZones = [] } = await this.#clients.ec2.send(
      new ec2.DescribeAvailabilityZonesCommand({}),
    );
    return AvailabilityZones.map(({ ZoneName = "" }) => ZoneName);
  }

  /** The only parameter of these resources names an image for arm64, which AWS looks up in SSM. */
  async #image(): Promise<string> {
    const Filters = [{ Name: "architecture", Values: ["arm64"] }];
    const { Images = [] } = await this.#clients.ec2.send(new ec2.DescribeImagesCommand({ Filters }));
    const [image] = Images;
    return image?.ImageId ?? "ami-12c6146b";
  }

  #resource(stack: string, id: string): Promise<Made> {
    const key = `${stack}/${id}`;
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const made = this.#make(stack, id);
    this.#made.set(key, made);
    return made;
  }

  async #make(stack: string, id: string): Promise<Made> {
    const resource = this.#template(stack).Resources[id];
    if (resource === undefined) throw new Error(`${stack} has no ${id}`);
    const make = this.#makers[resource.Type];
    if (make === undefined) {
      this.leftOut.add(resource.Type);
      return { ref: id };
    }
    // A service names its task definition by a text, and CloudFormation makes the definition first.
    await Promise.all([resource.DependsOn ?? []].flat().map((other) => this.#resource(stack, other)));
    return make(this.#clients, await this.value(stack, resource.Properties), id);
  }
}

/** A name that the template leaves to CloudFormation: at most 32 letters and digits, as balancers require. */
const named = (id: string): string => id.slice(-32);

/** Lowercases the first letter of property names, for types where the SDK expects it. */
export function camel(value: unknown): Properties {
  if (Array.isArray(value)) return value.map(camel);
  if (typeof value !== "object" || value === null) return value;
  const small = (name: string): string =>
    name.replace(/^([A-Z]+)(?=[A-Z][a-z])|^[A-Z]/, (begin) => begin.toLowerCase());
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [small(name), camel(one)]));
}

function got<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`no ${what} was answered`);
  return value;
}

/** Functions that create resources, by CloudFormation type. */
const MAKERS: Readonly<Record<string, Maker>> = {
  "AWS::EC2::VPC": async (clients, { CidrBlock, InstanceTenancy, EnableDnsSupport, EnableDnsHostnames }) => {
    const made = await clients.ec2.send(new ec2.CreateVpcCommand({ CidrBlock, InstanceTenancy }));
    const VpcId = got(made.Vpc?.VpcId, "VPC");
    const modify = (what: Json) => clients.ec2.send(new ec2.ModifyVpcAttributeCommand({ VpcId, ...what }));
    await modify({ EnableDnsSupport: { Value: EnableDnsSupport } });
    await modify({ EnableDnsHostnames: { Value: EnableDnsHostnames } });
    return { ref: VpcId, attributes: {} };
  },
  "AWS::EC2::Subnet": async (clients, { AvailabilityZone, CidrBlock, VpcId }) => {
    const made = await clients.ec2.send(new ec2.CreateSubnetCommand({ AvailabilityZone, CidrBlock, VpcId }));
    return { ref: got(made.Subnet?.SubnetId, "subnet"), attributes: {} };
  },
  // The rules of the groups are separate resources; `test/access.test.ts` compares them in the template.
  "AWS::EC2::SecurityGroup": async (clients, { GroupDescription, VpcId }, id) => {
    const group = { GroupName: id, Description: GroupDescription, VpcId };
    const made = await clients.ec2.send(new ec2.CreateSecurityGroupCommand(group));
    const GroupId = got(made.GroupId, "security group");
    return { ref: GroupId, attributes: { GroupId } };
  },
  "AWS::EC2::LaunchTemplate": async (clients, { LaunchTemplateData }, id) => {
    const template = { LaunchTemplateName: id, LaunchTemplateData };
    const made = await clients.ec2.send(new ec2.CreateLaunchTemplateCommand(template));
    const { LaunchTemplateId, LatestVersionNumber } = got(made.LaunchTemplate, "launch template");
    return {
      ref: got(LaunchTemplateId, "id"),
      attributes: { LatestVersionNumber: String(LatestVersionNumber) },
    };
  },
  "AWS::AutoScaling::AutoScalingGroup": async (clients, properties) => {
    const {
      MinSize,
      MaxSize,
      VPCZoneIdentifier,
      MetricsCollection,
      LifecycleHookSpecificationList,
      ...rest
    } = properties;
    const sizes = { MinSize: Number(MinSize), MaxSize: Number(MaxSize) };
    const group = { ...rest, ...sizes, VPCZoneIdentifier: VPCZoneIdentifier.join(",") };
    await clients.asg.send(new asg.CreateAutoScalingGroupCommand(group));
    const { AutoScalingGroupName } = rest;
    // AWS creates these hooks with the group, so that its first machines meet them; moto drops them.
    for (const hook of LifecycleHookSpecificationList)
      await clients.asg.send(new asg.PutLifecycleHookCommand({ AutoScalingGroupName, ...hook }));
    for (const metrics of MetricsCollection)
      await clients.asg.send(new asg.EnableMetricsCollectionCommand({ AutoScalingGroupName, ...metrics }));
    return { ref: AutoScalingGroupName };
  },
  "AWS::ElasticLoadBalancingV2::LoadBalancer": async (clients, properties, id) => {
    const { LoadBalancerAttributes: Attributes, ...rest } = properties;
    const made = await clients.elb.send(new elb.CreateLoadBalancerCommand({ Name: named(id), ...rest }));
    const LoadBalancerArn = got(made.LoadBalancers?.[0]?.LoadBalancerArn, "balancer");
    const attributes = { LoadBalancerArn, Attributes };
    await clients.elb.send(new elb.ModifyLoadBalancerAttributesCommand(attributes));
    return { ref: LoadBalancerArn };
  },
  "AWS::ElasticLoadBalancingV2::TargetGroup": async (clients, properties, id) => {
    const { TargetGroupAttributes: Attributes, ...rest } = properties;
    const made = await clients.elb.send(new elb.CreateTargetGroupCommand({ Name: named(id), ...rest }));
    const TargetGroupArn = got(made.TargetGroups?.[0]?.TargetGroupArn, "target group");
    await clients.elb.send(new elb.ModifyTargetGroupAttributesCommand({ TargetGroupArn, Attributes }));
    return { ref: TargetGroupArn };
  },
  "AWS::ElasticLoadBalancingV2::Listener": async (clients, properties) => {
    const made = await clients.elb.send(new elb.CreateListenerCommand(properties));
    return { ref: got(made.Listeners?.[0]?.ListenerArn, "listener") };
  },
  "AWS::ECS::Cluster": async (clients, { ClusterSettings }, id) => {
    const cluster = { clusterName: id, settings: camel(ClusterSettings) };
    const made = await clients.ecs.send(new ecs.CreateClusterCommand(cluster));
    const { clusterName, clusterArn } = made.cluster ?? {};
    return { ref: got(clusterName, "cluster"), attributes: { Arn: got(clusterArn, "ARN of a cluster") } };
  },
  "AWS::ECS::TaskDefinition": async (clients, properties) => {
    const made = await clients.ecs.send(new ecs.RegisterTaskDefinitionCommand(camel(properties)));
    return { ref: got(made.taskDefinition?.taskDefinitionArn, "task definition") };
  },
  "Custom::TidegraphWorkerDefinition": async (clients, { Cluster, Family, Definition }) => {
    await begin(clients.ecs, { Cluster, Family, Definition });
    return { ref: Family };
  },
  "AWS::ECS::Service": async (clients, properties, id) => {
    const service = { serviceName: id, ...camel(properties) };
    const made = await clients.ecs.send(new ecs.CreateServiceCommand(service));
    return { ref: got(made.service?.serviceArn, "service") };
  },
  "AWS::MSK::Cluster": async (clients, properties) => {
    const { ConfigurationInfo, BrokerNodeGroupInfo, ...rest } = properties;
    const { StorageInfo, ...group } = BrokerNodeGroupInfo;
    const cluster = {
      ...rest,
      // The one property that the SDK names differently.
      BrokerNodeGroupInfo: { ...group, StorageInfo: { EbsStorageInfo: StorageInfo.EBSStorageInfo } },
      // moto has no MSK configurations, and so no revisions of them.
      ConfigurationInfo: { Arn: ConfigurationInfo.Arn, Revision: 1 },
    };
    const made = await clients.kafka.send(new kafka.CreateClusterCommand(cluster));
    const ref = got(made.ClusterArn, "cluster");
    return { ref, attributes: { Arn: ref } };
  },
};

/**
 * The parameters of the templates: settings that constructs pass on as they are. A construct that counts, compares or
 * sizes with a setting needs its value when the template is made; such settings are flags of `npm run template`
 * (`settings.ts`).
 */
import type { CfnParameterProps } from "aws-cdk-lib";
import { WITH_NVME } from "../lib/check.ts";

/** The bucket with the files of the folder. */
export const ASSETS_BUCKET: CfnParameterProps = {
  type: "String",
  description: "Bucket with the files of the folder of templates, in the region of the stack.",
  allowedPattern: "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
  constraintDescription: "the name of a bucket",
};

/** Where the folder is in the bucket. */
export const ASSETS_PREFIX: CfnParameterProps = {
  type: "String",
  description: "Path of the folder of templates in the bucket, with a slash at its end; empty for the root.",
  default: "",
  allowedPattern: "^(|([A-Za-z0-9!_.*'()-]+/)+)$",
  constraintDescription: "a path such as tidegraph/0.1.0/, or nothing",
};

/** The repository with the images of the folder. */
export const REPOSITORY: CfnParameterProps = {
  type: "String",
  description: "Repository of Amazon ECR in this account and region, with the images of the folder.",
  default: "tidegraph",
  minLength: 2,
  maxLength: 256,
  allowedPattern: "^[a-z0-9]+([._/-][a-z0-9]+)*$",
  constraintDescription: "the name of a repository, without its address",
};

/** Parameters of both stacks, by which the service finds the exports of its state. */
export const OF_BOTH = {
  Name: {
    type: "String",
    description: "Name of the deployment, the same for both stacks. It cannot be changed later.",
    default: "tidegraph",
    allowedPattern: "^[a-z][a-z0-9-]{0,30}[a-z0-9]$",
    constraintDescription:
      "2 to 32 lower-case letters, digits and dashes that begin with a letter and do not end with a dash",
  },
  Graph: {
    type: "String",
    description: "Name of the graph, the same for both stacks. It cannot be changed later.",
    default: "default",
    allowedPattern: "^[A-Za-z0-9][A-Za-z0-9-]{0,63}$",
    constraintDescription: "1 to 64 letters, digits and dashes that begin with a letter or digit",
  },
} satisfies Record<string, CfnParameterProps>;

/** Zones of the network. */
export const ZONES = ["FirstZone", "SecondZone", "ThirdZone"] as const;

const zone: CfnParameterProps = {
  type: "String",
  description:
    "Availability zone of machines and brokers, such as us-east-1a. Empty in all three: the first ones.",
  default: "",
  allowedPattern: "^(|[a-z]{2}(-[a-z]+)+-[0-9][a-z0-9-]*)$",
  constraintDescription: "an availability zone, or nothing",
};

/** Parameters of a network that the stack makes. */
export const OF_NETWORK = {
  FirstZone: zone,
  SecondZone: zone,
  ThirdZone: zone,
} satisfies Record<string, CfnParameterProps>;

const subnet: CfnParameterProps = {
  type: "AWS::EC2::Subnet::Id",
  description: "Subnet of the VPC without public addresses, each of the three in another zone.",
};

/** Parameters of a network that exists. */
export const OF_EXISTING_NETWORK = {
  VpcId: {
    type: "AWS::EC2::VPC::Id",
    description: "VPC with DNS names and DNS resolution, and with a way to the services of AWS.",
  },
  FirstSubnet: subnet,
  SecondSubnet: subnet,
  ThirdSubnet: subnet,
} satisfies Record<string, CfnParameterProps>;

/** Parameters of the stack with the durable state. */
export const OF_STATE = {
  Protect: {
    type: "String",
    description:
      "Whether DynamoDB refuses to delete the table of the map. false for the first deployment, so that it can be rolled back.",
    default: "true",
    allowedValues: ["true", "false"],
  },
} satisfies Record<string, CfnParameterProps>;

/** The type of MSK's brokers. */
export const BROKER_TYPE: CfnParameterProps = {
  type: "String",
  description: "Type of the brokers of MSK.",
  allowedPattern: "^kafka\\.(t3\\.small|m5\\.[0-9]*x?large|m7g\\.[0-9]*x?large)$",
  constraintDescription: "a standard broker of MSK, such as kafka.m7g.large",
};

/** Parameters of the stack with the processes. */
export const OF_SERVICE = {
  NodeType: {
    type: "String",
    description: "Type of the machines of storage nodes: Graviton with NVMe instance storage.",
    allowedPattern: WITH_NVME.source,
    constraintDescription: "a Graviton type with NVMe instance storage, such as i4g.xlarge or r8gd.4xlarge",
  },
  Partitions: {
    type: "Number",
    description: "Number of partitions with which the graph is created. Leave it afterwards.",
    allowedValues: Array.from({ length: 16 }, (_, power) => String(2 ** power)),
  },
} satisfies Record<string, CfnParameterProps>;

/** The number of workers. */
export const WORKER_COUNT: CfnParameterProps = {
  type: "Number",
  description: "Least number of workers. More start while they are busy.",
  minValue: 1,
};

/**
 * Traces to AWS X-Ray (docs/traces.md): AWS's agent on each machine, and beside each worker, takes the spans of the
 * process there and sends them on. A layer of the query function has AWS's collector, which does the same. The stage of
 * the API and Lambda write segments of their own above those spans: a rule of X-Ray decides there which requests are
 * traced, and the function, the nodes and their messages follow it.
 */
import { join } from "node:path";
import { DockerImageAsset, Platform } from "aws-cdk-lib/aws-ecr-assets";
import * as ecs from "aws-cdk-lib/aws-ecs";
import type * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type { ILogGroup } from "aws-cdk-lib/aws-logs";
import { CfnSamplingRule } from "aws-cdk-lib/aws-xray";
import type { Construct } from "constructs";
import { InvalidProp, text } from "../check.ts";
import { checkImage } from "../given-image.ts";
import { explain, explainWildcard } from "../nag.ts";
import { statement } from "../statement.ts";
import type { IGraphState } from "./graph-state.ts";

/** Settings of traces. */
export interface TracesProps {
  /**
   * Part of the requests that are traced, above 0 and at most 1, unless the caller's own trace decides. X-Ray bills each
   * trace.
   *
   * @default 0.01
   */
  readonly ratio?: number;
  /**
   * The image of AWS's agent beside each worker, given by digest. It is copied into the account when the app is
   * deployed, because workers have no way to other registries.
   *
   * @default - none: it or `image` is needed if there are workers
   */
  readonly agentImage?: string;
  /**
   * An image of AWS's agent that workers can pull, such as a copy in a repository of the account, in place of one that is
   * copied by Docker when the app is deployed: for arm64, given by its digest or a tag that stays.
   *
   * @default - a copy of `agentImage`
   */
  readonly image?: ecs.ContainerImage;
  /**
   * The ARN of a version of a layer for the query function, with a collector that takes spans at port 4318 and sends them
   * to X-Ray. It has to be in the function's region and for its processor.
   *
   * @default - AWS's collector (AWS Distro for OpenTelemetry 0.115.0), which most regions have
   */
  readonly collectorLayer?: string;
}

/** Part of the requests that are traced. */
const RATIO = 0.01;

const DIGEST = "an image by its digest, NAME@sha256:…";

/** The port at which the agent takes spans, on the loopback interface. */
const PORT = 4318;

/** What the agent's settings need to take spans. */
export const TRACES_OF_AGENT = {
  traces_collected: { otlp: { http_endpoint: `127.0.0.1:${PORT}` } },
};

/** Returns the variables of a process that sends traces. */
export function traceVariables({ ratio = RATIO }: TracesProps): Record<string, string> {
  if (!(ratio > 0 && ratio <= 1)) throw new InvalidProp("traces.ratio", ratio, "above 0 and at most 1");
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${PORT}`,
    OTEL_TRACES_SAMPLER_ARG: String(ratio),
  };
}

/** AWS's collector. It takes OTLP at its usual ports of the loopback interface, and sends it to X-Ray. */
const COLLECTOR = lambda.AdotLambdaLayerGenericVersion.V0_115_0;

/** Returns the layer with the collector of a function. */
export function collector(
  scope: Construct,
  { collectorLayer }: TracesProps,
  architecture: lambda.Architecture,
): lambda.ILayerVersion {
  const form = /^arn:[a-z-]+:lambda:[a-z0-9-]+:\d{12}:layer:[A-Za-z0-9_-]+:\d+$/;
  const arn =
    collectorLayer === undefined
      ? COLLECTOR.layerArn(scope, architecture)
      : text("traces.collectorLayer", collectorLayer, form, "the ARN of a version of a layer");
  return lambda.LayerVersion.fromLayerVersionArn(scope, "Collector", arn);
}

/**
 * Makes X-Ray trace a part of the requests to a stage of an API, beside those whose caller decided it. Without a rule X-Ray
 * would trace the first one of each second and 5 % of the others.
 */
export function sample(scope: Construct, { ratio = RATIO }: TracesProps, api: string, stage: string): void {
  new CfnSamplingRule(scope, "Sampling", {
    samplingRule: {
      // At most 32 characters, as the name of a deployment.
      ruleName: api,
      version: 1,
      // Before rules of the account for all services, which usually have the last priorities.
      priority: 1000,
      fixedRate: ratio,
      reservoirSize: 0,
      serviceName: `${api}/${stage}`,
      serviceType: "AWS::ApiGateway::Stage",
      host: "*",
      httpMethod: "*",
      urlPath: "*",
      resourceArn: "*",
    },
  });
}

/** Lets an agent that runs as a role send traces. */
export function sendTraces(role: iam.IRole): void {
  const actions = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"];
  role.addToPrincipalPolicy(statement("SendTraces", actions, ["*"]));
  explainWildcard(role, "*", "X-Ray's traces are no resources.");
}

/** Memory of a worker's task that its agent has, in MiB. */
export const AGENT_MIB = 256;

/** Adds AWS's agent to the task of a worker. */
export function addAgent(
  task: ecs.FargateTaskDefinition,
  props: TracesProps,
  state: IGraphState,
  logGroup: ILogGroup,
): void {
  const container = task.addContainer("agent", {
    image: props.image ?? copied(task, props),
    // A worker serves without traces, too.
    essential: false,
    memoryLimitMiB: AGENT_MIB,
    environment: { CW_CONFIG_CONTENT: JSON.stringify({ traces: TRACES_OF_AGENT }) },
    logging: ecs.LogDriver.awsLogs({ logGroup, streamPrefix: "agent" }),
  });
  if (props.image) checkImage("traces.image", container, state, false);
  explain(task, "ECS2", "The agent's settings, and where processes send their spans, are no secrets.");
  sendTraces(task.taskRole);
}

/** Returns a copy of the agent's image in the account. */
function copied(task: ecs.FargateTaskDefinition, { agentImage = "" }: TracesProps): ecs.ContainerImage {
  const base = text("traces.agentImage", agentImage, /@sha256:[0-9a-f]{64}$/, DIGEST);
  const image = new DockerImageAsset(task, "AgentImage", {
    directory: join(import.meta.dirname, "..", "..", "agent"),
    platform: Platform.LINUX_ARM64,
    buildArgs: { BASE: base },
  });
  return ecs.ContainerImage.fromDockerImageAsset(image);
}

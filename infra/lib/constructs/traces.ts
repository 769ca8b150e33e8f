/**
 * Traces to AWS X-Ray (docs/traces.md): AWS's agent on each machine, and beside each worker, takes the spans of the
 * process there and sends them on. The query function has no agent; X-Ray has Lambda's own segments of it.
 */
import { join } from "node:path";
import { DockerImageAsset, Platform } from "aws-cdk-lib/aws-ecr-assets";
import * as ecs from "aws-cdk-lib/aws-ecs";
import type * as iam from "aws-cdk-lib/aws-iam";
import type { ILogGroup } from "aws-cdk-lib/aws-logs";
import { InvalidProp, text } from "../check.ts";
import { explainWildcard } from "../nag.ts";
import { statement } from "../statement.ts";

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
   * @default - none: needed if there are workers
   */
  readonly agentImage?: string;
}

const DIGEST = "an image by its digest, NAME@sha256:…";

/** The port at which the agent takes spans, on the loopback interface. */
const PORT = 4318;

/** What the agent's settings need to take spans. */
export const TRACES_OF_AGENT = {
  traces_collected: { otlp: { http_endpoint: `127.0.0.1:${PORT}` } },
};

/** Returns the variables of a process that sends traces. */
export function traceVariables({ ratio = 0.01 }: TracesProps): Record<string, string> {
  if (!(ratio > 0 && ratio <= 1)) throw new InvalidProp("traces.ratio", ratio, "above 0 and at most 1");
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${PORT}`,
    OTEL_TRACES_SAMPLER_ARG: String(ratio),
  };
}

/** Lets an agent that runs as a role send traces. */
export function sendTraces(role: iam.IRole): void {
  const actions = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"];
  role.addToPrincipalPolicy(statement("SendTraces", actions, ["*"]));
  explainWildcard(role, "*", "X-Ray's traces are no resources.");
}

/** Adds AWS's agent to the task of a worker. */
export function addAgent(task: ecs.FargateTaskDefinition, props: TracesProps, logGroup: ILogGroup): void {
  const base = text("traces.agentImage", props.agentImage ?? "", /@sha256:[0-9a-f]{64}$/, DIGEST);
  const image = new DockerImageAsset(task, "AgentImage", {
    directory: join(import.meta.dirname, "..", "..", "agent"),
    platform: Platform.LINUX_ARM64,
    buildArgs: { BASE: base },
  });
  task.addContainer("agent", {
    image: ecs.ContainerImage.fromDockerImageAsset(image),
    // A worker serves without traces, too.
    essential: false,
    memoryReservationMiB: 64,
    environment: { CW_CONFIG_CONTENT: JSON.stringify({ traces: TRACES_OF_AGENT }) },
    logging: ecs.LogDriver.awsLogs({ logGroup, streamPrefix: "agent" }),
  });
  sendTraces(task.taskRole);
}

/** Shared by all functions here: settings from the environment; logs, traces and metrics (AWS Lambda Powertools). */
import { Logger } from "@aws-lambda-powertools/logger";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import { Metrics } from "@aws-lambda-powertools/metrics";
import { logMetrics } from "@aws-lambda-powertools/metrics/middleware";
import { Tracer } from "@aws-lambda-powertools/tracer";
import { captureLambdaHandler } from "@aws-lambda-powertools/tracer/middleware";
import { S3Client } from "@aws-sdk/client-s3";
import middy, { type MiddyfiedHandler } from "@middy/core";
import type { Context } from "aws-lambda";
import { Bucket } from "./objects.ts";

/** Returns an environment variable. Throws if it is missing or empty, so that the function does not start. */
export function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") throw new Error(`${name} is not set`);
  return value;
}

export const logger = new Logger();
export const tracer = new Tracer();
export const metrics = new Metrics({ defaultDimensions: { Deployment: setting("TIDEGRAPH_DEPLOYMENT") } });

const s3 = tracer.captureAWSv3Client(new S3Client());

/** The drop bucket. */
export const drop = new Bucket(s3, setting("TIDEGRAPH_DROP_BUCKET"));

/** Returns the bucket whose name is in the environment variable `name`. */
export function bucket(name: string): Bucket {
  return new Bucket(s3, setting(name));
}

/** Wraps a handler: adds the context of the invocation to log lines, records a trace, and publishes metrics. */
export function observed<Event, Answer>(
  handle: (event: Event, context: Context) => Promise<Answer>,
): MiddyfiedHandler<Event, Answer> {
  return middy<Event, Answer>()
    .use(captureLambdaHandler(tracer, { captureResponse: false }))
    .use(injectLambdaContext(logger, { resetKeys: true }))
    .use(logMetrics(metrics))
    .handler(handle);
}

/** What all functions here have in common: settings from the environment, logs, traces and metrics (AWS Lambda Powertools). */
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

/** A setting; without it a function does not start. */
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

/** A bucket that a setting names. */
export function bucket(name: string): Bucket {
  return new Bucket(s3, setting(name));
}

/** A function with a log line's context, a trace and metrics. */
export function observed<Event, Answer>(
  handle: (event: Event, context: Context) => Promise<Answer>,
): MiddyfiedHandler<Event, Answer> {
  return middy<Event, Answer>()
    .use(captureLambdaHandler(tracer, { captureResponse: false }))
    .use(injectLambdaContext(logger, { resetKeys: true }))
    .use(logMetrics(metrics))
    .handler(handle);
}

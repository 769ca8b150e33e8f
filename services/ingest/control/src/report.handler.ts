/** The Lambda function that writes the report of a drop, and finds the load of an execution that ended without one. */
import { MetricUnit } from "@aws-lambda-powertools/metrics";
import { parse } from "@aws-lambda-powertools/parser";
import { SFNClient } from "@aws-sdk/client-sfn";
import { z } from "zod";
import { StepFunctions } from "./executions.ts";
import { COMPLETED, FAILED, RECORDS, REFUSED, REJECTED } from "./metrics.ts";
import { bucket, drop, logger, metrics, observed, tracer } from "./observe.ts";
import { inputSchema, rejected, type Told, tell } from "./report.ts";
import { type Found, look, stoppedSchema } from "./stopped.ts";

const data = bucket("TIDEGRAPH_DATA_BUCKET");
const executions = new StepFunctions(tracer.captureAWSv3Client(new SFNClient()));
const eventSchema = z.union([inputSchema, stoppedSchema]);

export const handler = observed(async (event: unknown): Promise<Told | Found> => {
  const input = parse(event, undefined, eventSchema);
  if (input.kind === "stopped") {
    const found = await look(input, { executions, drop });
    logger[found.outcome === "open" ? "warn" : "info"]("execution ended", { ...found });
    return found;
  }
  const { told, report } = await tell(input, { data, drop });
  const isComplete = report.status === "LOAD_COMPLETED";
  const outcome = input.kind === "refused" ? REFUSED : isComplete ? COMPLETED : FAILED;
  metrics.addMetric(outcome, MetricUnit.Count, 1);
  if (isComplete) metrics.addMetric(RECORDS, MetricUnit.Count, report.totalRecords);
  metrics.addMetric(REJECTED, MetricUnit.Count, rejected(report));
  const { errorLogs, ...rest } = report;
  logger[isComplete ? "info" : "warn"]("load", { ...rest, report: told.report });
  return told;
});

/** The function that tells what became of a drop. */
import { MetricUnit } from "@aws-lambda-powertools/metrics";
import { parse } from "@aws-lambda-powertools/parser";
import { COMPLETED, FAILED, RECORDS, REFUSED, REJECTED } from "./metrics.ts";
import { bucket, drop, logger, metrics, observed } from "./observe.ts";
import { inputSchema, rejected, type Told, tell } from "./report.ts";

const data = bucket("TIDEGRAPH_DATA_BUCKET");

export const handler = observed(async (event: unknown): Promise<Told> => {
  const input = parse(event, undefined, inputSchema);
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

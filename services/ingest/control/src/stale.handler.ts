/** The Lambda function that reports drops that nobody completed. */
import { MetricUnit } from "@aws-lambda-powertools/metrics";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { STALE } from "./metrics.ts";
import { drop, logger, metrics, observed, setting, tracer } from "./observe.ts";
import { look } from "./stale.ts";

/** Limit of requests of one search. At about 50 ms each, they end within the time limit of the function. */
const REQUESTS = 5_000;

const graph = setting("TIDEGRAPH_GRAPH");
const patienceMs = Number(setting("TIDEGRAPH_STALE_SECONDS")) * 1000;
const table = DynamoDBDocumentClient.from(tracer.captureAWSv3Client(new DynamoDBClient()), {
  marshallOptions: { removeUndefinedValues: true },
});
/** Item with the folder where the last search stopped, in the table of taken loads. */
const place = { TableName: setting("TIDEGRAPH_TAKEN_TABLE"), Key: { id: `stale#${graph}` } };

export const handler = observed(async (): Promise<{ stale: number; told: number }> => {
  const before = (await table.send(new GetCommand(place))).Item?.after as string | undefined;
  const parts = { graph, drop, patienceMs, now: new Date(), requests: REQUESTS };
  const { stale, told, after } = await look(parts, before);
  if (after !== before) {
    await table.send(new PutCommand({ TableName: place.TableName, Item: { ...place.Key, after } }));
  }
  for (const one of told) logger.warn("stale", { ...one });
  metrics.addMetric(STALE, MetricUnit.Count, stale.length);
  return { stale: stale.length, told: told.length };
});

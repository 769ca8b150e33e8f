/** The Lambda function that reports drops that nobody completed. */
import { MetricUnit } from "@aws-lambda-powertools/metrics";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { STALE } from "./metrics.ts";
import { drop, logger, metrics, observed, setting, tracer } from "./observe.ts";
import { type Found, look } from "./stale.ts";

/** Limit of requests of one search of all graphs. At about 50 ms each, they end within the time limit of the function. */
const REQUESTS = 5_000;

const graphs = setting("TIDEGRAPH_GRAPH").split(",");
const patienceMs = Number(setting("TIDEGRAPH_STALE_SECONDS")) * 1000;
const table = DynamoDBDocumentClient.from(tracer.captureAWSv3Client(new DynamoDBClient()), {
  marshallOptions: { removeUndefinedValues: true },
});
const TableName = setting("TIDEGRAPH_TAKEN_TABLE");

/** Searches the drops of a graph. The table of taken loads has the folder where the last search stopped. */
async function lookIn(graph: string): Promise<Found> {
  const place = { TableName, Key: { id: `stale#${graph}` } };
  const before = (await table.send(new GetCommand(place))).Item?.after as string | undefined;
  const requests = Math.ceil(REQUESTS / graphs.length);
  const found = await look({ graph, drop, patienceMs, now: new Date(), requests }, before);
  const { after } = found;
  if (after !== before) await table.send(new PutCommand({ TableName, Item: { ...place.Key, after } }));
  return found;
}

export const handler = observed(async (): Promise<{ stale: number; told: number }> => {
  const count = { stale: 0, told: 0 };
  for (const graph of graphs) {
    const { stale, told } = await lookIn(graph);
    for (const one of told) logger.warn("stale", { ...one });
    count.stale += stale.length;
    count.told += told.length;
  }
  metrics.addMetric(STALE, MetricUnit.Count, count.stale);
  return count;
});

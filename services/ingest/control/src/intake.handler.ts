/** The Lambda function that takes a drop: connects `intake` to S3 and to the table of taken loads. */
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { parse } from "@aws-lambda-powertools/parser";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { inputSchema, intake, type Taken } from "./intake.ts";
import { drop, logger, observed, setting, tracer } from "./observe.ts";

/** How long the table remembers who took a load. Later, the report of the load shows that the load was taken. */
const KEPT_SECONDS = 30 * 24 * 3600;

const graphs = setting("TIDEGRAPH_GRAPH").split(",");
const config = new IdempotencyConfig({
  eventKeyJmesPath: "loadId",
  throwOnNoIdempotencyKey: true,
  expiresAfterSeconds: KEPT_SECONDS,
});
const persistenceStore = new DynamoDBPersistenceLayer({
  tableName: setting("TIDEGRAPH_TAKEN_TABLE"),
  awsSdkV3Client: tracer.captureAWSv3Client(new DynamoDBClient()),
});
/** Returns the first execution that asked for a load. Every later call for the load gets the same answer. */
const take = makeIdempotent(
  async ({ execution }: { loadId: string; execution: string }) => ({ execution }),
  // A fixed prefix: the default is the name of the function, which changes when the stack is created again.
  { persistenceStore, config, keyPrefix: "drop" },
);
const claim = async (loadId: string, execution: string): Promise<string> =>
  (await take({ loadId, execution })).execution;

export const handler = observed(async (event: unknown, context): Promise<Taken> => {
  config.registerLambdaContext(context);
  const input = parse(event, undefined, inputSchema);
  const taken = await intake(input, { graphs, drop, claim });
  const { key } = input.input.detail.object;
  logger.info("drop", { key, execution: input.execution, ...taken });
  return taken;
});

/** The Lambda function that removes one graph. Its variables also say to `tidegraph-node` where everything is. */
import { join } from "node:path";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { S3Client } from "@aws-sdk/client-s3";
import { type Event, type Removed, remove } from "./removal.ts";

const dynamodb = new DynamoDBClient({ maxAttempts: 10 });
const s3 = new S3Client({ maxAttempts: 10 });

export const handler = (event: Event, context: { getRemainingTimeInMillis(): number }): Promise<Removed> =>
  remove(event, {
    dynamodb,
    s3,
    program: join(variable("LAMBDA_TASK_ROOT"), "tidegraph-node"),
    graphs: variable("GRAPHS").split(","),
    table: `${variable("TIDEGRAPH_TABLE_PREFIX")}map`,
    dataBucket: variable("TIDEGRAPH_OBJECTS").replace(/^s3:\/\//, ""),
    dropBucket: variable("DROP_BUCKET"),
    timeLeftMs: () => context.getRemainingTimeInMillis(),
  });

function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") throw new Error(`the variable ${name} is missing`);
  return value;
}

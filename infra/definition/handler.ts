/** The Lambda function that registers the definitions of workers, for CloudFormation and for the machine that upgrades. */
import { ECSClient } from "@aws-sdk/client-ecs";
import { type Event, handle, type Step, step } from "./definition.ts";

const client = new ECSClient({ maxAttempts: 10 });

export const handler = (event: Event | Step): Promise<unknown> =>
  "RequestType" in event ? handle(event, client) : step(event, client);

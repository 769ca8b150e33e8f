/** The Lambda function of the custom resource `Brokers`. */
import { KafkaClient } from "@aws-sdk/client-kafka";
import { type Event, handle } from "./brokers.ts";

const client = new KafkaClient({ maxAttempts: 10 });

export const handler = (event: Event): Promise<void> => handle(event, client);

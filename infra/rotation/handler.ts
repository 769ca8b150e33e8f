/** The Lambda function that Secrets Manager calls to rotate the secret of the fleet. */
import { SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { type Event, rotate } from "./rotation.ts";

const client = new SecretsManagerClient({ maxAttempts: 10 });

/** Carries out a step, and logs it. */
export const handler = async (event: Event): Promise<void> => {
  await rotate(event, client);
  console.log(JSON.stringify({ done: event.Step, version: event.ClientRequestToken }));
};

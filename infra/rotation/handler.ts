/** The Lambda function that Secrets Manager calls to rotate the secret of the fleet. */
import { SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { type Event, rotate } from "./rotation.ts";

const client = new SecretsManagerClient({ maxAttempts: 10 });

export const handler = (event: Event): Promise<void> => rotate(event, client);

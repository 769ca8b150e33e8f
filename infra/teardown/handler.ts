/** The Lambda function of the custom resource `Teardown`. */
import { AutoScalingClient } from "@aws-sdk/client-auto-scaling";
import { type Event, handle } from "./teardown.ts";

const PAUSE_MS = 10_000;
const client = new AutoScalingClient({ maxAttempts: 10 });

export const handler = (event: Event, context: { getRemainingTimeInMillis(): number }): Promise<void> =>
  handle(event, { client, pauseMs: PAUSE_MS, timeLeftMs: () => context.getRemainingTimeInMillis() });

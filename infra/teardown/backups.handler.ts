/** The Lambda function of the custom resource `BackupTeardown`. */
import { ECSClient } from "@aws-sdk/client-ecs";
import { SFNClient } from "@aws-sdk/client-sfn";
import { type Event, handle } from "./backups.ts";

const PAUSE_MS = 10_000;
const sfn = new SFNClient({ maxAttempts: 10 });
const ecs = new ECSClient({ maxAttempts: 10 });

export const handler = (event: Event, context: { getRemainingTimeInMillis(): number }): Promise<void> =>
  handle(event, { sfn, ecs, pauseMs: PAUSE_MS, timeLeftMs: () => context.getRemainingTimeInMillis() });

/**
 * Finds out which load an execution had that ended by itself, stopped by somebody or out of time: the first step of the state machine that settles such loads. Says what is to be done:
 *
 * - `open`: it took a load, and nothing is told of it. Steps that it asked for may run for a while;
 * - `told`: the report of its load is there;
 * - `none`: it took none, or goes on (*redrive*), or has completed.
 *
 * What it took stands in its history: what its first state, which takes the drop, went on with. The mark would not do, somebody may have replaced it since.
 *
 * What must never happen: that a load is settled whose execution goes on.
 */
import { z } from "zod";
import type { Objects } from "./objects.ts";
import { loadSchema } from "./report.ts";

const EXECUTION = /^arn:[a-z-]+:states:[a-z0-9-]*:[0-9]{12}:execution:/;

/** What the state machine was started with (`contracts/schemas/ingest-stopped.schema.json`). */
export const eventSchema = z.object({
  source: z.literal("aws.states").optional(),
  "detail-type": z.literal("Step Functions Execution Status Change").optional(),
  detail: z.object({
    executionArn: z.string().regex(EXECUTION).max(2048),
    status: z.enum(["ABORTED", "FAILED", "TIMED_OUT"]).optional(),
  }),
  waitSeconds: z.int().min(0).max(3600).optional(),
});

/** What the function is given. */
export const stoppedSchema = z.object({
  kind: z.literal("stopped"),
  event: eventSchema,
  /** How long a step may run that was asked for before the execution ended. */
  longestSeconds: z.int().min(0),
});
export type Stopped = z.infer<typeof stoppedSchema>;

/** What a drop was taken for, as far as it is needed here (`intake.ts`). */
const takenSchema = z.object({ outcome: z.enum(["load", "refused"]), load: loadSchema });

/** How an execution stands. */
export interface Standing {
  readonly status: string;
  readonly cause: string | undefined;
}

/** Executions of the state machine that loads. */
export interface Executions {
  /** `undefined` where there is no such execution any more. */
  standing(execution: string): Promise<Standing | undefined>;
  /** What the first state that it left went on with, as JSON; `undefined` where it left none. */
  first(execution: string): Promise<string | undefined>;
}

export type Found =
  | {
      readonly outcome: "open";
      readonly load: z.infer<typeof loadSchema>;
      readonly waitSeconds: number;
      readonly error: { readonly Error: string; readonly Cause: string };
    }
  | { readonly outcome: "told" | "none"; readonly reason: string };

/** By how an execution ended. */
const REASONS: Readonly<Record<string, string>> = {
  ABORTED: "somebody stopped it",
  FAILED: "it ended without a report",
  TIMED_OUT: "it took longer than a load may take",
};

export async function look(
  { event, longestSeconds }: Stopped,
  { executions, drop }: { readonly executions: Executions; readonly drop: Objects },
): Promise<Found> {
  const { executionArn } = event.detail;
  const standing = await executions.standing(executionArn);
  const ended = standing && REASONS[standing.status];
  if (ended === undefined) {
    return { outcome: "none", reason: `${executionArn} is ${standing?.status ?? "not there any more"}` };
  }
  const taken = takenSchema.safeParse(parsed(await executions.first(executionArn)));
  if (!taken.success) return { outcome: "none", reason: `${executionArn} took no drop` };
  const { load } = taken.data;
  if ((await drop.etag(load.report)) !== undefined) {
    return { outcome: "told", reason: `${load.report} is there` };
  }
  const cause = standing?.cause ? `${ended}: ${standing.cause}` : ended;
  const error = { Error: standing?.status ?? "", Cause: cause };
  return { outcome: "open", load, waitSeconds: event.waitSeconds ?? longestSeconds, error };
}

function parsed(json: string | undefined): unknown {
  try {
    return JSON.parse(json ?? "null");
  } catch {
    return undefined;
  }
}

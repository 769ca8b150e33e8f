/**
 * Finds the load of an execution that was stopped, failed or timed out: the first step of the state machine that
 * settles such loads. Returns what the machine has to do:
 *
 * - `open`: the execution took a load that has no report. Steps that it started may still run for a while;
 * - `told`: the load has its report;
 * - `none`: the execution took no load, runs again (*redrive*), has completed, or does not exist any more.
 *
 * The load is read from the history of the execution: it is in the output of the first state, which takes the drop. The
 * mark cannot be used, because somebody may have replaced it meanwhile.
 *
 * What must never happen: a load is settled while its execution runs.
 */
import { z } from "zod";
import type { Objects } from "./objects.ts";
import { loadSchema } from "./report.ts";

const EXECUTION = /^arn:[a-z-]+:states:[a-z0-9-]*:[0-9]{12}:execution:/;

/** The input of the state machine (`contracts/schemas/ingest-stopped.schema.json`). */
export const eventSchema = z.object({
  source: z.literal("aws.states").optional(),
  "detail-type": z.literal("Step Functions Execution Status Change").optional(),
  detail: z.object({
    executionArn: z.string().regex(EXECUTION).max(2048),
    status: z.enum(["ABORTED", "FAILED", "TIMED_OUT"]).optional(),
  }),
  waitSeconds: z.int().min(0).max(3600).optional(),
});

/** The payload of the function. */
export const stoppedSchema = z.object({
  kind: z.literal("stopped"),
  event: eventSchema,
  /** Longest time that a step may still run after its execution ended. */
  longestSeconds: z.int().min(0),
});
export type Stopped = z.infer<typeof stoppedSchema>;

/** The fields of the result of `intake` that are used here. */
const takenSchema = z.object({ outcome: z.enum(["load", "refused"]), load: loadSchema });

/** The status of an execution, and the cause if it failed. */
export interface Standing {
  readonly status: string;
  readonly cause: string | undefined;
}

/** Executions of the state machine that loads. */
export interface Executions {
  /** Returns the status of an execution, or `undefined` if the execution does not exist any more. */
  standing(execution: string): Promise<Standing | undefined>;
  /** Returns the output of the first completed state as JSON, or `undefined` if no state was completed. */
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

/** Reasons for the report, by the status of the execution. */
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

/**
 * Reports the outcome of a drop: the last step of the state machine. The function that loads writes the report of a
 * load into the data bucket, which only processes read. This step copies it to the drop bucket, which users read. It
 * makes the report itself if the drop was refused, or if the function could not end the load.
 *
 * What must never happen: a load ends without a report. If the report of a load cannot be read, this step writes one
 * with the status of the load and the reason.
 */
import { z } from "zod";
import type { Objects } from "./objects.ts";

const count = z.int().min(0);
/** A load, as the state machines pass it from step to step. */
export const loadSchema = z.object({
  loadId: z.uuid(),
  source: z.string(),
  report: z.string().startsWith("reports/"),
  graph: z.string().optional(),
});

/** The payload of the function. */
export const inputSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("ended"),
    load: loadSchema,
    ended: z.object({
      status: z.string().regex(/^LOAD_[A-Z0-9_]+$/),
      report: z.string().regex(/^(graphs\/[^/]+\/)?ingest\//),
    }),
  }),
  z.object({ kind: z.literal("refused"), load: loadSchema, reason: z.string() }),
  z.object({
    kind: z.literal("failed"),
    load: loadSchema,
    error: z.object({ Error: z.string(), Cause: z.string().optional() }),
  }),
]);
export type Input = z.infer<typeof inputSchema>;

/** A report of a load (`contracts/schemas/ingest-report.schema.json`). */
export const reportSchema = z.looseObject({
  loadId: z.uuid(),
  status: z.string(),
  source: z.string(),
  totalRecords: count,
  totalDuplicates: count,
  parsingErrors: count,
  datatypeMismatchErrors: count,
  insertErrors: count,
  message: z.string().nullish(),
  errorLogs: z.array(z.unknown()),
});
export type Report = z.infer<typeof reportSchema>;

/** The result of the step, with which the state machine ends. */
export interface Told {
  readonly status: string;
  /** Why the load did not complete, cut after 1,000 characters; empty if it did. */
  readonly message: string;
  /** The `s3://` URI of the report. */
  readonly report: string;
}

export interface Parts {
  readonly data: Objects;
  readonly drop: Objects;
}

/** Largest size of a report: 10,000 refused rows, each with its value. */
const MOST_BYTES = 32 << 20;
/** Number of characters of a message that the result of the step holds. */
const MOST_MESSAGE = 1000;

export async function tell(input: Input, parts: Parts): Promise<{ told: Told; report: Report }> {
  const report = await made(input, parts.data);
  await parts.drop.write(input.load.report, `${JSON.stringify(report, undefined, 2)}\n`);
  const message = (report.message ?? "").slice(0, MOST_MESSAGE);
  const told = { status: report.status, message, report: `s3://${parts.drop.bucket}/${input.load.report}` };
  return { told, report };
}

/** Returns the number of refused rows. */
export function rejected(report: Report): number {
  return report.parsingErrors + report.datatypeMismatchErrors + report.insertErrors;
}

async function made(input: Input, data: Objects): Promise<Report> {
  switch (input.kind) {
    case "refused":
      return without(input.load, "LOAD_FAILED_INVALID_REQUEST", input.reason);
    case "failed": {
      const { Error: name, Cause: cause } = input.error;
      return without(input.load, "LOAD_UNEXPECTED_ERROR", cause ? `${name}: ${cause}` : name);
    }
    case "ended": {
      const { status, report: key } = input.ended;
      const found = await read(data, key, input.load.loadId);
      return typeof found === "string"
        ? without(input.load, status, `${found}: how many rows it had is not known`)
        : { ...found, status };
    }
  }
}

/** Returns the report of a load from the data bucket, or the reason why it cannot be used. */
async function read(data: Objects, key: string, loadId: string): Promise<Report | string> {
  const content = await data.read(key, MOST_BYTES);
  if (content === undefined) return `there is no ${key}`;
  if (content === "tooLarge") return `${key} has more than ${MOST_BYTES} bytes`;
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(content));
  } catch (error) {
    return `${key} is not JSON: ${error instanceof Error ? error.message : error}`;
  }
  const { success, data: report, error } = reportSchema.safeParse(value);
  if (!success) return `${key} is no report: ${error.issues[0]?.path.join(".")}: ${error.issues[0]?.message}`;
  if (report.loadId !== loadId) return `${key} is of the load ${report.loadId}`;
  return report;
}

/** Makes a report whose counts are all zero. */
function without(load: Input["load"], status: string, message: string): Report {
  const { loadId, source } = load;
  const counts = { totalRecords: 0, totalDuplicates: 0 };
  const errors = { parsingErrors: 0, datatypeMismatchErrors: 0, insertErrors: 0 };
  return { loadId, status, source, version: null, ...counts, ...errors, message, errorLogs: [] };
}

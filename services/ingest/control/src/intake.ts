/**
 * Takes a drop: the first step of the state machine. Reads the mark that the event names, computes the id of the
 * load, and decides what the state machine does:
 *
 * - `load`: this execution begins the load, or resumes it after an earlier attempt of this step;
 * - `already`: another execution has taken the load, or the load has a report;
 * - `refused`: the drop cannot be loaded, and the report gives the reason;
 * - `ignored`: the object is not the mark of a load, or its name leaves no room for the name of a report.
 *
 * What must never happen: two executions begin the same load. EventBridge delivers each event at least once, and users
 * may write a mark twice.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { COMPLETE, folderOf, idOf, isKey, loadIn, reportOf } from "./mark.ts";
import type { Objects } from "./objects.ts";
import { type Listed, MOST_BYTES, type Options, optionsOf } from "./options.ts";
import { Refused } from "./refused.ts";

/** The payload of the function: the ARN of the execution, and the input of the state machine. */
export const inputSchema = z.object({
  execution: z.string().min(1).max(2048),
  input: z.object({
    source: z.literal("aws.s3").optional(),
    "detail-type": z.literal("Object Created").optional(),
    detail: z.object({
      bucket: z.object({ name: z.string().min(3).max(63) }),
      object: z.object({ key: z.string().min(1).max(1024) }),
    }),
  }),
});
export type Input = z.infer<typeof inputSchema>;

/** A load, as the state machine passes it from step to step. */
export interface Load {
  readonly loadId: string;
  /** The `s3://` URI of the folder; for outcomes other than `load`, it may be the URI of the mark. */
  readonly source: string;
  /** Key of the report in the drop bucket. */
  readonly report: string;
  /** The graph, where there are several and the load is into one of them. */
  readonly graph?: string;
}

/** The first event for the function that loads (`contracts/schemas/ingest-event.schema.json`). */
export interface Begin extends Omit<Options, "files"> {
  readonly step: "begin";
  readonly loadId: string;
  readonly source: string;
  readonly files?: readonly string[];
  readonly graph?: string;
}

export type Taken =
  | { readonly outcome: "load"; readonly load: Load; readonly begin: Begin }
  | { readonly outcome: "already"; readonly load: Load }
  | { readonly outcome: "refused"; readonly load: Load; readonly reason: string }
  | { readonly outcome: "ignored"; readonly reason: string };

/** The resources that `intake` uses. */
export interface Parts {
  /** The graphs whose drops are in the bucket. */
  readonly graphs: readonly string[];
  readonly drop: Objects;
  /** Claims a load for an execution. Returns the execution that has it, which is the first one that claimed it. */
  claim(loadId: string, execution: string): Promise<string>;
}

/** Number of objects of a manifest that are checked concurrently. */
const AT_ONCE = 32;

export async function intake({ execution, input }: Input, parts: Parts): Promise<Taken> {
  const { bucket, object } = input.detail;
  const { drop } = parts;
  if (bucket.name !== drop.bucket) {
    return { outcome: "ignored", reason: `the bucket is ${bucket.name}, and drops are in ${drop.bucket}` };
  }
  const { key } = object;
  const folder = folderOf(key);
  if (folder === undefined) {
    return { outcome: "ignored", reason: `${key} is no drop/GRAPH/NAME/${COMPLETE}` };
  }
  const content = await drop.read(key, MOST_BYTES);
  if (content === undefined) {
    // Somebody deleted the mark and so withdrew the drop. Its files may be gone too.
    return { outcome: "ignored", reason: `${key} is not there any more` };
  }
  // A mark over the limit is not read. All such marks of a folder share one id, and so one refusal.
  const digest = content === "tooLarge" ? content : createHash("sha256").update(content).digest("hex");
  const loadId = idOf(drop.bucket, key, digest);
  const report = reportOf(folder, loadId);
  if (!isKey(report)) {
    return { outcome: "ignored", reason: `the folder of ${key} is too long for a report about it` };
  }
  const place = { loadId, report };
  if ((await drop.etag(report)) !== undefined) {
    return { outcome: "already", load: { ...place, source: `s3://${drop.bucket}/${key}` } };
  }
  try {
    const { graph } = loadIn(folder, parts.graphs);
    const of = parts.graphs.length > 1 ? { graph } : {};
    if (content === "tooLarge") throw new Refused(`${COMPLETE} has more than ${MOST_BYTES} bytes`);
    const { files, ...options } = optionsOf(content);
    const prefix = `drop/${folder}/`;
    if (files !== undefined) await compare(drop, prefix, files);
    const source = `s3://${drop.bucket}/${prefix}`;
    const load = { ...place, source, ...of };
    if ((await parts.claim(loadId, execution)) !== execution) return { outcome: "already", load };
    const listed = files && { files: files.map(({ name }) => name) };
    return { outcome: "load", load, begin: { step: "begin", loadId, source, ...of, ...listed, ...options } };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const load = { ...place, source: `s3://${drop.bucket}/${key}` };
    return { outcome: "refused", load, reason: error.message };
  }
}

/** Throws `Refused` if a file of a manifest is listed twice, is missing, or has another ETag than the manifest says. */
async function compare(drop: Objects, prefix: string, files: readonly Listed[]): Promise<void> {
  const seen = new Set<string>();
  for (const { name } of files) {
    if (seen.has(name)) throw new Refused(`${COMPLETE}: files has ${JSON.stringify(name)} twice`);
    seen.add(name);
  }
  for (let from = 0; from < files.length; from += AT_ONCE) {
    const some = files.slice(from, from + AT_ONCE);
    const tags = await Promise.all(some.map(({ name }) => drop.etag(prefix + name)));
    for (const [index, { name, etag }] of some.entries()) {
      const place = `${COMPLETE}: files[${from + index}] is ${JSON.stringify(name)}`;
      const tag = tags[index];
      if (tag === undefined) throw new Refused(`${place}, and there is no such object in ${prefix}`);
      if (etag !== undefined && etag !== tag) {
        throw new Refused(`${place} with the ETag ${etag}, and the object's is ${tag}: it was replaced`);
      }
    }
  }
}

/**
 * Parses the content of a mark: empty, or options of the load as JSON with the names and defaults of the loader API
 * (`contracts/schemas/ingest-drop.schema.json`). An unknown option is refused with its name, and an invalid value with
 * its place. Otherwise nobody would notice a misspelled option.
 */
import { z } from "zod";
import { COMPLETE } from "./mark.ts";
import { Refused } from "./refused.ts";

/** Largest size of a mark. Its options pass through states of the state machine, each of which holds 256 KiB. */
export const MOST_BYTES = 128 << 10;
const MOST_FILES = 1000;
const MOST_ATTEMPTS = 1_000_000;

/** A key relative to a folder, without empty parts, `.` and `..`. */
const FILE = /^(?!.*(^|\/)\.{0,2}(\/|$))[^\p{Cc}\\]{1,1024}$/u;
const ETAG = /^"?[!#-~]{1,256}"?$/;

/** Sets the message of a check. `be` completes the sentence "… has to be". */
const must = (be: string): { error: string } => ({ error: be });

const flag = z.preprocess(
  (value) => (typeof value === "string" && /^(true|false)$/i.test(value) ? /^true$/i.test(value) : value),
  z.boolean(must("TRUE or FALSE")),
);

const file = z.preprocess(
  (value) => (typeof value === "string" ? { name: value } : value),
  z.strictObject(
    {
      name: z.string(must("the name of a file")).regex(FILE, must("the name of a file below the folder")),
      etag: z
        .string(must("the ETag of an object"))
        .regex(ETAG, must("the ETag of an object"))
        .transform((tag) => tag.replaceAll('"', ""))
        .optional(),
    },
    must("a name, or an object with `name` and perhaps `etag`"),
  ),
);

const names = must(`1 to ${MOST_FILES} names of files`);
const attempt = must(`a whole number from 1 to ${MOST_ATTEMPTS}`);

const schema = z.strictObject(
  {
    format: z.enum(["csv", "opencypher"], must("csv or opencypher")).optional(),
    failOnError: flag.optional(),
    updateSingleCardinalityProperties: flag.optional(),
    userProvidedEdgeIds: flag.optional(),
    edgeOnlyLoad: flag.optional(),
    parserConfiguration: z
      .strictObject({ allowEmptyStrings: flag.optional() }, must("an object with `allowEmptyStrings`"))
      .optional(),
    files: z.array(file, names).min(1, names).max(MOST_FILES, names).optional(),
    attempt: z.int(attempt).min(1, attempt).max(MOST_ATTEMPTS, attempt).optional(),
  },
  must("an object with options of the load"),
);

/** A file of a manifest. */
export interface Listed {
  readonly name: string;
  /** Expected ETag, without quotes. */
  readonly etag?: string | undefined;
}

/** Options of a load, with defaults filled in. */
export interface Options {
  readonly format: "csv" | "opencypher" | "detect";
  readonly failOnError: boolean;
  readonly updateSingleCardinalityProperties: boolean;
  readonly allowEmptyStrings: boolean;
  readonly userProvidedEdgeIds: boolean;
  readonly edgeOnlyLoad: boolean;
  readonly files: readonly Listed[] | undefined;
}

/** Returns the options in the content of a mark. Throws `Refused` with every option or value that is wrong. */
export function optionsOf(content: Uint8Array): Options {
  const value = parsed(content);
  const { success, data: said, error } = schema.safeParse(value);
  if (!success)
    throw new Refused(`${COMPLETE}: ${error.issues.map((issue) => told(issue, value)).join("; ")}`);
  return {
    format: said.format ?? "detect",
    failOnError: said.failOnError ?? true,
    updateSingleCardinalityProperties: said.updateSingleCardinalityProperties ?? false,
    allowEmptyStrings: said.parserConfiguration?.allowEmptyStrings ?? false,
    userProvidedEdgeIds: said.userProvidedEdgeIds ?? true,
    edgeOnlyLoad: said.edgeOnlyLoad ?? false,
    files: said.files,
  };
}

function parsed(content: Uint8Array): unknown {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(content).trim();
  } catch {
    throw new Refused(`${COMPLETE} is not UTF-8; it has to be empty or JSON`);
  }
  if (text === "") return {};
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Refused(
      `${COMPLETE} has to be empty or JSON: ${error instanceof Error ? error.message : error}`,
    );
  }
}

/** Describes an issue as part of a sentence, with the place and the value. */
function told(issue: z.core.$ZodIssue, root: unknown): string {
  const { path, value } = found(root, issue.path);
  const place = path.reduce<string>(
    (before, key) =>
      typeof key === "number" ? `${before}[${key}]` : before ? `${before}.${String(key)}` : String(key),
    "",
  );
  if (issue.code === "unrecognized_keys") {
    const keys = issue.keys.map((key) => (place ? `${place}.${key}` : key)).join(", ");
    return `${keys} ${issue.keys.length > 1 ? "are no options" : "is no option"}`;
  }
  return `${place || "the content"} is ${short(value)}, and has to be ${issue.message}`;
}

/** Returns the value at a path. If the path leads to nothing, returns the last value on it and the path to that. */
function found(root: unknown, whole: readonly PropertyKey[]): { path: PropertyKey[]; value: unknown } {
  const path: PropertyKey[] = [];
  let value = root;
  for (const key of whole) {
    if (typeof value !== "object" || value === null) break;
    value = (value as Record<PropertyKey, unknown>)[key];
    path.push(key);
  }
  return { path, value };
}

/** Formats a value for a message, at most 200 characters of it. */
function short(value: unknown): string {
  const text = value === undefined ? "not there" : JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

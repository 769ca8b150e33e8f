/** The table of error codes, as the service answers with them. */
import { readFileSync } from "node:fs";
import { contractPath } from "./paths.ts";

/** What a caller can do about an error. */
export type ErrorKind =
  | "invalid"
  | "not_found"
  | "conflict"
  | "throttled"
  | "unavailable"
  | "unknown"
  | "timeout"
  | "corrupt"
  | "internal";

/** One row of `errors.json`. */
export interface ErrorRow {
  readonly code: string;
  readonly kind: ErrorKind;
  readonly httpStatus: number;
  readonly summary: string;
  /** Page about it, from the root of the repository. */
  readonly docs: string;
}

/** The whole of `errors.json`. */
export const errorTable: { readonly errors: readonly ErrorRow[] } = JSON.parse(
  readFileSync(contractPath("errors.json"), "utf8"),
);

const byCode = new Map(errorTable.errors.map((row) => [row.code, row]));

/** The row of a code; `undefined` for a code that the service must not answer with. */
export function errorRow(code: string): ErrorRow | undefined {
  return byCode.get(code);
}

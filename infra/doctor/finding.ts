/** What the checks say: identifiers, results, and the words for a call that AWS refused. */
import type { Context } from "./context.ts";

/**
 * - `ok`: holds;
 * - `warning`: works now, and somebody should look;
 * - `failed`: does not work, or data is not protected as it should be;
 * - `unknown`: could not be looked at, for the reason in `seen`;
 * - `absent`: this deployment has no such part.
 */
export const STATUSES = ["ok", "warning", "failed", "unknown", "absent"] as const;
export type Status = (typeof STATUSES)[number];

/** One result of a check. */
export interface Finding {
  readonly status: Status;
  /** The thing that was looked at, if the check looks at several, such as the name of a bucket. */
  readonly subject?: string;
  /** The value that was found, in words. */
  readonly seen: string;
  /** The value that it should have, in words. */
  readonly wanted?: string;
  /** What to do: a command, a prop of the constructs, or a page. */
  readonly remedy?: string;
  /** The action that the caller's policies do not allow, if that is why the status is `unknown`. */
  readonly denied?: string;
}

/** One thing that is looked at. */
export interface Check {
  /** Its area and name, such as `map.recovery`. docs/doctor.md has a line for each. */
  readonly id: string;
  /** Whether it looks at one graph, `context.graph`. With several graphs it is run for each. */
  readonly isOfGraph?: true;
  /** The IAM actions that it needs. */
  readonly actions: readonly string[];
  /** Looks, and returns a finding for each subject. A call that AWS refuses may be thrown. */
  look(context: Context): Promise<Finding | readonly Finding[]>;
}

/** A finding with the check that it is of. */
export interface Result extends Finding {
  readonly id: string;
}

export const ok = (seen: string, subject?: string): Finding => ({
  status: "ok",
  seen,
  ...(subject !== undefined && { subject }),
});

export const absent = (seen: string): Finding => ({ status: "absent", seen });

export const unknown = (seen: string, remedy?: string): Finding => ({
  status: "unknown",
  seen,
  ...(remedy !== undefined && { remedy }),
});

type Told = { wanted: string; remedy: string; subject?: string | undefined };

function told(status: Status, seen: string, { wanted, remedy, subject }: Told): Finding {
  return { status, seen, wanted, remedy, ...(subject !== undefined && { subject }) };
}

export const failed = (seen: string, rest: Told): Finding => told("failed", seen, rest);
export const warning = (seen: string, rest: Told): Finding => told("warning", seen, rest);

/** A call to AWS that failed, with its action as IAM names it. */
export class CallFailed extends Error {
  readonly action: string;
  override readonly cause: Error & { readonly name: string };

  constructor(action: string, cause: Error) {
    super(`${action}: ${cause.name}: ${cause.message}`, { cause });
    this.name = "CallFailed";
    this.action = action;
    this.cause = cause;
  }

  /** Whether the caller lacks a permission. */
  get isDenied(): boolean {
    // Services name it differently. HEAD requests of S3, and some answers of API Gateway, only have the status.
    if (/^(AccessDenied|Unauthorized|AuthorizationError|Forbidden)/.test(this.cause.name)) return true;
    const { $metadata } = this.cause as { $metadata?: { httpStatusCode?: number } };
    return $metadata?.httpStatusCode === 403 && /not authorized|access denied/i.test(this.cause.message);
  }

  /** The action that is not allowed: the one that AWS names, or the one of the call. */
  get deniedAction(): string {
    return (
      /not authorized to perform:? `?([a-z0-9-]+:[A-Za-z]+)/.exec(this.cause.message)?.[1] ?? this.action
    );
  }

  /** Whether AWS does not have the thing. */
  get isMissing(): boolean {
    return (
      /^(NoSuch|NotFound|ResourceNotFound)/.test(this.cause.name) ||
      /NotFound(Exception|Fault)?$/.test(this.cause.name)
    );
  }
}

/** Returns the finding for an error that ended a check. */
export function explained(error: unknown): Finding {
  if (error instanceof CallFailed && error.isDenied) {
    const denied = error.deniedAction;
    return {
      status: "unknown",
      seen: `the caller may not ${denied}`,
      wanted: `a policy that allows ${denied}`,
      remedy: "add the policy that --policy prints to the caller's role",
      denied,
    };
  }
  if (error instanceof CallFailed) return unknown(`${error.action} failed: ${oneLine(error.cause)}`);
  return unknown(error instanceof Error ? oneLine(error) : String(error));
}

function oneLine({ name, message }: Error): string {
  const text = (message || "no reason given").replaceAll(/\s+/g, " ").trim();
  return name === "Error" ? text : `${name}: ${text}`;
}

/** Returns a list of names for people, shortened after some. */
export function some(names: readonly string[], most = 5): string {
  const more = names.length - most;
  return more > 0 ? `${names.slice(0, most).join(", ")} and ${more} more` : names.join(", ");
}

/** Returns a duration in words, rounded: `12 s`, `5 min`, `3 h`, `41 days`. */
export function span(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** The command line of `tidegraph-doctor`. */
import { AREAS } from "./checks/index.ts";
import { UsageError } from "./deployment.ts";
import { checkRegion, readFlags } from "./flags.ts";

export interface Arguments {
  /** The stacks of the deployment. */
  readonly stacks: readonly string[];
  /** Default: what AWS's configuration says. */
  readonly region?: string;
  readonly profile?: string;
  readonly json: boolean;
  /** Areas to look at; all if empty. */
  readonly only: readonly string[];
}

export type Command =
  | { readonly kind: "look"; readonly arguments: Arguments }
  | { readonly kind: "help" | "version" | "policy" };

export const HELP = `Looks at a deployment of Tidegraph on AWS, and says what holds, what does not, and what to do.

Usage: tidegraph-doctor --name NAME [flags]
       tidegraph-doctor --stack STATE --stack SERVICE [flags]

  --name NAME       the name of the deployment: its stacks are NAME-state and NAME-service
  --stack STACK     a stack of the deployment, if they have other names; give it for each of them
  --region REGION   the region of the stacks (default: AWS_REGION, or that of the profile)
  --profile NAME    a profile of AWS's configuration files (default: AWS_PROFILE)
  --only AREAS      look at these areas only, with commas between: ${AREAS.join(", ")}
  --json            print the report as JSON
  --policy          print the IAM policy that all checks need, and end
  --version, --help

It only reads. Exit code: 0 without failures, 1 with failures, 2 if it cannot begin (flags, credentials, no such
stack). On a machine of the deployment, tidegraph-node doctor looks at the disk, the clock and the daemon.
docs/doctor.md has each check.
`;

/** A name that CloudFormation allows. */
const STACK = /^[A-Za-z][A-Za-z0-9-]{0,127}$/;

/** Reads the flags. What cannot be is refused with the value. */
export function readArguments(given: readonly string[]): Command {
  const values = readFlags(given, FLAGS);
  if (values.help) return { kind: "help" };
  if (values.version) return { kind: "version" };
  if (values.policy) return { kind: "policy" };
  const { name, stack = [], region, profile } = values;
  if (name !== undefined && stack.length > 0) throw new UsageError("give --name or --stack, not both");
  const stacks = name === undefined ? stack : [`${name}-state`, `${name}-service`];
  if (stacks.length === 0)
    throw new UsageError("which deployment? Give --name, or --stack for each of its stacks");
  for (const one of stacks) {
    if (!STACK.test(one)) throw new UsageError(`${JSON.stringify(one)} cannot be the name of a stack`);
  }
  checkRegion(region);
  const only = (values.only ?? "").split(",").filter(Boolean);
  for (const area of only) {
    if (!AREAS.includes(area))
      throw new UsageError(`--only ${JSON.stringify(area)} is no area: there are ${AREAS.join(", ")}`);
  }
  return {
    kind: "look",
    arguments: {
      stacks: [...new Set(stacks)],
      json: values.json ?? false,
      only,
      ...(region !== undefined && { region }),
      ...(profile !== undefined && { profile }),
    },
  };
}

const TEXT = { type: "string" } as const;
const FLAG = { type: "boolean" } as const;

/** The flags. */
const FLAGS = {
  name: TEXT,
  stack: { ...TEXT, multiple: true },
  region: TEXT,
  profile: TEXT,
  only: TEXT,
  json: FLAG,
  policy: FLAG,
  version: FLAG,
  help: { ...FLAG, short: "h" },
} as const;

/** The command line of `tidegraph-remove`. */
import { UsageError } from "../doctor/deployment.ts";
import { checkRegion, readFlags } from "../doctor/flags.ts";

export interface Arguments {
  /** The name of the deployment. */
  readonly name: string;
  /** The stacks that have to be deleted before. */
  readonly stacks: readonly string[];
  /** The name once more; without it nothing is removed. */
  readonly confirm?: string;
  /** Whether backups and their key are removed too. */
  readonly backups: boolean;
  /** Days until AWS deletes the keys. */
  readonly keyDays: number;
  readonly region?: string;
  readonly profile?: string;
}

export const HELP = `Removes what the deleted stacks of a deployment left: brokers, table, buckets, log groups, secrets, network,
the role of API Gateway's logs, keys.

Usage: tidegraph-remove --name NAME [flags]                   shows what is left, and removes nothing
       tidegraph-remove --name NAME --confirm NAME [flags]    removes it, with all data of the graphs

  --name NAME       the name of the deployment: what is left has the tag tidegraph:deployment=NAME, or a name with it
  --confirm NAME    the name once more
  --backups         remove the bucket of backups and its key, too
  --key-days DAYS   days until AWS deletes the keys, from 7 to 30 (default: 30); until then they can be kept
  --stack STACK     a stack of the deployment, if they are not NAME-state and NAME-service; give it for each of them
  --region REGION   the region of the stacks (default: AWS_REGION, or that of the profile)
  --profile NAME    a profile of AWS's configuration files (default: AWS_PROFILE)
  --help

Delete the stacks first; the command refuses as long as they are there. It may be stopped anywhere and run again.
A VPC, brokers, a key or a bucket that you gave to the deployment are not its own, and stay.
`;

const NAME = /^[a-z][a-z0-9-]{0,30}[a-z0-9]$/;

/** Reads the flags, or returns `help`. What cannot be is refused with the value. */
export function readArguments(given: readonly string[]): Arguments | "help" {
  const values = readFlags(given, FLAGS);
  if (values.help) return "help";
  const { name, confirm, stack, backups = false, region, profile } = values;
  if (name === undefined) throw new UsageError("which deployment? Give --name");
  if (!NAME.test(name))
    throw new UsageError(`--name ${JSON.stringify(name)} cannot be the name of a deployment`);
  if (confirm !== undefined && confirm !== name)
    throw new UsageError(`--confirm ${JSON.stringify(confirm)} is not ${name}: nothing was removed`);
  checkRegion(region);
  const keyDays = Number(values["key-days"] ?? 30);
  if (!Number.isInteger(keyDays) || keyDays < 7 || keyDays > 30)
    throw new UsageError(`--key-days ${JSON.stringify(values["key-days"])} is no whole number from 7 to 30`);
  return {
    name,
    stacks: stack ?? [`${name}-service`, `${name}-state`],
    backups,
    keyDays,
    ...(confirm !== undefined && { confirm }),
    ...(region !== undefined && { region }),
    ...(profile !== undefined && { profile }),
  };
}

const TEXT = { type: "string" } as const;
const FLAG = { type: "boolean" } as const;

/** The flags. */
const FLAGS = {
  name: TEXT,
  confirm: TEXT,
  backups: FLAG,
  "key-days": TEXT,
  stack: { ...TEXT, multiple: true },
  region: TEXT,
  profile: TEXT,
  help: { ...FLAG, short: "h" },
} as const;

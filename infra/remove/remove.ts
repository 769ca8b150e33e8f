/** Removes what the stacks of a deployment left, or shows it. */
import * as cfn from "@aws-sdk/client-cloudformation";
import { Clients } from "../doctor/clients.ts";
import { UsageError } from "../doctor/deployment.ts";
import { CallFailed } from "../doctor/finding.ts";
import type { Arguments } from "./arguments.ts";
import { type Remain, remains } from "./remains.ts";

const PAUSE_MS = 10_000;

/** How the command tells what it does, and how long it pauses between two looks. */
export interface Surroundings {
  readonly say: (text: string) => void;
  readonly pauseMs?: number;
}

/** Runs the command. Returns what is left after it; keys whose deletion is scheduled are not. */
export async function remove(
  args: Arguments,
  { say, pauseMs = PAUSE_MS }: Surroundings,
): Promise<readonly Remain[]> {
  const { name, backups, keyDays, profile } = args;
  const first = new Clients({ region: args.region ?? "", profile });
  const region = args.region ?? (await first.configuredRegion());
  const clients = new Clients({ region, profile });
  try {
    for (const stack of args.stacks) await refuseIfThere(clients, stack);
    const look = () => remains({ clients, region, name, backups, keyDays, pauseMs, say });
    const found = await look();
    if (found.length === 0) {
      say(`nothing of ${name} is left in ${region}`);
      return found;
    }
    const removes = args.confirm === name;
    say(removes ? `removing ${name} from ${region}:` : `left of ${name} in ${region}:`);
    for (const one of found) {
      say(`  ${one.kind}  ${one.id}`);
      if (removes) await one.remove();
    }
    if (!removes) {
      say(`nothing was removed. --confirm ${name} removes all of it, and nobody can bring it back`);
      return found;
    }
    const left = await look();
    for (const one of left) say(`still there, run the command again: ${one.kind}  ${one.id}`);
    return left;
  } finally {
    first.destroy();
    clients.destroy();
  }
}

/** Refuses to remove what a stack still has. */
async function refuseIfThere(clients: Clients, StackName: string): Promise<void> {
  const { Stacks: [stack] = [] } = await clients.cfn
    .send(new cfn.DescribeStacksCommand({ StackName }))
    .catch((error: unknown) => {
      if (error instanceof CallFailed && /does not exist/.test(error.cause.message)) return { Stacks: [] };
      throw error;
    });
  if (stack === undefined || stack.StackStatus === "DELETE_COMPLETE") return;
  throw new UsageError(
    `the stack ${StackName} is there (${stack.StackStatus}). Delete it first: aws cloudformation ` +
      `update-termination-protection --no-enable-termination-protection --stack-name ${StackName}; ` +
      `aws cloudformation delete-stack --stack-name ${StackName}`,
  );
}

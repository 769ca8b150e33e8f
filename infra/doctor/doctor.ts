/** One look at a deployment: finds its stacks, runs the checks at the same time, and collects what they say. */
import { GetCallerIdentityCommand } from "@aws-sdk/client-sts";
import type { Arguments } from "./arguments.ts";
import { CHECKS } from "./checks/index.ts";
import { Clients } from "./clients.ts";
import { Context } from "./context.ts";
import { Deployment, UsageError } from "./deployment.ts";
import {
  CallFailed,
  type Check,
  explained,
  type Finding,
  ok,
  type Result,
  STATUSES,
  type Status,
  unknown,
} from "./finding.ts";

/** What one look found. */
export interface Report {
  /** The release of this command. */
  readonly release: string;
  readonly region: string;
  readonly stacks: readonly string[];
  /** When it began, as ISO 8601. */
  readonly at: string;
  readonly results: readonly Result[];
  readonly counts: Readonly<Record<Status, number>>;
}

/** Settings of a look that tests change. */
export interface Patience {
  /** Pause between the two looks that tell whether a counter grows. */
  readonly pauseMs: number;
  /** Time limit of one check. */
  readonly checkMs: number;
}

/** A heartbeat comes each second, and a lease is renewed three times a second. */
export const PATIENCE: Patience = { pauseMs: 4_000, checkMs: 90_000 };
/** Why AWS does not take the credentials at all. */
const REFUSED =
  /^(InvalidClientTokenId|ExpiredToken|ExpiredTokenException|UnrecognizedClientException|SignatureDoesNotMatch|InvalidSignatureException|AuthFailure|InvalidAccessKeyId)$/;

/** Looks at a deployment. Mistakes of the user are thrown as `UsageError`. */
export async function look(
  { stacks, only, profile, region: given }: Arguments,
  release: string,
  patience: Patience = PATIENCE,
): Promise<Report> {
  const at = new Date().toISOString();
  const region = await regionOf(given, profile);
  const clients = new Clients({ region, profile });
  try {
    await checkCredentials(clients, profile);
    const results = await lookAll(clients, region, { stacks, only }, release, patience);
    const counts = Object.fromEntries(STATUSES.map((status) => [status, 0])) as Record<Status, number>;
    for (const { status } of results) counts[status] += 1;
    return { release, region, stacks, at, results, counts };
  } finally {
    clients.destroy();
  }
}

async function lookAll(
  clients: Clients,
  region: string,
  { stacks, only }: { stacks: readonly string[]; only: readonly string[] },
  release: string,
  { pauseMs, checkMs }: Patience,
): Promise<Result[]> {
  let deployment: Deployment;
  try {
    deployment = await Deployment.read(clients, stacks, region);
  } catch (error) {
    // Everything else needs to know what there is.
    if (!(error instanceof CallFailed && error.isDenied)) throw refused(error);
    return [{ id: "stacks.state", ...explained(error), status: "failed" }];
  }
  const context = new Context({ clients, deployment, region, release, pauseMs });
  const checks = CHECKS.filter(({ id }) => only.length === 0 || only.includes(id.split(".")[0] ?? ""));
  const { graphs } = deployment;
  const others = graphs.slice(1).map((graph) => context.of(graph));
  const found = await Promise.all(
    checks.map(async (check) => {
      const looks = [context, ...(check.isOfGraph ? others : [])];
      const results = await Promise.all(looks.map((of) => lookOnce(check, of, checkMs)));
      return results.flat();
    }),
  );
  return [...found.flat(), permissions(found.flat())];
}

/** Runs a check. A failure of its calls, or one that takes too long, is a finding. */
async function lookOnce(check: Check, context: Context, limitMs: number): Promise<Result[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Finding>((done) => {
    timer = setTimeout(() => done(unknown(`no answer within ${limitMs / 1000} s`)), limitMs);
  });
  try {
    const found = await Promise.race([check.look(context), late]);
    return [found].flat().map((one: Finding) => ({ id: check.id, ...ofGraph(check, context, one) }));
  } catch (error) {
    return [{ id: check.id, ...ofGraph(check, context, explained(error)) }];
  } finally {
    clearTimeout(timer);
  }
}

/** Returns a finding with its graph, if the deployment has several. */
function ofGraph({ isOfGraph }: Check, { deployment, graph }: Context, one: Finding): Finding {
  if (!isOfGraph || deployment.graphs.length < 2) return one;
  const subject = one.subject === undefined ? `graph ${graph}` : `${one.subject}, graph ${graph}`;
  return { ...one, subject };
}

/** Sums up the permissions that were missing. */
function permissions(results: readonly Result[]): Result {
  const id = "caller.permissions";
  const denied = [...new Set(results.flatMap(({ denied }) => denied ?? []))].toSorted();
  if (denied.length === 0) return { id, ...ok("none was missing") };
  return {
    id,
    status: "warning",
    seen: `missing: ${denied.join(", ")}`,
    wanted: "all that the checks need",
    remedy: "add the policy that --policy prints to the caller's role",
  };
}

async function regionOf(given: string | undefined, profile: string | undefined): Promise<string> {
  if (given !== undefined) return given;
  const clients = new Clients({ region: "", profile });
  try {
    return await clients.configuredRegion();
  } catch {
    throw new UsageError("which region? Give --region, or set AWS_REGION or the region of the profile");
  } finally {
    clients.destroy();
  }
}

/** Asks who the caller is, which every caller may. */
async function checkCredentials(clients: Clients, profile: string | undefined): Promise<void> {
  try {
    await clients.sts.send(new GetCallerIdentityCommand({}));
  } catch (error) {
    if (!(error instanceof CallFailed && error.isDenied)) throw refused(error, profile);
  }
}

/** Returns the mistake of the user that an error is about, or a failure to reach AWS as one. */
function refused(error: unknown, profile?: string): unknown {
  if (!(error instanceof CallFailed)) return error;
  const { name, message } = error.cause;
  if (/Credential|^TokenProviderError|SSO/.test(name)) {
    return new UsageError(
      `no credentials of AWS${profile === undefined ? "" : ` for the profile ${profile}`}: ${message.split("\n")[0]}. Set AWS_PROFILE, give --profile, or log in (aws sso login)`,
    );
  }
  if (REFUSED.test(name)) return new UsageError(`AWS does not accept the credentials: ${name}: ${message}`);
  return new UsageError(`AWS cannot be reached: ${error.message}`);
}

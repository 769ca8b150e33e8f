/**
 * Questions to IAM whether a role may do something (`SimulatePrincipalPolicy`) or whether policies allow it
 * (`SimulateCustomPolicy`), and what its answers mean.
 */
import {
  type ContextEntry,
  type EvaluationResult,
  type IAMClient,
  paginateSimulateCustomPolicy,
  paginateSimulatePrincipalPolicy,
  type ResourceSpecificResult,
} from "@aws-sdk/client-iam";
import { CallFailed } from "./finding.ts";
import type { Conditions, Target } from "./needs.ts";

/** Why IAM denies a request. */
export type Cause = "organization" | "boundary" | "denied" | "missing";

/** A request that IAM denies. */
export interface Denial {
  readonly action: string;
  /** The resource as the policy names it. */
  readonly resource: string;
  readonly cause: Cause;
  /** The names of the policies that deny it explicitly. */
  readonly policies: readonly string[];
  /** Keys of conditions to which the simulation had no values. */
  readonly missingKeys: readonly string[];
}

/** Requests that differ in actions and resources only. */
export interface Asked {
  readonly actions: readonly string[];
  readonly targets: readonly Target[];
  readonly conditions: Conditions;
}

/** Returns which requests of a role IAM denies. */
export async function deniedTo(client: IAMClient, roleArn: string, asked: Asked): Promise<Denial[]> {
  return denials(asked, async (actions) => {
    const pages = paginateSimulatePrincipalPolicy(
      { client },
      { PolicySourceArn: roleArn, ...question(actions, asked) },
    );
    return collected(pages);
  });
}

/** Returns which requests the policies alone deny. */
export async function deniedBy(
  client: IAMClient,
  policies: readonly string[],
  asked: Asked,
): Promise<Denial[]> {
  return denials(asked, async (actions) => {
    const pages = paginateSimulateCustomPolicy(
      { client },
      { PolicyInputList: [...policies], ...question(actions, asked) },
    );
    return collected(pages);
  });
}

type Ask = (actions: readonly string[]) => Promise<EvaluationResult[]>;

async function denials({ actions, targets }: Asked, ask: Ask): Promise<Denial[]> {
  const results = await together(actions, ask);
  const resources = targets.map(({ sample }) => sample);
  return actions.flatMap((action) =>
    targets.flatMap(({ pattern, sample }) => {
      const found = decision(results, action, sample, resources);
      return found.decision === "allowed" ? [] : [{ action, resource: pattern, ...explained(found) }];
    }),
  );
}

/** Asks about all actions at once, or one after the other if IAM does not simulate them together. */
async function together(actions: readonly string[], ask: Ask): Promise<EvaluationResult[]> {
  try {
    return await ask(actions);
  } catch (error) {
    const isRefused = error instanceof CallFailed && error.cause.name.startsWith("InvalidInput");
    if (!isRefused || actions.length === 1) throw error;
  }
  const results: EvaluationResult[] = [];
  for (const action of actions) results.push(...(await ask([action])));
  return results;
}

function question(actions: readonly string[], { targets, conditions }: Asked) {
  const resources = targets.map(({ sample }) => sample);
  const isAll = resources.every((one) => one === "*");
  return {
    ActionNames: [...actions],
    // Without resources, IAM simulates requests about all of them.
    ...(!isAll && { ResourceArns: resources }),
    ContextEntries: Object.entries(conditions).map(([key, value]) => entry(key, value)),
  };
}

function entry(ContextKeyName: string, value: string | readonly string[]): ContextEntry {
  if (typeof value !== "string")
    return { ContextKeyName, ContextKeyValues: [...value], ContextKeyType: "stringList" };
  const ContextKeyType = value === "true" || value === "false" ? "boolean" : "string";
  return { ContextKeyName, ContextKeyValues: [value], ContextKeyType };
}

async function collected(
  pages: AsyncIterable<{ EvaluationResults?: EvaluationResult[] | undefined }>,
): Promise<EvaluationResult[]> {
  const results: EvaluationResult[] = [];
  for await (const { EvaluationResults = [] } of pages) results.push(...EvaluationResults);
  return results;
}

/** A decision of IAM about one request. */
interface Decision {
  readonly decision: string | undefined;
  readonly result: EvaluationResult;
  /** The part of the result about the resource, if there is one. */
  readonly specific?: ResourceSpecificResult;
}

/**
 * Finds the decision about one request. IAM answers with one result for each action, in which each resource has a part
 * of its own. It used to answer with one for each resource, and a result about all resources has no parts.
 */
function decision(
  all: readonly EvaluationResult[],
  action: string,
  resource: string,
  resources: readonly string[],
): Decision {
  const results = all.filter(
    ({ EvalActionName = "" }) => EvalActionName.toLowerCase() === action.toLowerCase(),
  );
  for (const result of results) {
    const specific = result.ResourceSpecificResults?.find((one) => one.EvalResourceName === resource);
    if (specific !== undefined) return { decision: specific.EvalResourceDecision, result, specific };
  }
  const named = results.filter(({ EvalResourceName = "" }) => resources.includes(EvalResourceName));
  const own = named.filter(({ EvalResourceName }) => EvalResourceName === resource);
  const candidates = own.length > 0 ? own : results;
  // A result about several resources has the decision that is the strictest.
  const result = candidates.find(({ EvalDecision }) => EvalDecision !== "allowed") ?? candidates[0];
  if (result === undefined) throw new Error(`IAM did not answer whether ${action} on ${resource} is allowed`);
  return { decision: result.EvalDecision, result };
}

function explained({ decision, result, specific }: Decision): Omit<Denial, "action" | "resource"> {
  const part = specific ?? result;
  const boundary = part.PermissionsBoundaryDecisionDetail ?? result.PermissionsBoundaryDecisionDetail;
  const matched = part.MatchedStatements ?? [];
  const cause = (): Cause => {
    if (result.OrganizationsDecisionDetail?.AllowedByOrganizations === false) return "organization";
    if (boundary?.AllowedByPermissionsBoundary === false) return "boundary";
    return decision === "explicitDeny" ? "denied" : "missing";
  };
  return {
    cause: cause(),
    policies: [...new Set(matched.flatMap(({ SourcePolicyId }) => SourcePolicyId ?? []))],
    missingKeys: part.MissingContextValues ?? [],
  };
}

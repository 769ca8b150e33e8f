/**
 * The deployment's own roles: IAM simulates whether each may do what the deployed templates give it. That shows what
 * templates cannot: permission boundaries, service control policies, roles that people changed, policies of keys.
 */
import type { IAMClient } from "@aws-sdk/client-iam";
import { GetKeyPolicyCommand } from "@aws-sdk/client-kms";
import type { Context } from "../context.ts";
import {
  absent,
  CallFailed,
  type Check,
  explained,
  type Finding,
  failed,
  ok,
  some,
  warning,
} from "../finding.ts";
import { applying } from "../key-policy.ts";
import { type Conditions, type Need, type NeedyRole, rolesOf } from "../needs.ts";
import { type Asked, type Cause, type Denial, deniedBy, deniedTo } from "../simulation.ts";

const SIMULATE = "iam:SimulatePrincipalPolicy";
/** Roles that are looked at at the same time. IAM limits how many requests an account sends. */
const AT_ONCE = 4;

const actions: Check = {
  id: "roles.actions",
  actions: [SIMULATE],
  async look(context) {
    const roles = rolesOf(context.deployment).filter(
      ({ needs, unknown }) => needs.length > 0 || unknown.length > 0,
    );
    if (roles.length === 0) return absent("none of the stacks has roles");
    const findings = await each(roles, (role) => lookAt(context, role));
    const wrong = summed(findings.flat());
    if (wrong.length > 0) return wrong;
    const requests = roles.flatMap(({ needs }) => needs.flatMap(requestsOf));
    return ok(`${roles.length} roles may do what the templates say: ${requests.length} actions on resources`);
  },
};

const requestsOf = ({ actions, targets }: Need): string[] =>
  targets.flatMap(({ pattern }) => actions.map((action) => `${action} ${pattern}`));

/** Returns what is wrong with a role. */
async function lookAt({ clients, deployment }: Context, needy: NeedyRole): Promise<Finding[]> {
  const { role, arn, needs } = needy;
  const subject = role.id;
  const findings = needy.unknown.map(
    (what): Finding => ({
      status: "unknown",
      subject,
      seen: `the stacks do not tell all that it needs: ${what}`,
    }),
  );
  const common = commonConditions(needy, deployment.values.place(role.stack).region);
  const denials: (Denial & { policy: string })[] = [];
  try {
    for (const { policy, actions, targets, kinds } of needs) {
      for (const kind of kinds) {
        const asked = { actions, targets, conditions: { ...common, ...kind } };
        for (const denial of await deniedTo(clients.iam, arn, asked)) denials.push({ ...denial, policy });
      }
    }
  } catch (error) {
    if (!(error instanceof CallFailed && error.isMissing))
      return [...findings, { ...explained(error), subject }];
    const remedy = `make it again as the template of ${role.stack} has it: CloudFormation does not`;
    return [failed("the role does not exist", { subject, wanted: "there, with its policies", remedy })];
  }
  const given = new Set(Object.keys(common).map((key) => key.toLowerCase()));
  const isForeign = (key: string): boolean =>
    !needy.keys.has(key.toLowerCase()) && !given.has(key.toLowerCase());
  const told = denials.map((denial) => ({ ...denial, missingKeys: denial.missingKeys.filter(isForeign) }));
  const groups = grouped(told, ({ cause, policy, policies, missingKeys }) =>
    JSON.stringify([cause, policy, policies, missingKeys]),
  );
  return [...findings, ...groups.map(([, group]) => judgedDenials(needy, group))];
}

/** Conditions that all requests of a role have. Service control policies and boundaries often ask for them. */
function commonConditions({ arn }: NeedyRole, region: string): Conditions {
  return {
    "aws:PrincipalAccount": arn.split(":")[4] ?? "",
    "aws:PrincipalArn": arn,
    "aws:RequestedRegion": region,
    "aws:SecureTransport": "true",
  };
}

/** Judges what a role is denied for one reason. */
export function judgedDenials(
  { role }: Pick<NeedyRole, "role">,
  denials: readonly (Denial & { policy: string })[],
): Finding {
  const [first] = denials;
  if (first === undefined) throw new Error(`${role.id} is denied nothing`);
  const { cause, policy, policies, missingKeys } = first;
  const parts = grouped(denials, ({ resource }) => resource).map(([resource, of]) => {
    const names = new Set(of.map(({ action }) => action));
    return `${[...names].join(", ")} on ${resource}`;
  });
  const [reason, remedy] = REASONS[cause](role.id, role.stack, policy, some(policies));
  const rest = { subject: role.id, wanted: `allowed, as ${policy} of the template says`, remedy };
  const seen = `may not ${some(parts)}: ${reason}`;
  if (missingKeys.length === 0) return failed(seen, rest);
  // The request of the process may have values with which it is allowed.
  return warning(
    `${seen}, unless conditions allow it whose values a simulation lacks: ${some(missingKeys)}`,
    rest,
  );
}

type Reason = (role: string, stack: string, policy: string, policies: string) => readonly [string, string];

/** What a cause is called, and what to do. */
const REASONS: Readonly<Record<Cause, Reason>> = {
  organization: (role) => [
    "a service control policy of the organization does not allow it",
    `ask those who manage the organization to allow it to ${role}: aws organizations list-policies-for-target --filter SERVICE_CONTROL_POLICY --target-id ACCOUNT`,
  ],
  boundary: (role) => [
    "the role's permissions boundary does not allow it",
    `add it to the boundary: aws iam get-role --role-name ${role} --query Role.PermissionsBoundary`,
  ],
  denied: (role, _stack, _policy, policies) => [
    `an explicit deny in ${policies || "a policy"}`,
    `take the deny away: aws iam list-role-policies --role-name ${role}; aws iam list-attached-role-policies --role-name ${role}`,
  ],
  missing: (role, stack, policy) => [
    "no policy of the role allows it",
    `somebody changed the role: put ${policy} back as the template has it (aws iam get-role-policy --role-name ${role} --policy-name ${policy}; aws cloudformation detect-stack-drift --stack-name ${stack})`,
  ],
};

/** Puts what the caller may not simulate, and what is the same for several roles, into one finding. */
function summed(findings: readonly Finding[]): Finding[] {
  const isDenied = ({ denied }: Finding): boolean => denied !== undefined;
  const denied = grouped(findings.filter(isDenied), (one) => one.denied ?? "");
  const sums = denied.flatMap(([, [first, ...others]]): Finding[] => {
    if (first === undefined) return [];
    const { subject: _, ...rest } = first;
    const roles = `${others.length + 1} roles`;
    return [{ ...rest, seen: `simulation is not allowed, so ${roles} were not looked at: ${first.seen}` }];
  });
  return [...findings.filter((one) => !isDenied(one)), ...sums];
}

const keys: Check = {
  id: "roles.keys",
  actions: ["kms:GetKeyPolicy", "iam:SimulateCustomPolicy"],
  async look(context) {
    const uses = usesOfKeys(context);
    if (uses.size === 0) return absent("no role uses a key");
    const findings = await each([...uses], ([arn, of]) => lookAtKey(context, arn, of));
    return findings.flat();
  },
};

/** A use of a key by a role. */
interface Use {
  readonly needy: NeedyRole;
  readonly actions: readonly string[];
  readonly kind: Conditions;
}

/** Returns the uses of each key, by its ARN. */
function usesOfKeys({ deployment }: Context): Map<string, Use[]> {
  const uses = new Map<string, Use[]>();
  for (const needy of rolesOf(deployment)) {
    for (const { actions, targets, kinds } of needy.needs) {
      if (!actions.every((action) => action.startsWith("kms:"))) continue;
      for (const { sample } of targets) {
        const known = uses.get(sample) ?? [];
        uses.set(sample, [...known, ...kinds.map((kind) => ({ needy, actions, kind }))]);
      }
    }
  }
  return uses;
}

/** Looks at the policy of a key. IAM does not simulate policies of resources for roles, so its statements stand alone. */
async function lookAtKey({ clients }: Context, arn: string, uses: readonly Use[]): Promise<Finding[]> {
  const subject = arn;
  try {
    const { Policy = "{}" } = await clients.kms.send(
      new GetKeyPolicyCommand({ KeyId: arn, PolicyName: "default" }),
    );
    const known = new Map<string, Promise<Denial[]>>();
    const denials: (Denial & { role: string })[] = [];
    for (const { needy, actions, kind } of uses) {
      const statements = applying(Policy, needy.arn);
      const conditions: Conditions = {
        ...commonConditions(needy, arn.split(":")[3] ?? ""),
        "kms:CallerAccount": needy.arn.split(":")[4] ?? "",
        ...kind,
      };
      // Most policies do not tell roles apart, so that one question is enough for all of them.
      const { "aws:PrincipalArn": _, ...ofAll } = conditions;
      const same = /aws:principalarn/i.test(Policy) ? conditions : ofAll;
      const question = JSON.stringify([statements, actions, same]);
      const asked = { actions, targets: [{ pattern: arn, sample: arn }], conditions };
      const asking = known.get(question) ?? deniedByStatements(clients.iam, statements, asked);
      known.set(question, asking);
      const via = kind["kms:ViaService"];
      for (const denial of await asking) {
        const action = via === undefined ? denial.action : `${denial.action} through ${via}`;
        denials.push({ ...denial, action, role: needy.role.id });
      }
    }
    const roles = new Set(uses.map(({ needy }) => needy.role.id));
    if (denials.length === 0) return [ok(`its policy lets ${roles.size} roles use it`, subject)];
    return grouped(denials, ({ role }) => role).map(([role, of]) => judgedKey(arn, role, of));
  } catch (error) {
    return [{ ...explained(error), subject }];
  }
}

async function deniedByStatements(client: IAMClient, Statement: object[], asked: Asked): Promise<Denial[]> {
  const document = JSON.stringify({ Version: "2012-10-17", Statement });
  if (Statement.length > 0) return deniedBy(client, [document], asked);
  const nothing = { cause: "missing", policies: [], missingKeys: [] } as const;
  return asked.actions.map((action) => ({ action, resource: asked.targets[0]?.pattern ?? "", ...nothing }));
}

/** Judges what the policy of a key denies to a role. */
function judgedKey(arn: string, role: string, denials: readonly Denial[]): Finding {
  const what = some([...new Set(denials.map(({ action }) => action))]);
  const isExplicit = denials.some(({ cause }) => cause === "denied");
  const account = `arn:${arn.split(":")[1]}:iam::${arn.split(":")[4]}:root`;
  const rest = {
    subject: arn,
    wanted: "the key's policy lets IAM decide about the account's roles, or names the role",
    remedy: isExplicit
      ? `take the deny out of the key's policy: aws kms get-key-policy --key-id ${arn}`
      : `allow kms:* to ${account} in the key's policy: docs/deploy.md#secrets-and-encryption; aws kms get-key-policy --key-id ${arn}`,
  };
  const seen = `its policy ${isExplicit ? "denies" : "does not allow"} ${role}: ${what}`;
  const missing = [...new Set(denials.flatMap(({ missingKeys }) => missingKeys))];
  if (missing.length === 0) return failed(seen, rest);
  return warning(
    `${seen}, unless conditions allow it whose values a simulation lacks: ${some(missing)}`,
    rest,
  );
}

/** Puts things into groups, in the order of the first one of each. */
function grouped<T>(things: readonly T[], nameOf: (thing: T) => string): [string, T[]][] {
  const groups = new Map<string, T[]>();
  for (const thing of things) {
    const name = nameOf(thing);
    groups.set(name, [...(groups.get(name) ?? []), thing]);
  }
  return [...groups];
}

/** Applies a function to some things at the same time, and returns the results in the order of the things. */
async function each<T, R>(things: readonly T[], act: (thing: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const waiting = things.entries();
  const worker = async (): Promise<void> => {
    for (const [at, thing] of waiting) results[at] = await act(thing);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

export const ROLES: readonly Check[] = [actions, keys];

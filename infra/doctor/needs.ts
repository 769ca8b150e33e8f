/**
 * What each role of a deployment needs to do: the list against which the roles are checked. It is the policies of the
 * deployed templates, with concrete names, so that it fits the deployed release and repeats nothing. The templates' tests
 * (`infra/test/roles.test.ts`, `access.test.ts`) hold it against the policies and against what the processes do.
 */
import type { Deployment, Properties, Resource } from "./deployment.ts";
import { Unresolved } from "./values.ts";

/** Values of condition keys of one request. A list is the values of a key that has several. */
export type Conditions = Readonly<Record<string, string | readonly string[]>>;

/** A resource as a policy names it, and a name that its pattern covers. */
export interface Target {
  readonly pattern: string;
  readonly sample: string;
}

/** Requests that one statement allows. */
export interface Need {
  /** The name of the policy in IAM. */
  readonly policy: string;
  readonly actions: readonly string[];
  readonly targets: readonly Target[];
  /** The kinds of requests that differ in conditions, such as uses of a key through each of several services. */
  readonly kinds: readonly Conditions[];
}

/** A role with all that its process does. */
export interface NeedyRole {
  readonly role: Resource;
  readonly arn: string;
  readonly needs: readonly Need[];
  /** The keys of all conditions in its policies, in lower case. */
  readonly keys: ReadonlySet<string>;
  /** Parts of its policies that are not known here. */
  readonly unknown: readonly string[];
}

interface Statement {
  readonly Effect: string;
  readonly Action?: string | readonly string[];
  readonly Resource?: string | readonly string[];
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>>;
}

/** Stands where a policy has an asterisk. It should be the name of no graph, which a policy may treat apart. */
const ANYTHING = "some-example-of-anything";

/** Returns the roles of the stacks, each with what the policies there allow it. */
export function rolesOf(deployment: Deployment): NeedyRole[] {
  const { values } = deployment;
  return deployment.all("AWS::IAM::Role").map((role) => {
    const needs: Need[] = [];
    const keys = new Set<string>();
    const unknown: string[] = [];
    for (const { name, stack, document } of policiesOf(deployment, role)) {
      for (const statement of list<Properties>(document.Statement)) {
        try {
          const resolved = values.of(stack, statement) as Statement;
          for (const compared of Object.values(resolved.Condition ?? {}))
            for (const key of Object.keys(compared)) keys.add(key.toLowerCase());
          needs.push(...needOf(name, resolved));
        } catch (error) {
          if (!(error instanceof Unresolved)) throw error;
          unknown.push(`${name}: ${error.message}`);
        }
      }
    }
    return { role, arn: values.arn(role), needs, keys, unknown };
  });
}

interface Policy {
  readonly name: string;
  readonly stack: string;
  readonly document: Properties;
}

/** Returns the policies of a role: those that stand in it, and those that name it. */
function policiesOf(deployment: Deployment, role: Resource): Policy[] {
  const inline = list<Properties>(role.properties.Policies ?? []).map(
    ({ PolicyName, PolicyDocument }): Policy => ({
      name: String(PolicyName),
      stack: role.stack,
      document: PolicyDocument,
    }),
  );
  const apart = ["AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"]
    .flatMap((type) => deployment.all(type))
    .filter(({ stack, properties }) => {
      const isRole = (one: unknown): boolean =>
        stack === role.stack && (one as { Ref?: unknown } | null)?.Ref === role.logicalId;
      return list(properties.Roles ?? []).some(isRole);
    })
    .map(
      ({ logicalId, stack, properties }): Policy => ({
        name: String(properties.PolicyName ?? logicalId),
        stack,
        document: properties.PolicyDocument,
      }),
    );
  return [...inline, ...apart];
}

/** Returns what a statement allows; nothing if it denies, or names nothing that could be asked about. */
function needOf(policy: string, { Effect, Action, Resource, Condition = {} }: Statement): Need[] {
  if (Effect !== "Allow") return [];
  if (Action === undefined || Resource === undefined)
    throw new Unresolved("a statement without Action and Resource");
  const targets = list(Resource)
    .filter((pattern) => !ofAnyAccount(pattern))
    .map((pattern) => ({ pattern, sample: sampleOf(pattern) }));
  if (targets.length === 0) return [];
  return [{ policy, actions: list(Action), targets, kinds: kindsOf(Condition) }];
}

/** Whether a resource may be in any account: that of CDK's bootstrap key, of which a template only knows that it may exist. */
const ofAnyAccount = (pattern: string): boolean => pattern.split(":")[4] === "*";

/** Returns a name that a pattern covers. */
export function sampleOf(pattern: string): string {
  if (pattern === "*") return pattern;
  const logs = /^(arn:[^:]+:logs:[^:]*:[^:]*:log-group:[^:]+):\*$/.exec(pattern)?.[1];
  return logs === undefined ? pattern.replaceAll(/[*?]/g, ANYTHING) : `${logs}:log-stream:${ANYTHING}`;
}

/** Operators of conditions whose values are samples of what they compare. */
const OPERATOR =
  /^(?:(ForAllValues|ForAnyValue):)?(?:StringEquals|StringLike|ArnEquals|ArnLike)(?:IfExists)?$/;

/** Returns the conditions of each kind of request that a statement allows. */
function kindsOf(condition: NonNullable<Statement["Condition"]>): Conditions[] {
  let kinds: Conditions[] = [{}];
  for (const [operator, keys] of Object.entries(condition)) {
    const [isKnown, quantifier] = OPERATOR.exec(operator) ?? [];
    if (isKnown === undefined) throw new Unresolved(`conditions with ${operator}`);
    for (const [key, given] of Object.entries(keys)) {
      const samples = list(given).map(sampleOf);
      const ways = quantifier === undefined ? samples : [samples];
      kinds = kinds.flatMap((kind) => ways.map((way) => ({ ...kind, [key]: way })));
    }
  }
  return kinds;
}

const list = <T>(value: T | readonly T[]): readonly T[] =>
  Array.isArray(value) ? (value as readonly T[]) : [value as T];

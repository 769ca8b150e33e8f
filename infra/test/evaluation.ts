/**
 * The part of IAM's evaluation of policies that the tests need: allows and denies, asterisks, and the conditions that
 * occur in them. What it does not know is refused. Neither moto nor LocalStack simulates policies: moto 5.2 does not have
 * the operation, and LocalStack 4.14 compares names as they are, without asterisks, conditions, denies or boundaries.
 */
import assert from "node:assert/strict";

/** A policy with its name. */
export interface Policy {
  readonly name: string;
  readonly document: Document;
}

export interface Document {
  readonly Statement: Statement | readonly Statement[];
}

interface Statement {
  readonly Effect: string;
  readonly Action?: unknown;
  readonly NotAction?: unknown;
  readonly Resource?: unknown;
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** A request, with the values of condition keys in lower case. */
export interface Request {
  readonly action: string;
  readonly resource: string;
  readonly context: ReadonlyMap<string, readonly string[]>;
}

export interface Evaluation {
  readonly decision: "allowed" | "explicitDeny" | "implicitDeny";
  /** The names of the policies that decide. */
  readonly policies: readonly string[];
  /** Keys of conditions for which the request has no value. */
  readonly missing: readonly string[];
}

/** Evaluates policies of one kind. */
export function evaluate(policies: readonly Policy[], request: Request): Evaluation {
  const missing = new Set<string>();
  const matched = { Allow: new Set<string>(), Deny: new Set<string>() };
  for (const { name, document } of policies) {
    for (const statement of list(document.Statement) as Statement[]) {
      for (const keys of Object.values(statement.Condition ?? {}))
        for (const key of Object.keys(keys)) if (!request.context.has(key.toLowerCase())) missing.add(key);
      if (applies(statement, request)) matched[statement.Effect as "Allow" | "Deny"].add(name);
    }
  }
  const decided = matched.Deny.size > 0 ? matched.Deny : matched.Allow;
  const allowed = matched.Allow.size > 0 ? "allowed" : "implicitDeny";
  const decision = matched.Deny.size > 0 ? "explicitDeny" : allowed;
  return { decision, policies: [...decided], missing: [...missing] };
}

function applies(statement: Statement, { action, resource, context }: Request): boolean {
  const { Action, NotAction, Resource, Condition = {} } = statement;
  const has = (patterns: unknown): boolean =>
    list(patterns).some((one) => covers(String(one).toLowerCase(), action.toLowerCase()));
  if (NotAction === undefined ? !has(Action) : has(NotAction)) return false;
  assert.ok(Resource !== undefined, "a statement without Resource");
  if (!list(Resource).some((one) => covers(String(one), resource))) return false;
  return Object.entries(Condition).every(([operator, keys]) =>
    Object.entries(keys).every(([key, wanted]) =>
      holds(operator, list(wanted).map(String), context.get(key.toLowerCase())),
    ),
  );
}

const COMPARISONS: Readonly<Record<string, (wanted: string, value: string) => boolean>> = {
  StringEquals: (wanted, value) => wanted === value,
  StringLike: covers,
  ArnEquals: covers,
  ArnLike: covers,
  Bool: (wanted, value) => wanted === value,
};

/** Whether a condition holds, by the words of AWS's reference of the element `Condition`. */
function holds(operator: string, wanted: readonly string[], values: readonly string[] | undefined): boolean {
  const form = /^(?:(ForAllValues|ForAnyValue):)?(String|Arn|Bool)(Not)?(Equals|Like)?(IfExists)?$/;
  const [isKnown, quantifier, type, not, comparison = "", ifExists] = form.exec(operator) ?? [];
  const compare = COMPARISONS[`${type}${comparison}`];
  assert.ok(isKnown !== undefined && compare !== undefined, `the operator ${operator} is not evaluated here`);
  // A key that is not there satisfies what is negated, and what is about all of its values.
  if (values === undefined)
    return ifExists !== undefined || not !== undefined || quantifier === "ForAllValues";
  const isOne = (value: string): boolean => wanted.some((one) => compare(one, value)) === (not === undefined);
  return quantifier === "ForAllValues" ? values.every(isOne) : values.some(isOne);
}

/** Whether a pattern with asterisks and question marks covers a text. */
function covers(pattern: string, text: string): boolean {
  const literal = pattern.replaceAll(/[.+^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${literal.replaceAll("*", ".*").replaceAll("?", ".")}$`, "s").test(text);
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

/**
 * Checks props at synth. A value that CloudFormation or a daemon would refuse an hour later is refused here, with the
 * name of the prop, its value and the allowed values.
 *
 * Values that are known only at deployment (tokens) pass, because nothing can be checked yet.
 */
import { type Duration, type ResourceEnvironment, Stack, Token, TokenComparison } from "aws-cdk-lib";
import type { IConstruct } from "constructs";
import { GRAPH_NAME } from "./names.ts";

/** An invalid value of a prop. */
export class InvalidProp extends Error {
  override readonly name = "InvalidProp";
  /** The path of the prop, such as `nodes.count`. */
  readonly prop: string;

  /**
   * @param prop the path of the prop
   * @param value the given value
   * @param expected what the value has to be, as part of a sentence: "a power of two"
   */
  constructor(prop: string, value: unknown, expected: string) {
    super(`${prop} is ${JSON.stringify(value)}, and has to be ${expected}`);
    this.prop = prop;
  }
}

/** Returns the account and region that an ARN names, if it is known. */
export function placeOf(arn: string): Partial<ResourceEnvironment> {
  if (Token.isUnresolved(arn)) return {};
  const [, , , region, account] = arn.split(":");
  return { ...(region && { region }), ...(account && { account }) };
}

/** Refuses what is of another account or region than a construct, as far as both are known. */
export function samePlace(
  prop: string,
  name: string,
  place: Partial<ResourceEnvironment>,
  scope: IConstruct,
  whats: readonly ("account" | "region")[] = ["account", "region"],
): void {
  const stack = Stack.of(scope);
  for (const what of whats) {
    const theirs = place[what];
    if (theirs === undefined || Token.compareStrings(theirs, stack[what]) !== TokenComparison.DIFFERENT)
      continue;
    const value = Token.isUnresolved(name) ? `of ${theirs}` : name;
    throw new InvalidProp(prop, value, `in the ${what} of the stack, ${stack[what]}`);
  }
}

/** Checks for a whole number within inclusive bounds. */
export function whole(prop: string, value: number, least: number, most = Number.MAX_SAFE_INTEGER): number {
  if (Token.isUnresolved(value)) return value;
  if (!Number.isInteger(value) || value < least || value > most) {
    const bounds = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new InvalidProp(prop, value, `a whole number ${bounds}`);
  }
  return value;
}

/** Checks for whole days within inclusive bounds, in which AWS counts. */
export function wholeDays(prop: string, value: Duration, most: number): number {
  if (value.isUnresolved()) return value.toDays();
  const days = value.toDays({ integral: false });
  if (!Number.isInteger(days) || days < 1 || days > most) {
    throw new InvalidProp(prop, value.toHumanString(), `whole days, from 1 to ${most}`);
  }
  return days;
}

/** Checks for a power of two of at most `most`. */
export function powerOfTwo(prop: string, value: number, most: number): number {
  whole(prop, value, 1, most);
  if (!Token.isUnresolved(value) && !Number.isInteger(Math.log2(value))) {
    throw new InvalidProp(prop, value, `a power of two from 1 to ${most}`);
  }
  return value;
}

/**
 * Refuses `true` where `false` means none and everything else are settings. Python and other languages have no type of
 * `false` alone.
 */
export function onlyFalse(prop: string, value: unknown, settings: string): void {
  if (value === true) throw new InvalidProp(prop, value, `${settings}, or false for none`);
}

/** Checks a text against a regular expression. */
export function text(prop: string, value: string, form: RegExp, expected: string): string {
  if (!Token.isUnresolved(value) && !form.test(value)) throw new InvalidProp(prop, value, expected);
  return value;
}

/**
 * Checks the name of a graph: what the map allows (`engine-core/types/src/graph_name.rs`), without dots and underscores,
 * because together they make Kafka's metric names ambiguous.
 */
export function graphName(prop: string, value: string): string {
  const expected = "1 to 64 letters, digits and dashes that begin with a letter or digit";
  return text(prop, value, GRAPH_NAME, expected);
}

/** Checks for a DNS name, and that it is in its zone, if there is one. */
export function dnsName(prop: string, name: string, zone?: string): string {
  const form = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+$/;
  text(prop, name, form, "a name in lower case such as graph.example.com");
  if (zone === undefined || Token.isUnresolved(name) || Token.isUnresolved(zone)) return name;
  if (name !== zone && !name.endsWith(`.${zone}`)) throw new InvalidProp(prop, name, `in the zone ${zone}`);
  return name;
}

/**
 * Families of Graviton instances with local NVMe. Types without it have nowhere to spill data that does not fit into
 * memory.
 */
export const WITH_NVME =
  /^(i4g|i8g|i8ge|im4gn|is4gen|c6gd|c7gd|c8gd|m6gd|m7gd|m8gd|r6gd|r7gd|r8gd|x2gd)\.(medium|\d*x?large)$/;

/** Checks for an instance type that a storage node can run on. */
export function nodeInstanceType(prop: string, value: string): string {
  const expected =
    "a Graviton type with NVMe instance storage, such as i4g.xlarge, i8g.2xlarge, im4gn.large or r8gd.4xlarge";
  return text(prop, value, WITH_NVME, expected);
}

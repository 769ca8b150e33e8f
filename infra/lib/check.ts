/**
 * Checks of props, at synth: what CloudFormation or a daemon would refuse an hour later is refused here, with the prop, its value and what it
 * may be.
 *
 * Values that are only known at deployment (tokens) pass: nobody can say anything about them yet.
 */
import { Token } from "aws-cdk-lib";

/** A prop that cannot be. */
export class InvalidProp extends Error {
  override readonly name = "InvalidProp";
  /** Which prop, with its path: `nodes.count`. */
  readonly prop: string;

  /**
   * @param prop its path
   * @param value what was given
   * @param expected what it has to be, as a part of a sentence: "a power of two"
   */
  constructor(prop: string, value: unknown, expected: string) {
    super(`${prop} is ${JSON.stringify(value)}, and has to be ${expected}`);
    this.prop = prop;
  }
}

/** A whole number within bounds, both included. */
export function whole(prop: string, value: number, least: number, most = Number.MAX_SAFE_INTEGER): number {
  if (Token.isUnresolved(value)) return value;
  if (!Number.isInteger(value) || value < least || value > most) {
    const bounds = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new InvalidProp(prop, value, `a whole number ${bounds}`);
  }
  return value;
}

/** A power of two within bounds. */
export function powerOfTwo(prop: string, value: number, most: number): number {
  whole(prop, value, 1, most);
  if (!Token.isUnresolved(value) && !Number.isInteger(Math.log2(value))) {
    throw new InvalidProp(prop, value, `a power of two from 1 to ${most}`);
  }
  return value;
}

/** A text of a form. */
export function text(prop: string, value: string, form: RegExp, expected: string): string {
  if (!Token.isUnresolved(value) && !form.test(value)) throw new InvalidProp(prop, value, expected);
  return value;
}

/** Families of Graviton instances with NVMe of their own. Those without cannot keep what does not fit into memory. */
const WITH_NVME =
  /^(i4g|i8g|i8ge|im4gn|is4gen|c6gd|c7gd|c8gd|m6gd|m7gd|m8gd|r6gd|r7gd|r8gd|x2gd)\.(medium|\d*x?large)$/;

/** An instance type that a storage node can be. */
export function nodeInstanceType(prop: string, value: string): string {
  const expected =
    "a Graviton type with NVMe instance storage, such as i4g.xlarge, i8g.2xlarge, im4gn.large or r8gd.4xlarge";
  return text(prop, value, WITH_NVME, expected);
}

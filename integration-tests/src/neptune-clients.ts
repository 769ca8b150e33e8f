/** Scripts with clients that others wrote for Amazon Neptune, and the tables of what these did. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { markdown } from "./tables.ts";

/** Longest time of one script; generous, since other programs may keep the machine busy. */
const PATIENCE_MS = 600_000;

/** Returns a variable that `npm test` sets. */
export function variable(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is missing; \`npm test\` sets it`);
  return value;
}

/** What a client did. */
export interface Client {
  readonly client: string;
  readonly version: string;
  readonly works: readonly string[];
  /** Steps and the codes of their refusals. */
  readonly refused: readonly (readonly [string, string])[];
}

/** Runs a script to its end, and returns the lines of JSON that it wrote. */
export async function lines(
  name: string,
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<unknown[]> {
  const script = fileURLToPath(new URL(`../clients/neptune/${name}`, import.meta.url));
  const child = spawn(program, [script, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: PATIENCE_MS,
  });
  let [out, all] = ["", ""];
  child.stdout.on("data", (chunk) => {
    out += chunk;
    all += chunk;
  });
  child.stderr.on("data", (chunk) => (all += chunk));
  const code = await new Promise((done) => child.on("close", done));
  assert.equal(code, 0, all);
  const written = out.split("\n").filter((line) => line.startsWith("{"));
  assert.ok(written.length > 0, all);
  return written.map((line) => JSON.parse(line));
}

/** Returns the table of what clients did. */
export function clientTable(rows: readonly Client[]): string {
  const cells = ({ client, version, works, refused }: Client) => [
    client,
    version,
    works.join("; "),
    refused.map(([step, code]) => `${step}: \`${code}\``).join("; "),
  ];
  return markdown(["client", "version", "works", "refused"], rows.map(cells));
}

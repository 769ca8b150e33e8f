/** Synthesizes the templates of the example app in a separate process, as the CDK's command line does. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../lib/temporary.ts";
import { placeholders, type Resource } from "../test/support.ts";

const INFRA = join(import.meta.dirname, "..");

/** The parts of a template that the tests use. */
export interface Template {
  readonly Resources: Readonly<Record<string, Resource>>;
  readonly Parameters?: Readonly<Record<string, unknown>>;
  readonly Outputs?: Readonly<
    Record<string, { readonly Value: unknown; readonly Export?: { Name: unknown } }>
  >;
}

/**
 * Returns both templates, for more values of the context, and of the app in another folder than this package's.
 * Functions in TypeScript are not bundled, because nothing runs them here.
 */
export function exampleTemplates(
  more: Readonly<Record<string, string>> = {},
  folder = INFRA,
): Readonly<Record<"State" | "Service", Template>> {
  const outdir = temporaryFolder("infra");
  const { context } = JSON.parse(readFileSync(join(INFRA, "cdk.json"), "utf8"));
  const given = { ...context, bundle: placeholders(), ...more, "aws:cdk:bundling-stacks": [] };
  const env = { ...process.env, CDK_OUTDIR: outdir, CDK_CONTEXT_JSON: JSON.stringify(given) };
  execFileSync("npx", ["--no-install", "tsx", "bin/example.ts"], { cwd: folder, env, stdio: "pipe" });
  const of = (stack: string): Template =>
    JSON.parse(readFileSync(join(outdir, `${stack}.template.json`), "utf8"));
  return { State: of("State"), Service: of("Service") };
}

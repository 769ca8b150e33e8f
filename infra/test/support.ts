/** What the tests share: a bundle of placeholders, an app with the flags of `cdk.json`, and looking things up in a template. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import type { GraphServiceProps } from "../lib/constructs/service.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { temporaryFolder } from "../lib/temporary.ts";

/** The context that the command line tool would give. */
const { context } = JSON.parse(readFileSync(join(import.meta.dirname, "..", "cdk.json"), "utf8"));

/** An app that writes to a folder of its own. Functions in TypeScript are put together only where `bundles` says so: it takes a second for each. */
export function testApp({ bundles = false } = {}): App {
  return new App({
    context: { ...context, ...(!bundles && { "aws:cdk:bundling-stacks": [] }) },
    outdir: temporaryFolder("infra"),
    analyticsReporting: false,
  });
}

/** A folder with files in the place of the programs. */
export function placeholders(): string {
  const folder = temporaryFolder("bundle");
  const programs = ["bootstrap", "tidegraph", "tidegraph-node", "tidegraph-rebalance", "tidegraph-ingest"];
  for (const name of programs) {
    writeFileSync(join(folder, name), `in the place of ${name}\n`, { mode: 0o755 });
  }
  return folder;
}

/** A resource as it stands in a template. */
export interface Resource {
  readonly Type: string;
  // biome-ignore lint/suspicious/noExplicitAny: templates have no types
  readonly Properties: any;
  readonly DeletionPolicy?: string;
  readonly UpdateReplacePolicy?: string;
  readonly DependsOn?: string[];
}

/** All resources of a template by their logical ids. */
export function resources(template: Template): Map<string, Resource> {
  return new Map(Object.entries(template.toJSON().Resources));
}

/** Those of a type; an error if there are not as many as expected. */
export function ofType(template: Template, type: string, count?: number): [string, Resource][] {
  const found = [...resources(template)].filter(([, resource]) => resource.Type === type);
  if (count !== undefined && found.length !== count) {
    throw new Error(`${found.length} of ${type}, not ${count}: ${found.map(([id]) => id).join(", ")}`);
  }
  return found;
}

/** The only one of a type. */
export function only(template: Template, type: string): Resource {
  const [[, resource] = ["", undefined]] = ofType(template, type, 1);
  if (resource === undefined) throw new Error(`there is no ${type}`);
  return resource;
}

/** The one of a type whose logical id begins so. */
export function named(template: Template, type: string, beginning: string): Resource {
  const found = ofType(template, type).filter(([id]) => id.startsWith(beginning));
  const [first] = found;
  if (first === undefined || found.length > 1) {
    const all = ofType(template, type).map(([id]) => id);
    throw new Error(`${found.length} of ${type} begin with ${beginning}; there are ${all.join(", ")}`);
  }
  return first[1];
}

/** A value, as it stands in a template, as one text: what is a reference becomes `<it>`. */
export function flat(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return String(value);
  if ("Fn::Join" in value) {
    const [between, parts] = value["Fn::Join"] as [string, unknown[]];
    return parts.map(flat).join(between);
  }
  if ("Ref" in value) return `<${value.Ref}>`;
  if ("Fn::GetAtt" in value) return `<${(value["Fn::GetAtt"] as string[]).join(".")}>`;
  if ("Fn::ImportValue" in value)
    return `<${flat(value["Fn::ImportValue"]).replace(/^.*?:ExportsOutput(Ref|FnGetAtt)/, "")}>`;
  if ("Fn::Sub" in value) return flat(value["Fn::Sub"]);
  return JSON.stringify(value);
}

/** The example: both stacks with what is said by default, and placeholders for programs. */
export function example(props: Partial<GraphServiceProps> = {}): {
  app: App;
  state: Template;
  service: Template;
} {
  const app = testApp();
  const { state } = new StateStack(app, "State", { name: "example", graph: "people" });
  const stack = new ServiceStack(app, "Service", { state, bundle: placeholders(), ...props });
  return { app, state: Template.fromStack(Stack.of(state)), service: Template.fromStack(stack) };
}

/** Where a function's program reads its variables, beside its own source: how a fleet is reached. */
export const FLEET_VARIABLES = join("engine-core", "fleet", "src", "access", "environment.rs");

/** Which of these variables none of the sources asks for, by its whole name or without what ours begin with. */
export function unknownVariables(variables: object, ...sources: string[]): string[] {
  const root = join(import.meta.dirname, "..", "..");
  const code = sources.map((path) => readFileSync(join(root, path), "utf8")).join("\n");
  return Object.keys(variables).filter(
    (name) => !code.includes(`"${name}"`) && !code.includes(`"${name.replace(/^TIDEGRAPH_/, "")}"`),
  );
}

/** Whether a source has a field from which clap makes a flag. */
export function hasFlag(source: string, flag: string): boolean {
  const field = flag.replace(/^--/, "").replaceAll("-", "_");
  return new RegExp(`#\\[arg\\(long\\b[^\n]*\\)\\]\\s*(pub )?${field}: `).test(source);
}

/** Shared by the tests: a bundle of placeholders, an app with the flags of `cdk.json`, and lookups in a template. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Certificate } from "aws-cdk-lib/aws-certificatemanager";
import { HostedZone } from "aws-cdk-lib/aws-route53";
import { Secret } from "aws-cdk-lib/aws-secretsmanager";
import type { GraphServiceProps } from "../lib/constructs/service.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { temporaryFolder } from "../lib/temporary.ts";

/** The context that the command line tool would pass. */
const { context } = JSON.parse(readFileSync(join(import.meta.dirname, "..", "cdk.json"), "utf8"));

/**
 * Makes an app that writes to a folder of its own. Functions in TypeScript are bundled only if `bundles` is set,
 * because each takes a second.
 */
export function testApp({ bundles = false } = {}): App {
  return new App({
    context: { ...context, ...(!bundles && { "aws:cdk:bundling-stacks": [] }) },
    outdir: temporaryFolder("infra"),
    analyticsReporting: false,
  });
}

/** Makes a folder with placeholder files in place of the programs. */
export function placeholders(): string {
  const folder = temporaryFolder("bundle");
  const programs = ["bootstrap", "tidegraph", "tidegraph-node", "tidegraph-rebalance", "tidegraph-ingest"];
  for (const name of programs) {
    writeFileSync(join(folder, name), `in the place of ${name}\n`, { mode: 0o755 });
  }
  return folder;
}

/** A resource of a template. */
export interface Resource {
  readonly Type: string;
  // biome-ignore lint/suspicious/noExplicitAny: templates have no types
  readonly Properties: any;
  readonly DeletionPolicy?: string;
  readonly UpdateReplacePolicy?: string;
  readonly DependsOn?: string[];
}

/** Returns all resources of a template by logical id. */
export function resources(template: Template): Map<string, Resource> {
  return new Map(Object.entries(template.toJSON().Resources));
}

/** Returns the resources of a type, and fails if their number is not `count`. */
export function ofType(template: Template, type: string, count?: number): [string, Resource][] {
  const found = [...resources(template)].filter(([, resource]) => resource.Type === type);
  if (count !== undefined && found.length !== count) {
    throw new Error(`${found.length} of ${type}, not ${count}: ${found.map(([id]) => id).join(", ")}`);
  }
  return found;
}

/** Returns the only resource of a type. */
export function only(template: Template, type: string): Resource {
  const [[, resource] = ["", undefined]] = ofType(template, type, 1);
  if (resource === undefined) throw new Error(`there is no ${type}`);
  return resource;
}

/** Returns the resource of a type whose logical id has this prefix. */
export function named(template: Template, type: string, beginning: string): Resource {
  const found = ofType(template, type).filter(([id]) => id.startsWith(beginning));
  const [first] = found;
  if (first === undefined || found.length > 1) {
    const all = ofType(template, type).map(([id]) => id);
    throw new Error(`${found.length} of ${type} begin with ${beginning}; there are ${all.join(", ")}`);
  }
  return first[1];
}

/** Converts a value of a template to text; a reference becomes `<it>`. */
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

/** Returns the files that the user data writes, by path. */
export function files(template: Template): Map<string, string> {
  const [, launch] = ofType(template, "AWS::EC2::LaunchTemplate", 1)[0] ?? [];
  const script = flat(launch?.Properties.LaunchTemplateData.UserData["Fn::Base64"]);
  const found = script.matchAll(/^cat >(\S+) <<'END OF FILE'\n(.*?)^END OF FILE$/gms);
  return new Map([...found].map(([, path = "", content = ""]) => [path, content]));
}

/** Makes the example: both stacks with default settings, and placeholders for programs. */
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

/** The source, besides its own, in which a function's program reads the variables that describe the fleet. */
export const FLEET_VARIABLES = join("engine-core", "fleet", "src", "access", "environment.rs");

/** Returns the variables that none of the sources reads, by full name or without our prefix. */
export function unknownVariables(variables: object, ...sources: string[]): string[] {
  const root = join(import.meta.dirname, "..", "..");
  const code = sources.map((path) => readFileSync(join(root, path), "utf8")).join("\n");
  return Object.keys(variables).filter(
    (name) => !code.includes(`"${name}"`) && !code.includes(`"${name.replace(/^TIDEGRAPH_/, "")}"`),
  );
}

/** Returns whether a source has a field from which clap derives a flag. */
export function hasFlag(source: string, flag: string): boolean {
  const field = flag.replace(/^--/, "").replaceAll("-", "_");
  return new RegExp(`#\\[arg\\(long\\b[^\n]*\\)\\]\\s*(pub )?${field}: `).test(source);
}

/** Returns a template's resources, without the names of assets, which contain a hash of their content. */
export function comparable(resources: Record<string, Resource>): Record<string, unknown> {
  const text = JSON.stringify(resources, (key, value) => (key === "Metadata" ? undefined : value));
  return JSON.parse(text.replaceAll(/[0-9a-f]{64}/g, "HASH"));
}

/** What a deployment with a name for its workers takes from elsewhere. */
export function workerEndpoint() {
  const stack = new Stack(testApp(), "Elsewhere");
  const here = "eu-west-1:111122223333";
  return {
    certificate: Certificate.fromCertificateArn(stack, "Certificate", `arn:aws:acm:${here}:certificate/1`),
    accessKeys: Secret.fromSecretCompleteArn(
      stack,
      "Keys",
      `arn:aws:secretsmanager:${here}:secret:keys-AbCdEf`,
    ),
    zone: HostedZone.fromHostedZoneAttributes(stack, "Zone", { hostedZoneId: "Z1", zoneName: "example.com" }),
  };
}

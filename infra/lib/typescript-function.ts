/**
 * Functions of the deployment that are written in TypeScript. In the repository the CDK bundles each into one file; in the
 * package `@tidegraph/cdk` they are bundled already (`infra/package/pack.ts`), so that it needs neither sources nor a
 * bundler.
 */
import { copyFileSync, cpSync, existsSync } from "node:fs";
import { basename, join } from "node:path";
import * as lambda from "aws-cdk-lib/aws-lambda";
import { type ICommandHooks, NodejsFunction, OutputFormat } from "aws-cdk-lib/aws-lambda-nodejs";
import type { Construct } from "constructs";
import { temporaryFolder } from "./temporary.ts";

/** The sources of these functions, relative to the root of the repository. */
export const SOURCES = {
  backupTeardown: "infra/teardown/backups.handler.ts",
  brokers: "infra/brokers/handler.ts",
  certificates: "infra/issuer/handler.ts",
  definition: "infra/definition/handler.ts",
  intake: "services/ingest/control/src/intake.handler.ts",
  removal: "infra/removal/handler.ts",
  report: "services/ingest/control/src/report.handler.ts",
  rotation: "infra/rotation/handler.ts",
  stale: "services/ingest/control/src/stale.handler.ts",
  teardown: "infra/teardown/handler.ts",
} as const;

/** The name of such a function. */
export type Source = keyof typeof SOURCES;

/** The folder of the package, or `infra/`. */
const HOME = join(import.meta.dirname, "..");
/** The package's bundled functions, a folder for each. */
const BUNDLED = join(HOME, "functions");
const ROOT = join(HOME, "..");

/** How the sources are bundled. The SDK is included, so that the tested version runs instead of the one of Lambda. */
export const BUNDLING = { target: "node20", minify: true, sourceMap: true, sourcesContent: false } as const;

/**
 * Creates a function with the id `Function`.
 *
 * @param programs files that stand beside its code
 */
export function typescriptFunction(
  scope: Construct,
  source: Source,
  props: Omit<lambda.FunctionProps, "runtime" | "handler" | "code">,
  programs: readonly string[] = [],
): lambda.Function {
  const all = {
    ...props,
    runtime: lambda.Runtime.NODEJS_24_X,
    environment: { NODE_OPTIONS: "--enable-source-maps", ...props.environment },
  };
  const bundled = join(BUNDLED, source);
  if (existsSync(bundled)) {
    const code = lambda.Code.fromAsset(programs.length === 0 ? bundled : besides(bundled, programs));
    return new lambda.Function(scope, "Function", { ...all, handler: "index.handler", code });
  }
  return new NodejsFunction(scope, "Function", {
    ...all,
    entry: join(ROOT, SOURCES[source]),
    projectRoot: ROOT,
    depsLockFilePath: join(ROOT, "package-lock.json"),
    bundling: {
      ...BUNDLING,
      externalModules: [],
      format: OutputFormat.CJS,
      ...(programs.length > 0 && { commandHooks: new Copies(programs) }),
    },
  });
}

/** Makes a folder with the files of a bundled function and with programs. */
function besides(bundled: string, programs: readonly string[]): string {
  const folder = temporaryFolder("function");
  cpSync(bundled, folder, { recursive: true });
  for (const program of programs) copyFileSync(program, join(folder, basename(program)));
  return folder;
}

/** Copies programs beside the code after it was bundled. The code is bundled on this machine, so its paths are right. */
class Copies implements ICommandHooks {
  private readonly programs: readonly string[];

  constructor(programs: readonly string[]) {
    this.programs = programs;
  }

  beforeBundling(): string[] {
    return [];
  }

  beforeInstall(): string[] {
    return [];
  }

  afterBundling(_from: string, to: string): string[] {
    return this.programs.map((program) => `cp ${quoted(program)} ${quoted(to)}/`);
  }
}

/** Returns a path as a word of a shell. */
function quoted(path: string): string {
  return `'${path.replaceAll("'", String.raw`'\''`)}'`;
}

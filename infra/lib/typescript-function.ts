/**
 * Functions of the deployment that are written in TypeScript. In the repository the CDK bundles each into one file; in the
 * package `@tidegraph/cdk` they are bundled already (`infra/package/pack.ts`), so that it needs neither sources nor a
 * bundler.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as lambda from "aws-cdk-lib/aws-lambda";
import { NodejsFunction, OutputFormat } from "aws-cdk-lib/aws-lambda-nodejs";
import type { Construct } from "constructs";

/** The sources of these functions, relative to the root of the repository. */
export const SOURCES = {
  backupTeardown: "infra/teardown/backups.handler.ts",
  brokers: "infra/brokers/handler.ts",
  certificates: "infra/issuer/handler.ts",
  definition: "infra/definition/handler.ts",
  intake: "services/ingest/control/src/intake.handler.ts",
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

/** Creates a function with the id `Function`. */
export function typescriptFunction(
  scope: Construct,
  source: Source,
  props: Omit<lambda.FunctionProps, "runtime" | "handler" | "code">,
): lambda.Function {
  const all = {
    ...props,
    runtime: lambda.Runtime.NODEJS_24_X,
    environment: { NODE_OPTIONS: "--enable-source-maps", ...props.environment },
  };
  const bundled = join(BUNDLED, source);
  if (existsSync(bundled)) {
    const code = lambda.Code.fromAsset(bundled);
    return new lambda.Function(scope, "Function", { ...all, handler: "index.handler", code });
  }
  return new NodejsFunction(scope, "Function", {
    ...all,
    entry: join(ROOT, SOURCES[source]),
    projectRoot: ROOT,
    depsLockFilePath: join(ROOT, "package-lock.json"),
    bundling: { ...BUNDLING, externalModules: [], format: OutputFormat.CJS },
  });
}

/**
 * A function of the deployment itself, written in TypeScript below `infra/` and bundled into one file. It does not talk
 * to the fleet and is outside of its network.
 */
import { join } from "node:path";
import type { Duration } from "aws-cdk-lib";
import type * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import { NodejsFunction, OutputFormat } from "aws-cdk-lib/aws-lambda-nodejs";
import type * as logs from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";

/** Settings of such a function. */
export interface OwnFunctionProps {
  readonly description: string;
  /** The folder below `infra/` that has `handler.ts`. */
  readonly folder: string;
  readonly timeout: Duration;
  readonly role: iam.IRole;
  readonly logGroup: logs.ILogGroup;
}

const ROOT = join(import.meta.dirname, "..", "..", "..");

/** Creates the function with the id `Function`. */
export function ownFunction(scope: Construct, props: OwnFunctionProps): NodejsFunction {
  const { description, timeout, role, logGroup } = props;
  return new NodejsFunction(scope, "Function", {
    description,
    entry: join(ROOT, "infra", props.folder, "handler.ts"),
    projectRoot: ROOT,
    depsLockFilePath: join(ROOT, "package-lock.json"),
    runtime: lambda.Runtime.NODEJS_24_X,
    architecture: lambda.Architecture.ARM_64,
    memorySize: 256,
    timeout,
    role,
    logGroup,
    bundling: {
      externalModules: [],
      format: OutputFormat.CJS,
      target: "node20",
      minify: true,
      sourceMap: true,
      sourcesContent: false,
    },
    environment: { NODE_OPTIONS: "--enable-source-maps" },
  });
}

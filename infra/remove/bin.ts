#!/usr/bin/env node
/** The command `tidegraph-remove` of the package `@tidegraph/cdk`. */
import { UsageError } from "../doctor/deployment.ts";
import { CallFailed } from "../doctor/finding.ts";
import { HELP, readArguments } from "./arguments.ts";
import { remove } from "./remove.ts";

const LEFT = 1;
const MISTAKE = 2;

process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";
run(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});

/** Runs the command and returns its exit code. */
async function run(given: readonly string[]): Promise<number> {
  const say = (text: string): void => {
    process.stdout.write(`${text}\n`);
  };
  try {
    const args = readArguments(given);
    if (args === "help") {
      process.stdout.write(HELP);
      return 0;
    }
    const left = await remove(args, { say });
    return args.confirm !== undefined && left.length > 0 ? LEFT : 0;
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof CallFailed)) throw error;
    process.stderr.write(`error: ${error.message}\n`);
    return error instanceof CallFailed ? LEFT : MISTAKE;
  }
}

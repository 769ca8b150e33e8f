#!/usr/bin/env node
/** The command `tidegraph-doctor` of the package `@tidegraph/cdk`. */
import root from "../../package.json" with { type: "json" };
import { HELP, readArguments } from "./arguments.ts";
import { UsageError } from "./deployment.ts";
import { look } from "./doctor.ts";
import { policy } from "./policy.ts";
import { asText } from "./report.ts";

const FAILURES = 1;
const MISTAKE = 2;

// The SDK advises a newer Node. It is bundled with this program, so an operator cannot act on the advice.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";
run(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});

/** Runs the command and returns its exit code. */
async function run(given: readonly string[]): Promise<number> {
  try {
    const command = readArguments(given);
    switch (command.kind) {
      case "help":
        process.stdout.write(HELP);
        return 0;
      case "version":
        process.stdout.write(`tidegraph-doctor ${root.version}\n`);
        return 0;
      case "policy":
        process.stdout.write(`${JSON.stringify(policy(), null, 2)}\n`);
        return 0;
      case "look": {
        const report = await look(command.arguments, root.version);
        const json = `${JSON.stringify(report, null, 2)}\n`;
        const colours = process.stdout.isTTY === true && !process.env.NO_COLOR;
        process.stdout.write(command.arguments.json ? json : asText(report, colours));
        return report.counts.failed > 0 ? FAILURES : 0;
      }
    }
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`error: ${error.message}\n`);
    return MISTAKE;
  }
}

/** What the command lines of this package have in common. */
import { type ParseArgsConfig, parseArgs } from "node:util";
import { UsageError } from "./deployment.ts";

const REGION = /^[a-z]{2}(-[a-z]+)+-\d{1,2}$/;

/** Reads flags; a flag that is unknown or lacks its value is refused by its name. */
export function readFlags<const O extends NonNullable<ParseArgsConfig["options"]>>(
  given: readonly string[],
  options: O,
) {
  try {
    return parseArgs({ args: [...given], options }).values;
  } catch (error) {
    // Without the hint about `--`, which nobody needs here.
    const message = error instanceof Error ? error.message : String(error);
    throw new UsageError(message.split(". ")[0] ?? message);
  }
}

/** Refuses what cannot be the name of a region. */
export function checkRegion(region: string | undefined): void {
  if (region !== undefined && !REGION.test(region))
    throw new UsageError(`--region ${JSON.stringify(region)} is no region, such as eu-west-1`);
}

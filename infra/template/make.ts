/**
 * `npm run template -- --out FOLDER`: writes CloudFormation templates of both stacks, with the files and images that they
 * refer to, for people who deploy without the CDK (docs/deploy.md#without-cdk). `--help` lists the flags.
 */
import { InvalidProp } from "../lib/check.ts";
import { writeFolder } from "./folder.ts";
import { HELP, settingsOf } from "./settings.ts";

const args = process.argv.slice(2);
if (args.includes("--help")) {
  console.log(HELP);
} else {
  try {
    const settings = settingsOf(args);
    const { templates, files, images } = writeFolder(settings);
    console.log(settings.out);
    for (const [name, { bytes, resources }] of Object.entries(templates))
      console.log(`${String(bytes).padStart(9)} bytes, ${resources} resources  ${name}`);
    console.log(
      `${files.length} files, sources of images: ${images.size}; README.md has the commands that deploy them`,
    );
  } catch (error) {
    const isMistake =
      error instanceof InvalidProp || (error as { code?: string }).code?.startsWith("ERR_PARSE_ARGS");
    if (!isMistake) throw error;
    console.error((error as Error).message);
    process.exitCode = 2;
  }
}

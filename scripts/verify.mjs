/**
 * `npm run verify`: runs every linter and every schema check. Warnings are errors.
 *
 * `-- --advisories` also checks the RustSec advisory database. This is not the default: it needs the network, and its
 * result changes without a change of ours. Licences, bans and sources need only the lock file.
 */
import { join } from "node:path";
import { CARGO_DENY_VERSION, cargoTool, clippy } from "./lib/cargo.mjs";
import { checkNeptuneTypes } from "./lib/python.mjs";
import { installNodeModules, run, runSteps } from "./lib/run.mjs";

const withAdvisories = process.argv.includes("--advisories");

await runSteps("npm run verify", [
  ["npm packages", installNodeModules],
  ["rustfmt", () => run("cargo", ["fmt", "--all", "--check"])],
  ["clippy", clippy],
  // Only the fuzzing itself is for `npm run test:long`.
  [
    "fuzz targets",
    () => run("cargo", ["check", "--locked", "--quiet", "--manifest-path", "fuzz/Cargo.toml"]),
  ],
  ["TypeScript types", () => run("npx", ["--no-install", "tsc", "--project", "."])],
  ["TypeScript types of the templates", () => run("npx", ["--no-install", "tsc", "--project", "infra"])],
  ["Python types of tidegraph-neptune", checkNeptuneTypes],
  ["Biome", () => run("npx", ["--no-install", "biome", "check", "--error-on-warnings", "."])],
  ["schemas", () => run("npm", ["run", "--silent", "check", "--workspace", "contracts"])],
  ["tidy", () => run("cargo", ["run", "--locked", "--quiet", "-p", "xtask", "--", "tidy"])],
  ["cargo deny", cargoDeny],
]);

async function cargoDeny() {
  const program = join(await cargoTool("cargo-deny", CARGO_DENY_VERSION), "cargo-deny");
  // `--locked` instead of `--offline`: on a clean clone the packages may not have been fetched yet.
  await run(program, [
    "--locked",
    "--all-features",
    "check",
    "--hide-inclusion-graph",
    "licenses",
    "bans",
    "sources",
    ...(withAdvisories ? ["advisories"] : []),
  ]);
}

/**
 * `npm run verify`: every linter and every check of schemas. Warnings are errors.
 *
 * Advisories are left out of `cargo deny`: they need a database from the network, and the result would change without a
 * change of ours. Licences, bans and sources need only what is locked.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { cache, environment, installNodeModules, run, runSteps } from "./run.mjs";

const CARGO_DENY_VERSION = "0.20.2";

await runSteps("npm run verify", [
  ["npm packages", installNodeModules],
  ["rustfmt", () => run("cargo", ["fmt", "--all", "--check"])],
  [
    "clippy",
    () =>
      run("cargo", ["clippy", "--locked", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
  ],
  ["clippy of the log in Kafka", () => clippyWith("tidegraph-log", "msk-iam")],
  ["clippy of the map in DynamoDB", () => clippyWith("tidegraph-cluster", "dynamodb")],
  ["clippy of gRPC beside our frames", () => clippyWith("tidegraph-remote", "grpc")],
  ["clippy of take-overs", () => clippyWith("tidegraph-fleet", "takeover")],
  ["clippy of the storage daemon", () => clippyWith("tidegraph-node", "fleet")],
  ["clippy of the worker", () => clippyWith("tidegraph", "fleet")],
  ["clippy of the worker as a function", () => clippyWith("tidegraph", "lambda")],
  ["clippy of the steps of loads", () => clippyWith("tidegraph-ingest", "lambda")],
  ["clippy of the steps of moves", () => clippyWith("tidegraph-rebalance", "lambda")],
  ["TypeScript types", () => run("npx", ["--no-install", "tsc", "--project", "."])],
  ["TypeScript types of the templates", () => run("npx", ["--no-install", "tsc", "--project", "infra"])],
  ["Biome", () => run("npx", ["--no-install", "biome", "check", "--error-on-warnings", "."])],
  ["schemas", () => run("npm", ["run", "--silent", "check", "--workspace", "contracts"])],
  ["tidy", () => run("cargo", ["run", "--locked", "--quiet", "-p", "xtask", "--", "tidy"])],
  ["cargo deny", cargoDeny],
]);

/**
 * Clippy for a crate with a feature that is off otherwise.
 *
 * @param {string} crate
 * @param {string} feature
 */
function clippyWith(crate, feature) {
  const what = ["clippy", "--locked", "-p", crate, "--features", feature, "--all-targets", "--quiet"];
  return run("cargo", [...what, "--", "-D", "warnings"]);
}

async function cargoDeny() {
  const folder = join(cache, "tools", `cargo-deny-${CARGO_DENY_VERSION}`);
  const program = join(folder, "bin", "cargo-deny");
  if (!existsSync(program)) {
    console.log("installing cargo-deny once; this takes some minutes");
    // Built to be there soon: it runs for two seconds.
    const quick = ["lto=false", "opt-level=1", "codegen-units=16"].flatMap((setting) => [
      "--config",
      `profile.release.${setting}`,
    ]);
    const where = ["--root", folder, "--target-dir", join(cache, "target-tools")];
    const args = ["install", "--quiet", "--locked", `cargo-deny@${CARGO_DENY_VERSION}`, ...where, ...quick];
    await run("cargo", args, { cwd: cache, env: { ...environment, CARGO_TARGET_DIR: undefined } });
  }
  // `--locked` rather than `--offline`: on a clean clone the packages may not have been fetched yet.
  await run(program, [
    "--locked",
    "--all-features",
    "check",
    "--hide-inclusion-graph",
    "licenses",
    "bans",
    "sources",
  ]);
}

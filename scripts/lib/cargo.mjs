/**
 * Cargo with the settings of every check: all crates with all features in the profile `dev`, so that each crate is
 * compiled once for all checks.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join, relative } from "node:path";
import { contentHash, notePassed, passedAt } from "./inputs.mjs";
import { cache, environment, root, run } from "./run.mjs";

const NEXTEST_VERSION = "0.9.151";

/** The version of cargo-deny, which checks our dependencies. */
export const CARGO_DENY_VERSION = "0.20.2";

/** The selection of every build, test and lint. */
export const EVERYTHING = ["--locked", "--workspace", "--all-features"];

/** Files that Rust programs are built from or that their tests read. */
export const RUST_INPUTS = [
  "Cargo.toml",
  "Cargo.lock",
  "rust-toolchain.toml",
  "clippy.toml",
  ".config/nextest.toml",
  "engine-core",
  "services",
  "bench",
  "xtask",
  "contracts",
];

/** Builds the programs and the tests. */
export async function buildEverything() {
  await run("cargo", ["build", ...EVERYTHING, "--all-targets"]);
}

/** Lints the programs and the tests; warnings are errors. */
export async function clippy() {
  await run("cargo", ["clippy", ...EVERYTHING, "--all-targets", "--quiet", "--", "-D", "warnings"]);
}

/**
 * Installs a program from crates.io, unless it is installed. The build is optimised for build time, not for speed.
 *
 * @param {string} crate
 * @param {string} version
 * @param {readonly string[]} [flags] flags of `cargo install`
 * @returns {Promise<string>} The folder that holds it.
 */
export async function cargoTool(crate, version, flags = []) {
  const folder = join(cache, "tools", `${crate}-${version}`);
  const bin = join(folder, "bin");
  if (!existsSync(join(bin, crate))) {
    console.log(`installing ${crate} once; this takes some minutes`);
    const quick = ["--profile", "dev", "--config", "profile.dev.debug=false"];
    const where = ["--root", folder, "--target-dir", join(cache, "target-tools")];
    const what = ["install", "--quiet", "--locked", `${crate}@${version}`, ...flags];
    // Runs outside the repository, whose toolchain and settings are not meant for the tool.
    await run("cargo", [...what, ...where, ...quick], {
      cwd: cache,
      env: { ...environment, CARGO_TARGET_DIR: undefined },
    });
  }
  return bin;
}

/** Returns the folder of cargo-nextest, which runs the tests. */
export function nextest() {
  return cargoTool("cargo-nextest", NEXTEST_VERSION, [
    "--no-default-features",
    "--features",
    "default-no-update",
  ]);
}

/**
 * Runs tests.
 *
 * @param {Record<string, string>} env variables that tell the tests where servers and kits are
 * @param {string} [filter] which tests to run, in nextest's filter language; by default all
 */
export async function runTests(env, filter) {
  const PATH = [await nextest(), process.env.PATH].join(delimiter);
  const chosen = filter === undefined ? [] : ["-E", filter];
  await run("cargo", ["nextest", "run", ...EVERYTHING, "--cargo-quiet", ...chosen], {
    env: { ...env, PATH },
  });
}

/** @typedef {{ name: string, mark: string, hash: string }} Crate */

/**
 * Returns the crates whose own files changed since their tests last passed on this machine.
 *
 * @returns {Crate[]}
 */
export function changedCrates() {
  return crates().filter(({ mark, hash }) => passedAt(mark, hash) === undefined);
}

/** Records that the tests of crates passed. @param {readonly Crate[]} passed */
export function noteCratesPassed(passed) {
  for (const { mark, hash } of passed) notePassed(mark, hash);
}

/** Returns every crate of the workspace, with the hash of its own files. @returns {Crate[]} */
export function crates() {
  const args = ["metadata", "--locked", "--no-deps", "--format-version", "1"];
  const text = execFileSync("cargo", args, { cwd: root, encoding: "utf8", maxBuffer: 64 << 20 });
  /** @type {{ packages: { name: string, manifest_path: string }[] }} */
  const { packages } = JSON.parse(text);
  return packages.map(({ name, manifest_path }) => {
    const folder = relative(root, join(manifest_path, ".."));
    return { name, mark: `crate-${name}`, hash: contentHash([folder, "Cargo.lock"]) };
  });
}

/**
 * What the scripts share: where things are, running a command to its end, and building the binary.
 *
 * Nothing here may depend on a package: the scripts run on a clone where nothing is installed yet.
 */
import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** The root of the repository. */
export const root = resolve(import.meta.dirname, "..", "..");

/** What is built or downloaded once and may be thrown away. */
export const cache = join(homedir(), ".cache", "tidegraph");

/** Where cargo builds: outside of the repository, unless the user chose a place. */
export const targetDir = process.env.CARGO_TARGET_DIR ?? join(cache, "target");

/** The environment of every command. */
export const environment = { ...process.env, CARGO_TARGET_DIR: targetDir };

/**
 * Cargo tells by their times whether sources have changed. Another clone of the repository that builds into the same folder may have newer
 * or older ones: then ours count as changed.
 */
function claimTargetDir() {
  const mark = join(targetDir, "clone");
  if (existsSync(mark) && readFileSync(mark, "utf8") === root) return;
  const now = new Date();
  for (const folder of ["bench", "engine-core", "services", "xtask"]) {
    for (const file of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })) {
      if (/\.(rs|toml|proto)$/.test(file)) utimesSync(join(root, folder, file), now, now);
    }
  }
  mkdirSync(targetDir, { recursive: true });
  writeFileSync(mark, root);
}
let claimed = false;

/** Whether we were told to end; then nothing new is begun. */
let interrupted = false;

/** Whether we were told to end. */
export function isInterrupted() {
  return interrupted;
}

/**
 * @typedef {object} RunOptions
 * @property {Record<string, string | undefined>} [env] variables besides ours
 * @property {string} [cwd] the root of the repository without it
 * @property {boolean} [quiet] drops what it prints, but not its errors
 * @property {number} [output] a file that takes what it prints
 *
 * @typedef {(program: string, args: readonly string[], options?: RunOptions) => Promise<void>} Run
 */

/**
 * Runs a command in the root of the repository with our input and output. Throws when it fails. A signal that would end us is
 * passed on, so that nothing is left behind.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<void>}
 */
export function run(program, args, options = {}) {
  if (program === "cargo" && !claimed) {
    claimed = true;
    claimTargetDir();
  }
  return new Promise((done, fail) => {
    const child = spawn(program, args, {
      cwd: options.cwd ?? root,
      env: { ...environment, ...options.env },
      stdio: [
        "inherit",
        options.output ?? (options.quiet ? "ignore" : "inherit"),
        options.output ?? "inherit",
      ],
    });
    /** @param {NodeJS.Signals} signal */
    const passOn = (signal) => {
      interrupted = true;
      child.kill(signal);
    };
    const signals = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]);
    for (const signal of signals) process.on(signal, passOn);
    child.on("error", (error) => fail(new Error(`cannot run ${program}: ${error.message}`)));
    child.on("exit", (code, signal) => {
      for (const signal of signals) process.off(signal, passOn);
      if (code === 0) done();
      else fail(new Error(`\`${[program, ...args].join(" ")}\` ended with ${signal ?? code}`));
    });
  });
}

/**
 * Runs named steps one after the other, all of them even if one fails, and says at the end which did, and how long each took.
 *
 * @param {string} title
 * @param {readonly (readonly [name: string, step: () => Promise<void>])[]} steps
 * @returns {Promise<void>}
 */
export async function runSteps(title, steps) {
  /** @type {string[]} */
  const summary = [];
  let failed = 0;
  for (const [name, step] of steps) {
    if (interrupted) {
      summary.push(`not run           ${name}`);
      continue;
    }
    console.log(`\n── ${name}`);
    const begin = performance.now();
    let result = "ok";
    try {
      await step();
    } catch (error) {
      console.error(error instanceof Error ? error.message : error);
      result = "FAILED";
      failed += 1;
    }
    const seconds = ((performance.now() - begin) / 1000).toFixed(1);
    summary.push(`${result.padEnd(7)}${seconds.padStart(7)} s  ${name}`);
  }
  console.log(`\n${title}\n${summary.join("\n")}`);
  if (failed > 0) process.exitCode = 1;
}

/** Installs the npm workspaces exactly as locked, unless that was done since the lock last changed. */
export async function installNodeModules() {
  const lock = join(root, "package-lock.json");
  const installed = join(root, "node_modules", ".package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  await run("npm", ["ci", "--no-fund", "--no-audit"]);
}

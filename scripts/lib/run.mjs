/**
 * Shared by the scripts: the folders, and running a command to its end.
 *
 * This file must not depend on a package: the scripts run on a fresh clone, where nothing is installed yet.
 */
import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** The root of the repository. */
export const root = resolve(import.meta.dirname, "..", "..");

/** The folder for what is built or downloaded once; it may be deleted. */
export const cache = join(homedir(), ".cache", "tidegraph");

/** The folder in which cargo builds: outside the repository, unless the user chose another one. */
export const targetDir = process.env.CARGO_TARGET_DIR ?? join(cache, "target");

/** The environment of every command. */
export const environment = { ...process.env, CARGO_TARGET_DIR: targetDir };

/**
 * Marks the target folder as used by this clone. Cargo detects changed sources by their timestamps. If another clone
 * has built into the same folder, its timestamps may be newer or older, so all sources of this clone are marked as
 * changed.
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

/** Whether this process received a signal to end; if so, no new step starts. */
let interrupted = false;

/** Returns whether this process received a signal to end. */
export function isInterrupted() {
  return interrupted;
}

/**
 * @typedef {object} RunOptions
 * @property {Record<string, string | undefined>} [env] further variables
 * @property {string} [cwd] the working directory; by default the root of the repository
 * @property {boolean} [quiet] whether to drop the output, except for errors
 * @property {number} [output] a file that receives the output
 * @property {number} [limitMinutes] how long it may run; beyond that it is ended, and the processes below it are listed
 *
 * @typedef {(program: string, args: readonly string[], options?: RunOptions) => Promise<void>} Run
 */

/**
 * Runs a command in the root of the repository with our input and output. Throws if it fails. Passes on signals that
 * would end this process, so that the command does not outlive it.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<void>}
 */
export function run(program, args, options = {}) {
  if (program === "cargo" && options.env?.CARGO_TARGET_DIR === undefined && !claimed) {
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
    const { limitMinutes } = options;
    let late = false;
    const timer =
      limitMinutes === undefined
        ? undefined
        : setTimeout(() => {
            late = true;
            endTree(child.pid ?? 0, options.output ?? 1);
          }, limitMinutes * 60_000);
    child.on("error", (error) => fail(new Error(`cannot run ${program}: ${error.message}`)));
    child.on("exit", (code, signal) => {
      for (const signal of signals) process.off(signal, passOn);
      clearTimeout(timer);
      if (late)
        fail(new Error(`\`${[program, ...args].join(" ")}\` did not end within ${limitMinutes} minutes`));
      else if (code === 0) done();
      else fail(new Error(`\`${[program, ...args].join(" ")}\` ended with ${signal ?? code}`));
    });
  });
}

/**
 * Kills a process that hangs and all processes below it, and first lists them: the one that the others wait for is
 * among them.
 *
 * @param {number} pid
 * @param {number} output a file that receives the list
 */
function endTree(pid, output) {
  const { stdout } = spawnSync("ps", ["-eo", "pid=,ppid=,etimes=,stat=,args="], { encoding: "utf8" });
  const lines = stdout.trimEnd().split("\n");
  const tree = [pid];
  const listed = [];
  // A process may stand before its parent in the list.
  for (let at = 0; at < tree.length; at += 1) {
    for (const line of lines) {
      const [child, parent] = line.trim().split(/\s+/, 2).map(Number);
      if (child === tree[at]) listed.push(line);
      if (parent === tree[at] && child !== undefined) tree.push(child);
    }
  }
  writeSync(output, `\nit hangs; processes (pid, parent, seconds, state, command):\n${listed.join("\n")}\n`);
  for (const one of tree) {
    try {
      process.kill(one, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
}

/**
 * Runs all steps in order, even if one fails, and finally prints the result and duration of each.
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

/** Installs the npm workspaces exactly as locked, unless this was done since the lock file last changed. */
export async function installNodeModules() {
  const lock = join(root, "package-lock.json");
  const installed = join(root, "node_modules", ".package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  await run("npm", ["ci", "--no-fund", "--no-audit"]);
}

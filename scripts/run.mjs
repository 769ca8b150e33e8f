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
import { dirname, join, resolve } from "node:path";

/** The root of the repository. */
export const root = resolve(import.meta.dirname, "..");

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

/**
 * Runs a command in the root of the repository with our input and output. Throws when it fails. A signal that would end us is
 * passed on, so that nothing is left behind.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{ env?: Record<string, string | undefined>, cwd?: string, quiet?: boolean }} [options] `quiet` drops what it prints,
 *   but not its errors
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
      stdio: options.quiet ? ["inherit", "ignore", "inherit"] : "inherit",
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

/**
 * Builds the `tidegraph` binary and returns its path. `TIDEGRAPH_BINARY` names one that is built already.
 *
 * @param {"dev" | "release" | "dist"} [profile]
 * @returns {Promise<string>}
 */
export async function buildBinary(profile = "release") {
  const given = process.env.TIDEGRAPH_BINARY;
  if (given) {
    if (!existsSync(given)) throw new Error(`TIDEGRAPH_BINARY: there is no ${given}`);
    return resolve(given);
  }
  await run("cargo", ["build", "--locked", "--profile", profile, "--bin", "tidegraph"]);
  const folder = profile === "dev" ? "debug" : profile;
  return join(targetDir, folder, process.platform === "win32" ? "tidegraph.exe" : "tidegraph");
}

/**
 * Builds `tidegraph-bench` and the `tidegraph` binary that it measures, and returns their paths. `TIDEGRAPH_BINARY` and
 * `TIDEGRAPH_BENCH_BINARY` name ones that are built already.
 *
 * @param {"dev" | "release" | "dist"} profile
 * @param {readonly string[]} [features] of `tidegraph-bench`
 * @returns {Promise<{ binary: string, benchBinary: string }>}
 */
export async function buildBench(profile, features = []) {
  const { TIDEGRAPH_BINARY: binary, TIDEGRAPH_BENCH_BINARY: bench } = process.env;
  const given = [binary, bench].filter((path) => path !== undefined);
  for (const path of given) if (!existsSync(path)) throw new Error(`there is no ${path}`);
  const suffix = process.platform === "win32" ? ".exe" : "";
  const built = (/** @type {string} */ name) =>
    join(targetDir, profile === "dev" ? "debug" : profile, name + suffix);
  // Together, so that what they share is built once.
  const crates = [binary ? [] : ["-p", "tidegraph"], bench ? [] : ["-p", "tidegraph-bench"]].flat();
  const more = bench ? [] : features.flatMap((feature) => ["--features", `tidegraph-bench/${feature}`]);
  if (crates.length > 0) await run("cargo", ["build", "--locked", "--profile", profile, ...crates, ...more]);
  return {
    binary: binary ? resolve(binary) : built("tidegraph"),
    benchBinary: bench ? resolve(bench) : built("tidegraph-bench"),
  };
}

/**
 * Builds the daemon of storage nodes, the worker, the worker as a Lambda function and the one that moves replicas, and returns their paths.
 * `TIDEGRAPH_NODE_BINARY`, `TIDEGRAPH_WORKER_BINARY`, `TIDEGRAPH_LAMBDA_BINARY` and `TIDEGRAPH_REBALANCE_BINARY` name ones that are built already.
 *
 * @param {"dev" | "release" | "dist"} profile `dev` for tests, `release` to run on this machine, `dist` to ship and to measure
 * @param {{ bench?: boolean }} [options] `bench` builds `tidegraph-bench` with them; `TIDEGRAPH_BENCH_BINARY` names a built one
 * @returns {Promise<{ nodeBinary: string, workerBinary: string, lambdaBinary: string, rebalanceBinary: string, ingestBinary: string, benchBinary: string }>}
 */
export async function buildFleet(profile, { bench = false } = {}) {
  const { TIDEGRAPH_NODE_BINARY: node, TIDEGRAPH_WORKER_BINARY: worker } = process.env;
  if (node && worker) {
    for (const path of [node, worker]) if (!existsSync(path)) throw new Error(`there is no ${path}`);
    const lambda = process.env.TIDEGRAPH_LAMBDA_BINARY ?? join(dirname(resolve(worker)), "tidegraph-lambda");
    const rebalance =
      process.env.TIDEGRAPH_REBALANCE_BINARY ?? join(dirname(resolve(worker)), "tidegraph-rebalance");
    const ingest = process.env.TIDEGRAPH_INGEST_BINARY ?? join(dirname(resolve(worker)), "tidegraph-ingest");
    const benchBinary =
      process.env.TIDEGRAPH_BENCH_BINARY ?? join(dirname(resolve(worker)), "tidegraph-bench");
    return {
      nodeBinary: resolve(node),
      workerBinary: resolve(worker),
      lambdaBinary: resolve(lambda),
      rebalanceBinary: resolve(rebalance),
      ingestBinary: resolve(ingest),
      benchBinary: resolve(benchBinary),
    };
  }
  // Together, so that what they share is built once.
  const names = ["tidegraph-node", "tidegraph", "tidegraph-rebalance", "tidegraph-ingest"];
  const features = [
    "tidegraph-node/fleet",
    "tidegraph/lambda",
    "tidegraph-rebalance/lambda",
    "tidegraph-ingest/lambda",
  ];
  if (bench) {
    names.push("tidegraph-bench");
    features.push("tidegraph-bench/fleet");
  }
  const crates = [...names.flatMap((name) => ["-p", name]), "--features", features.join(",")];
  await run("cargo", ["build", "--locked", "--profile", profile, ...crates]);
  const folder = join(targetDir, profile === "dev" ? "debug" : profile);
  return {
    nodeBinary: join(folder, "tidegraph-node"),
    workerBinary: join(folder, "tidegraph"),
    lambdaBinary: join(folder, "tidegraph-lambda"),
    rebalanceBinary: join(folder, "tidegraph-rebalance"),
    ingestBinary: join(folder, "tidegraph-ingest"),
    benchBinary: join(folder, "tidegraph-bench"),
  };
}

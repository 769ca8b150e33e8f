/**
 * The programs: where they are, and how they are built.
 *
 * Profiles: tests use `dev`, with all crates and all features (`cargo.mjs`); `release` is for running on this machine
 * and builds fast; `dist` is for shipping and benchmarks, and is optimised across crates.
 */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { buildEverything } from "./cargo.mjs";
import { run, targetDir } from "./run.mjs";

/** @typedef {"dev" | "release" | "dist"} Profile */

/** The crates of a fleet's programs, with the features that a fleet needs beyond those of one process. */
export const FLEET_CRATES = [
  ...["tidegraph", "tidegraph-node", "tidegraph-rebalance", "tidegraph-ingest"].flatMap((name) => [
    "-p",
    name,
  ]),
  "--features",
  "tidegraph-node/fleet,tidegraph/lambda,tidegraph-rebalance/lambda,tidegraph-ingest/lambda",
];

/** What a cluster on this machine runs: no functions, which need minutes more. */
const CLUSTER_CRATES = [
  "-p",
  "tidegraph",
  "-p",
  "tidegraph-node",
  "--features",
  "tidegraph-node/fleet,tidegraph/fleet",
];

/**
 * Returns the path of a built program.
 *
 * @param {string} name
 * @param {Profile} [profile]
 */
export function program(name, profile = "dev") {
  const folder = profile === "dev" ? "debug" : profile;
  return join(targetDir, folder, process.platform === "win32" ? `${name}.exe` : name);
}

/**
 * Builds the `tidegraph` binary of one process and returns its path. `TIDEGRAPH_BINARY` names a binary that is already
 * built.
 *
 * @param {Profile} [profile]
 * @returns {Promise<string>}
 */
export async function buildBinary(profile = "release") {
  const given = process.env.TIDEGRAPH_BINARY;
  if (given) {
    if (!existsSync(given)) throw new Error(`TIDEGRAPH_BINARY: there is no ${given}`);
    return resolve(given);
  }
  if (profile === "dev") await buildEverything();
  else await run("cargo", ["build", "--locked", "--profile", profile, "--bin", "tidegraph"]);
  return program("tidegraph", profile);
}

/**
 * Builds `tidegraph-bench` and the `tidegraph` binary that it measures, and returns their paths. `TIDEGRAPH_PROGRAMS`
 * names a folder that already has them.
 *
 * @param {Profile} profile
 * @param {readonly string[]} [features] features of `tidegraph-bench`
 * @returns {Promise<{ binary: string, benchBinary: string }>}
 */
export async function buildBench(profile, features = []) {
  // Built together, so that shared crates are built once.
  const crates = ["-p", "tidegraph", "-p", "tidegraph-bench"];
  const more = features.flatMap((feature) => ["--features", `tidegraph-bench/${feature}`]);
  const path = await builtPaths(profile, [...crates, ...more]);
  return { binary: path("tidegraph"), benchBinary: path("tidegraph-bench") };
}

/**
 * Builds programs, unless `TIDEGRAPH_PROGRAMS` names a folder that has them, and returns a function that finds each of
 * them.
 *
 * @param {Profile} profile
 * @param {readonly string[]} selection what cargo builds in the profiles `release` and `dist`
 * @returns {Promise<(name: string) => string>}
 */
async function builtPaths(profile, selection) {
  const given = process.env.TIDEGRAPH_PROGRAMS;
  if (!given && profile === "dev") await buildEverything();
  else if (!given) await run("cargo", ["build", "--locked", "--profile", profile, ...selection]);
  return (name) => {
    const path = given ? resolve(given, name) : program(name, profile);
    if (!existsSync(path)) throw new Error(`there is no ${path}`);
    return path;
  };
}

/**
 * Builds the programs of a cluster on this machine and returns their paths: the daemon of storage nodes, and the worker.
 *
 * @param {Profile} profile
 * @returns {Promise<{ nodeBinary: string, workerBinary: string }>}
 */
export async function buildCluster(profile) {
  const path = await builtPaths(profile, CLUSTER_CRATES);
  return { nodeBinary: path("tidegraph-node"), workerBinary: path("tidegraph") };
}

/**
 * Builds the programs of a fleet and returns their paths: the daemon of storage nodes, the worker, the worker as a
 * Lambda function, and the functions that move replicas and that load files. `TIDEGRAPH_PROGRAMS` names a folder that
 * already has them.
 *
 * @param {Profile} profile
 * @param {{ bench?: boolean }} [options] `bench`: also build `tidegraph-bench`
 * @returns {Promise<{
 *   nodeBinary: string, workerBinary: string, lambdaBinary: string, rebalanceBinary: string, ingestBinary: string,
 *   benchBinary: () => string
 * }>} `benchBinary` returns the path of `tidegraph-bench`.
 */
export async function buildFleet(profile, { bench = false } = {}) {
  const measuring = bench ? ["-p", "tidegraph-bench", "--features", "tidegraph-bench/fleet"] : [];
  const path = await builtPaths(profile, [...FLEET_CRATES, ...measuring]);
  return {
    nodeBinary: path("tidegraph-node"),
    workerBinary: path("tidegraph"),
    lambdaBinary: path("tidegraph-lambda"),
    rebalanceBinary: path("tidegraph-rebalance"),
    ingestBinary: path("tidegraph-ingest"),
    benchBinary: () => path("tidegraph-bench"),
  };
}

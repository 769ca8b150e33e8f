/**
 * `npm run fuzz [-- TARGET…] [--seconds N]`: gives inputs that a fuzzer makes up to everything that reads bytes of
 * others: the parsers, the CSV reader, the HTTP service, the decoders of files and of messages (`fuzz/`). Each target
 * runs for N seconds, 60 by default. Prints one line of JSON for each: runs, coverage, inputs kept, and what it found.
 *
 * Inputs that reach new code are kept in the cache folder for the next run. An input that makes a target fail is saved
 * in `fuzz/found/`; `npm run fuzz -- TARGET FILE` runs it again.
 *
 * libFuzzer needs no nightly toolchain: coverage is instrumented by stable flags.
 */
import { execFileSync, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { cache, environment, root, run } from "./lib/run.mjs";

const TARGETS = readdirSync(join(root, "fuzz", "targets")).map((file) => basename(file, ".rs"));
/** Bounds of one input; a target that goes beyond them has failed. */
const LIMITS = ["-timeout=20", "-rss_limit_mb=4096"];
const MOST_BYTES = { default: 4_096, checkpoint: 32_768, log: 16_384 };

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string", default: "60" } },
});
const seconds = Number(values.seconds);
if (!Number.isInteger(seconds) || seconds < 1)
  fail(`--seconds is ${values.seconds}, and has to be a whole number`);
const inputs = positionals.filter((one) => !TARGETS.includes(one));
const missing = inputs.find((one) => !existsSync(one));
if (missing) fail(`${missing} is neither a target (${TARGETS.join(", ")}) nor a file`);
const targets = positionals.filter((one) => TARGETS.includes(one));
if (inputs.length > 0 && targets.length !== 1) fail("name the one target that is to read the files");

/** @param {string} message @returns {never} */
function fail(message) {
  console.error(message);
  process.exit(2);
}

const host = /^host: (.+)$/m.exec(execFileSync("rustc", ["-vV"], { encoding: "utf8", cwd: root }))?.[1];
if (!host) throw new Error("rustc does not say for which machine it builds");
const folder = join(cache, "target-fuzz");
const flags = [
  "--cfg=fuzzing",
  "-Cpasses=sancov-module",
  "-Cllvm-args=-sanitizer-coverage-level=4",
  "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
  "-Cllvm-args=-sanitizer-coverage-pc-table",
  "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
// With a target, the flags do not hold for build scripts and macros.
const build = ["build", "--locked", "--release", "--target", host, "--manifest-path", "fuzz/Cargo.toml"];
await run("cargo", build, { env: { CARGO_TARGET_DIR: folder, RUSTFLAGS: flags.join(" ") } });
const programs = join(folder, host, "release");

const corpus = join(cache, "fuzz-corpus");
const found = join(root, "fuzz", "found");
mkdirSync(found, { recursive: true });
await run(join(programs, "seeds"), [], { env: { TIDEGRAPH_SEEDS: corpus } });

let failed = false;
for (const target of targets.length > 0 ? targets : TARGETS) {
  const saved = join(found, `${target}-`);
  if (inputs.length > 0) {
    const code = await execute(target, [...LIMITS, ...inputs.map((one) => resolve(one))], "inherit");
    failed ||= code !== 0;
    continue;
  }
  const log = join(cache, `fuzz-${target}.log`);
  const dictionary = join(root, "fuzz", "dictionaries", `${target}.dict`);
  const most = MOST_BYTES[/** @type {keyof typeof MOST_BYTES} */ (target)] ?? MOST_BYTES.default;
  const options = [
    ...LIMITS,
    `-max_total_time=${seconds}`,
    `-max_len=${most}`,
    `-artifact_prefix=${saved}`,
    "-print_final_stats=1",
    "-reload=0",
    ...(existsSync(dictionary) ? [`-dict=${dictionary}`] : []),
    join(corpus, target),
  ];
  const code = await execute(target, options, log);
  const output = readFileSync(log, "latin1");
  const stat = (/** @type {string} */ name) =>
    Number(new RegExp(`stat::${name}:\\s+(\\d+)`).exec(output)?.[1] ?? 0);
  const coverage = Number(
    output
      .match(/cov: (\d+)/g)
      ?.at(-1)
      ?.slice(5) ?? 0,
  );
  const artifact = /Test unit written to (\S+)/.exec(output)?.[1];
  failed ||= code !== 0;
  console.log(
    JSON.stringify({
      target,
      seconds,
      runs: stat("number_of_executed_units"),
      runsPerSecond: stat("average_exec_per_sec"),
      edges: coverage,
      inputs: readdirSync(join(corpus, target)).length,
      peakMib: stat("peak_rss_mb"),
      ok: code === 0,
      ...(code !== 0 && { input: artifact, log }),
    }),
  );
}
if (failed) process.exitCode = 1;

/**
 * Runs a target and returns how it ended.
 *
 * @param {string} target
 * @param {readonly string[]} options
 * @param {string} output a file, or "inherit"
 * @returns {Promise<number>}
 */
async function execute(target, options, output) {
  const to = output === "inherit" ? "inherit" : openSync(output, "w");
  try {
    return await new Promise((done, fail) => {
      const child = spawn(join(programs, target), options, { stdio: ["ignore", to, to], env: environment });
      child.on("error", fail);
      child.on("exit", (code) => done(code ?? 1));
    });
  } finally {
    if (typeof to === "number") closeSync(to);
  }
}

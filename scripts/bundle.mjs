/**
 * `npm run bundle -- [--arch arm64|x86_64] [--out DIR]`: builds the programs for AWS into `dist/ARCH`:
 *
 * - `bootstrap`, `tidegraph`, `tidegraph-node`, `tidegraph-rebalance`, `tidegraph-ingest`: the programs without
 *   symbols, for `-c bundle=…` of the CDK app
 * - `query.zip`, `rebalance.zip`, `ingest.zip`: the functions, for uploading by hand
 * - `worker/`: the files for the worker's image
 *
 * and prints the size of each. It checks that every program is built for the right processor and needs no newer C
 * library than the one of Amazon Linux 2023.
 *
 * For this machine's processor it builds with cargo. For the other one it uses cargo-zigbuild, with Zig as the C
 * compiler and linker; both come from the Python package index, pinned by hash, into the cache. In that case OpenSSL is
 * built from source.
 */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { installed } from "./lib/installed.mjs";
import { buildFleet, FLEET_CRATES } from "./lib/programs.mjs";
import { root, run, targetDir } from "./lib/run.mjs";

/** Processors: rustc's target triple, and the machine number in the ELF header. */
const PROCESSORS = /** @type {const} */ ({
  arm64: { target: "aarch64-unknown-linux-gnu", machine: 0xb7 },
  x86_64: { target: "x86_64-unknown-linux-gnu", machine: 0x3e },
});
/** The C library of Amazon Linux 2023. */
const GLIBC = "2.34";
/** Lambda's limit for an unpacked function, in bytes. */
const MOST_OF_FUNCTION = 250 << 20;
const MACHINE_AT = 18;

const { values } = parseArgs({ options: { arch: { type: "string" }, out: { type: "string" } } });
const here = process.arch === "arm64" ? "arm64" : "x86_64";
const arch = values.arch ?? here;
if (arch !== "arm64" && arch !== "x86_64") {
  console.error(`--arch is ${arch}, and has to be arm64 or x86_64`);
  process.exit(2);
}
const out = resolve(values.out ?? join(root, "dist", arch));
/** The folder with programs that are built already, if the caller has them. */
const given = process.env.TIDEGRAPH_PROGRAMS;
const { nodeBinary, workerBinary, lambdaBinary, rebalanceBinary, ingestBinary } =
  given || (arch === here && process.platform === "linux") ? await buildFleet("dist") : await crossBuilt();
rmSync(out, { recursive: true, force: true });
mkdirSync(join(out, "worker"), { recursive: true });
/** @type {[string, number, string][]} */
const sizes = [];
for (const [name, built] of Object.entries({
  bootstrap: lambdaBinary,
  tidegraph: workerBinary,
  "tidegraph-node": nodeBinary,
  "tidegraph-rebalance": rebalanceBinary,
  "tidegraph-ingest": ingestBinary,
})) {
  const path = join(out, name);
  strip(built, path);
  check(path);
  sizes.push([name, statSync(path).size, `${mib(gzipSync(readFileSync(path)).length)} compressed`]);
}
for (const [zip, program, what] of /** @type {const} */ ([
  ["query.zip", "bootstrap", "the query function"],
  ["rebalance.zip", "tidegraph-rebalance", "the function that moves replicas"],
  ["ingest.zip", "tidegraph-ingest", "the function that loads dropped files"],
])) {
  const bytes = statSync(join(out, program)).size;
  if (bytes > MOST_OF_FUNCTION)
    throw new Error(`${program} has ${mib(bytes)}, and Lambda takes ${mib(MOST_OF_FUNCTION)}`);
  zipped(join(out, program), join(out, zip));
  sizes.push([zip, statSync(join(out, zip)).size, what]);
}
const files = join(root, "infra", "worker");
for (const name of ["Dockerfile", "start-worker.sh"])
  copyFileSync(join(files, name), join(out, "worker", name));
copyFileSync(join(out, "tidegraph"), join(out, "worker", "tidegraph"));
sizes.push([
  "worker/",
  folderSize(["Dockerfile", "start-worker.sh", "tidegraph"]),
  "added to the base image",
]);
console.log(`\n${out}`);
for (const [name, bytes, what] of sizes) console.log(`${mib(bytes).padStart(10)}  ${name.padEnd(21)}${what}`);

/** Builds for another processor or system; returns the same as `buildFleet`. */
async function crossBuilt() {
  const { target } = PROCESSORS[/** @type {keyof typeof PROCESSORS} */ (arch)];
  const requirements = join(root, "scripts", "bundle", "requirements.txt");
  const tools = await installed("tools", "zig", [requirements], async (into) => {
    await run("python3", ["-m", "venv", join(into, "venv")]);
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"];
    await run(join(into, "venv", "bin", "python"), [...pip, "-r", requirements]);
    // librdkafka's build includes this header but uses nothing of it.
    mkdirSync(join(into, "include", "curl"), { recursive: true });
    writeFileSync(join(into, "include", "curl", "curl.h"), "");
  });
  await run("rustup", ["target", "add", target]);
  const what = ["--locked", "--profile", "dist", ...FLEET_CRATES];
  const env = {
    PATH: [join(tools, "venv", "bin"), process.env.PATH].join(delimiter),
    // OpenSSL and librdkafka are built from source, because the installed ones are for this machine's processor.
    RUSTFLAGS: "--cfg tidegraph_vendored",
    [`CFLAGS_${target.replaceAll("-", "_")}`]: `-I${join(tools, "include")}`,
  };
  await run("cargo", ["zigbuild", "--target", `${target}.${GLIBC}`, ...what], { env });
  const folder = join(targetDir, target, "dist");
  return {
    nodeBinary: join(folder, "tidegraph-node"),
    workerBinary: join(folder, "tidegraph"),
    lambdaBinary: join(folder, "tidegraph-lambda"),
    rebalanceBinary: join(folder, "tidegraph-rebalance"),
    ingestBinary: join(folder, "tidegraph-ingest"),
  };
}

/**
 * Writes a function's archive: one program under the name that Lambda starts, with execute permission.
 *
 * @param {string} program
 * @param {string} archive
 */
function zipped(program, archive) {
  const folder = mkdtempSync(join(tmpdir(), "tidegraph-bundle-"));
  copyFileSync(program, join(folder, "bootstrap"));
  execFileSync("python3", ["-m", "zipfile", "-c", archive, "bootstrap"], { cwd: folder });
  rmSync(folder, { recursive: true });
}

/**
 * Copies a program without its symbols. The tool comes with rustc and supports all processors.
 *
 * @param {string} from
 * @param {string} to
 */
function strip(from, to) {
  const ask = (/** @type {string[]} */ args) =>
    execFileSync("rustc", args, { cwd: root, encoding: "utf8" }).trim();
  const sysroot = ask(["--print", "sysroot"]);
  const host = /^host: (.*)$/m.exec(ask(["-vV"]))?.[1] ?? "";
  const program = join(sysroot, "lib", "rustlib", host, "bin", "rust-objcopy");
  const env = { ...process.env, LD_LIBRARY_PATH: join(sysroot, "lib") };
  execFileSync(program, ["--strip-all", from, to], { env });
  chmodSync(to, 0o755);
}

/**
 * Checks that a program can run on Amazon Linux 2023.
 *
 * @param {string} path
 */
function check(path) {
  const program = readFileSync(path);
  const { machine } = PROCESSORS[/** @type {keyof typeof PROCESSORS} */ (arch)];
  if (program.toString("latin1", 0, 4) !== "\x7fELF" || program.readUInt16LE(MACHINE_AT) !== machine)
    throw new Error(`${path} is no program of Linux for ${arch}`);
  const [, minor] = GLIBC.split(".");
  for (const [found, asked] of program.toString("latin1").matchAll(/\0GLIBC_2\.(\d+)(?=\0)/g)) {
    if (Number(asked) > Number(minor))
      throw new Error(
        `${path} needs ${found.slice(1)}, and Amazon Linux 2023 has ${GLIBC}: build on a system that is as old, or with --arch for the other processor`,
      );
  }
}

/** @param {readonly string[]} names of files in the worker's folder */
function folderSize(names) {
  return names.reduce((sum, name) => sum + statSync(join(out, "worker", name)).size, 0);
}

/** @param {number} bytes */
function mib(bytes) {
  return `${(bytes / (1 << 20)).toFixed(1)} MiB`;
}

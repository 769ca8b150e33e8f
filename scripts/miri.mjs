/**
 * `npm run miri [-- FILTER…]`: runs the tests of unsafe and lock-free code in an interpreter that checks every memory
 * access (Miri, tree borrows). All of them take about an hour; with a filter, such as `arena slot_index`, minutes.
 *
 * The first run installs a pinned nightly toolchain. This is not part of `npm test`, which runs the same tests at full
 * speed and with many more steps.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { cache, run } from "./lib/run.mjs";

const TOOLCHAIN = "nightly-2026-05-20";
/**
 * Modules with `unsafe` blocks, atomics or guards. Tests that need a file or a memory mapping skip themselves under
 * Miri.
 */
const MODULES = [
  "arena",
  "slot_index",
  "slots",
  "versions",
  "virtual_array",
  "partition::columns",
  "partition::waits",
  "adjacency",
  "properties::column",
  "properties::overflow",
  "properties::tests",
  "properties::wide",
  "index::key",
];

const chosen = process.argv.slice(2);
const installed = execFileSync("rustup", ["toolchain", "list"], { encoding: "utf8" });
if (!installed.includes(TOOLCHAIN)) {
  const parts = ["--component", "miri", "--component", "rust-src"];
  await run("rustup", ["toolchain", "install", TOOLCHAIN, "--profile", "minimal", ...parts]);
}
await run(
  "cargo",
  [
    `+${TOOLCHAIN}`,
    "miri",
    "test",
    "--locked",
    "-p",
    "tidegraph-storage",
    "--lib",
    "--",
    ...(chosen.length > 0 ? chosen : MODULES),
  ],
  {
    env: {
      CARGO_TARGET_DIR: join(cache, "target-miri"),
      // Tests read clocks. The epoch-based collector makes pointers from integers, which strict provenance does not
      // allow; the memory that it holds when the process ends is not a leak.
      MIRIFLAGS: [
        "-Zmiri-tree-borrows",
        "-Zmiri-disable-isolation",
        "-Zmiri-permissive-provenance",
        "-Zmiri-ignore-leaks",
      ].join(" "),
    },
  },
);

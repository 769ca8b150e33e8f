/**
 * `npm run miri [-- FILTER…]`: the tests of unsafe and lock-free code in an interpreter that checks every access to memory (Miri, tree
 * borrows). Takes about an hour for all of them; with a filter, as in `arena slot_index`, minutes.
 *
 * A pinned nightly toolchain is installed at the first run. Not part of `npm test`, which runs the same tests at full speed and with many
 * more steps.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { cache, run } from "./lib/run.mjs";

const TOOLCHAIN = "nightly-2026-05-20";
/** Modules with `unsafe` blocks, atomics or guards. Tests that need a file or a mapping of memory leave themselves out. */
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
      // Tests read clocks, and the collector of epochs makes pointers out of integers, which cannot be followed strictly; what it
      // holds when the process ends is its own and counts as no leak.
      MIRIFLAGS: [
        "-Zmiri-tree-borrows",
        "-Zmiri-disable-isolation",
        "-Zmiri-permissive-provenance",
        "-Zmiri-ignore-leaks",
      ].join(" "),
    },
  },
);

/**
 * `npm run test:long`: runs the variants of the tests that take hours. CONTRIBUTING.md says when they have to run. `--
 * NAME…` selects some of them.
 */
import { join } from "node:path";
import { cargoTool } from "./lib/cargo.mjs";
import { services } from "./lib/parts.mjs";
import { installNodeModules, root, run, runSteps } from "./lib/run.mjs";

const CARGO_HACK_VERSION = "0.6.46";
const SEEDS = "0..10000";

/** @param {string} file @param {readonly string[]} args */
const acceptance = (file, ...args) => run("node", [join(root, "integration-tests", file), ...args]);

/** @type {Record<string, readonly [title: string, step: () => Promise<void>]>} */
const FORMS = {
  faults: [
    "every fault, three brokers, programs of the profile release",
    () => acceptance("fleet/faults.mjs"),
  ],
  abuse: ["hostile queries, clients and files against one service", () => acceptance("abuse/abuse.mjs")],
  rebalance: [
    "replicas of a larger graph that move",
    () => acceptance("fleet/rebalance.mjs", "--release", "--rows", "200000"),
  ],
  upgrade: ["an upgrade from the previous release", () => acceptance("fleet/upgrade.mjs")],
  aws: ["every scenario on LocalStack", () => acceptance("aws/deploy.mjs")],
  cluster: [
    "every integration test that holds in a fleet",
    () => run("npm", ["test", "--", "--all", "--integration", "--cluster"]),
  ],
  simulation: [`worlds of the seeds ${SEEDS}`, () => run("npm", ["run", "simulate", "--", "--seeds", SEEDS])],
  queries: [
    "drawn queries against naive evaluators",
    async () => {
      await run("npm", ["run", "fuzz-queries", "--", "--queries", "200000"]);
      await run("npm", ["run", "fuzz-queries", "--", "--queries", "20000", "--metamorphic"]);
      await run("npm", ["run", "fuzz-queries", "--", "--queries", "100000", "--concurrent"]);
      await run("npm", ["run", "fuzz-queries", "--", "--queries", "50000", "--concurrent", "--constraints"]);
      await run("npm", ["run", "fuzz-queries", "--", "--queries", "50000", "--concurrent", "--at-hand"]);
      await run("npm", ["run", "fuzz-queries", "--", "--queries", "10000", "--concurrent", "--fleet"]);
    },
  ],
  fuzz: [
    "a minute of made-up bytes for each reader of foreign bytes",
    () => run("npm", ["run", "fuzz", "--", "--seconds", "60"]),
  ],
  features: ["every set of features compiles", everySetOfFeatures],
  miri: ["unsafe code under Miri", () => run("node", [join(root, "scripts", "miri.mjs")])],
};

const names = process.argv.slice(2).map((argument) => argument.replace(/^--/, ""));
const unknown = names.filter((name) => !(name in FORMS));
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(", ")}; there are ${Object.keys(FORMS).join(", ")}`);
  process.exit(2);
}
const chosen = Object.entries(FORMS).filter(([name]) => names.length === 0 || names.includes(name));
await installNodeModules();
await runSteps(
  "npm run test:long",
  chosen.map(([, form]) => form),
);
await services.stop();

async function everySetOfFeatures() {
  const bin = await cargoTool("cargo-hack", CARGO_HACK_VERSION);
  const args = ["hack", "check", "--locked", "--workspace", "--feature-powerset", "--no-dev-deps"];
  await run(join(bin, "cargo-hack"), args);
}

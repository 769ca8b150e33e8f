/**
 * `npm test`: runs every test, also on a clean clone. It installs what it needs (pinned, and skipped if present),
 * builds everything once, and runs the parts of `lib/parts.mjs`. It skips a part that passed on this machine with the
 * same inputs.
 *
 * `npm test -- --NAME` runs the parts with that name; `--all` also runs unchanged parts. `npm test -- --integration
 * --cluster` runs the black-box tests against workers of a fleet, except those that are about one process.
 */
import { runParts } from "./lib/lanes.mjs";
import { NAMES, OF_FLEETS, PARTS, prepare, services, testsOfFleets } from "./lib/parts.mjs";

const given = process.argv.slice(2).map((argument) => argument.replace(/^--/, ""));
const unknown = given.filter((name) => ![...NAMES, "all", "cluster"].includes(name));
if (unknown.length > 0) {
  const all = [...NAMES, "all", "cluster"].map((name) => `--${name}`);
  console.error(`unknown: ${unknown.join(", ")}; there are ${all.join(", ")}`);
  process.exit(2);
}
const chosen = given.filter((name) => NAMES.includes(name));
const inCluster = given.includes("cluster");
if (inCluster && chosen.join() !== "integration") {
  console.error("--cluster goes with --integration and nothing else");
  process.exit(2);
}

/** @type {readonly import("./lib/lanes.mjs").Part[]} */
const parts = inCluster
  ? PARTS.filter(({ title }) => title === "integration tests against a fleet").map((part) => ({
      ...part,
      title: "every integration test that holds in a fleet",
      act: (run) => testsOfFleets(run, OF_FLEETS),
    }))
  : PARTS.filter(({ name }) => chosen.length === 0 || chosen.includes(name));
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) process.on(signal, () => {});
try {
  await runParts("npm test", parts, { all: given.includes("all"), before: prepare });
} finally {
  await services.stop();
}
process.exit();

/**
 * `npm run check`: quick feedback on a change. It checks formatting, lints, types and the rules of the repository. It
 * runs the tests of crates whose own files changed since their tests last passed on this machine, and those of the
 * packages in TypeScript. `npm test` runs the rest.
 */
import { changedCrates, clippy, noteCratesPassed, runTests } from "./lib/cargo.mjs";
import { contentHash, notePassed, passedAt } from "./lib/inputs.mjs";
import { kits } from "./lib/kits.mjs";
import { runParts } from "./lib/lanes.mjs";
import { PARTS, services } from "./lib/parts.mjs";
import { installNodeModules, run, runSteps } from "./lib/run.mjs";

const npx = (/** @type {string[]} */ ...args) => run("npx", ["--no-install", ...args]);
const changed = changedCrates();
const names = changed.map(({ name }) => name);

await runSteps("npm run check", [
  ["npm packages", installNodeModules],
  ["formatting", () => run("cargo", ["fmt", "--all", "--check"])],
  ["Biome", () => npx("biome", "check", "--error-on-warnings", ".")],
  [
    "clippy, and types of TypeScript beside it",
    async () => {
      await unlessPassed("types", ["**/*.ts", "**/*.mjs", "package-lock.json", "tsconfig.json"], () =>
        Promise.all([npx("tsc", "--project", "."), npx("tsc", "--project", "infra")]),
      );
      await clippy();
    },
  ],
  ["tidy", () => run("cargo", ["run", "--locked", "--quiet", "-p", "xtask", "--", "tidy"])],
  [
    names.length > 0 ? `tests of ${names.join(", ")}` : "tests: no crate changed",
    async () => {
      if (names.length === 0) return;
      const withKits = names.some((name) => ["tidegraph-engine", "tidegraph-fleet"].includes(name));
      const withServers = names.some((name) => /-(log|cluster|fleet)$/.test(name));
      const env = {
        ...(withKits ? await kits() : {}),
        ...(withServers ? await services.environment() : {}),
      };
      await runTests(env, names.map((name) => `package(${name})`).join(" | "));
      noteCratesPassed(changed);
    },
  ],
]);
await runParts(
  "packages in TypeScript",
  PARTS.filter(({ name }) => name === "contracts" || name === "infra"),
  { all: false },
);
await services.stop();
process.exit();

/**
 * Runs a check unless it passed on this machine with the same inputs.
 *
 * @param {string} name
 * @param {readonly string[]} inputs
 * @param {() => Promise<unknown>} act
 */
async function unlessPassed(name, inputs, act) {
  const hash = contentHash(inputs);
  if (passedAt(name, hash) !== undefined) return;
  await act();
  notePassed(name, hash);
}

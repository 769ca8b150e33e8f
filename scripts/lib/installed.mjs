/** Installs what a file pins into the cache: once, and again when the file changes. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cache, run } from "./run.mjs";

/**
 * Installs into a folder that is named after the contents of `files`, unless it is complete.
 *
 * @param {string} kind The folder of the cache.
 * @param {string} name
 * @param {readonly string[]} files The files that determine what is installed.
 * @param {(into: string) => Promise<void>} fill
 * @returns {Promise<string>}
 */
export async function installed(kind, name, files, fill) {
  const hash = createHash("sha256");
  for (const file of files) hash.update(readFileSync(file));
  const into = join(cache, kind, `${name}-${hash.digest("hex").slice(0, 16)}`);
  const done = join(into, "complete");
  if (existsSync(done)) return into;
  console.error(`installing ${name}`);
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  await fill(into);
  writeFileSync(`${done}.unfinished`, "");
  renameSync(`${done}.unfinished`, done);
  return into;
}

/**
 * Copies the artefacts that a pom names, with their dependencies, from Maven Central.
 *
 * @param {string} pom
 * @param {string} into
 * @returns {Promise<void>}
 */
export async function jars(pom, into) {
  const copy = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies";
  await run("mvn", ["-q", "-B", "-f", pom, copy, `-DoutputDirectory=${into}`, "-DincludeScope=runtime"]);
}

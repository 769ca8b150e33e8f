/**
 * The inputs of a part of the checks, by content, and whether the part passed on this machine with exactly these
 * inputs.
 *
 * A mark is a file in the cache that is named after the part and holds the hash of its inputs: the files under the
 * part's paths that git tracks or would add, and the versions of the tools that read them. A part whose mark has the
 * current hash need not run again.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cache, root } from "./run.mjs";

/** @param {string} program @param {readonly string[]} args */
const output = (program, args) =>
  execFileSync(program, args, { cwd: root, encoding: "utf8", maxBuffer: 64 << 20 });

/** @type {string | undefined} */
let tools;

/** Returns the versions of the tools that run the checks. */
function toolVersions() {
  tools ??= [output("rustc", ["-V"]), process.version, process.platform, process.arch].join("\n");
  return tools;
}

/**
 * Returns the names of the files under some paths: tracked files, and new ones that git does not ignore.
 *
 * @param {readonly string[]} paths files or folders, relative to the root
 */
export function filesUnder(paths) {
  const known = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ...paths];
  const names = output("git", known).split("\0");
  return [...new Set(names)].filter((name) => name !== "" && existsSync(join(root, name))).sort();
}

/**
 * Returns the hash of the files under some paths and of the tool versions.
 *
 * @param {readonly string[]} paths
 */
export function contentHash(paths) {
  const hash = createHash("sha256").update(toolVersions());
  for (const name of filesUnder(paths)) {
    const content = readFileSync(join(root, name));
    hash.update(`\0${name}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

/** @param {string} name */
const markOf = (name) => join(cache, "passed", name);

/**
 * Returns when a check passed with these inputs on this machine; `undefined` if it did not.
 *
 * @param {string} name
 * @param {string} hash
 * @returns {string | undefined}
 */
export function passedAt(name, hash) {
  if (!existsSync(markOf(name))) return undefined;
  const [held, at] = readFileSync(markOf(name), "utf8").split("\n");
  return held === hash ? at : undefined;
}

/**
 * Records that a check passed with these inputs.
 *
 * @param {string} name
 * @param {string} hash
 */
export function notePassed(name, hash) {
  mkdirSync(join(cache, "passed"), { recursive: true });
  writeFileSync(markOf(name), `${hash}\n${new Date().toISOString()}\n`);
}

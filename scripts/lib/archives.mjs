/** Release archives: their names, where `npm start` looks for one, and how to unpack it. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { installed } from "./installed.mjs";
import { root } from "./run.mjs";

/** The file with the checksums of a release. */
export const CHECKSUMS = "SHA256SUMS";

/** @param {string} version @param {string} arch */
export function archiveName(version, arch) {
  return `tidegraph-${version}-linux-${arch}.tar.gz`;
}

/**
 * Finds the archive of this version for this machine: in the folder that `TIDEGRAPH_ARCHIVES` names, else in the root
 * of the repository or in `dist/release`.
 *
 * @returns {string | undefined}
 */
export function findArchive() {
  if (process.platform !== "linux") return undefined;
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const name = archiveName(version, process.arch === "arm64" ? "arm64" : "x86_64");
  const named = process.env.TIDEGRAPH_ARCHIVES;
  const folders = named ? [named] : [root, join(root, "dist", "release")];
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

/**
 * Unpacks an archive into the cache, once, and returns the folder with its programs. If there are checksums beside it,
 * they have to match.
 *
 * @param {string} archive
 * @returns {Promise<string>}
 */
export async function unpack(archive) {
  const sums = join(dirname(archive), CHECKSUMS);
  if (existsSync(sums)) {
    const name = archive.slice(dirname(archive).length + 1);
    const line = readFileSync(sums, "utf8")
      .split("\n")
      .find((text) => text.endsWith(`  ${name}`));
    const found = createHash("sha256").update(readFileSync(archive)).digest("hex");
    if (line?.split(" ")[0] !== found)
      throw new Error(`${archive} has the checksum ${found}, and ${sums} says ${line ?? "nothing of it"}`);
  }
  const into = await installed("releases", "release", [archive], async (folder) => {
    mkdirSync(folder, { recursive: true });
    execFileSync("tar", ["-C", folder, "-xzf", archive]);
  });
  const [folder] = readdirSync(into).filter((name) => name.startsWith("tidegraph-"));
  if (!folder) throw new Error(`${archive} holds no folder of programs`);
  return join(into, folder);
}

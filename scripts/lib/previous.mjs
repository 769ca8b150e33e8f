/**
 * The programs of the previous release, for tests of upgrades. Until there is a published one, they are built from the
 * last commit whose nodes stated no release (`integration-tests/fleet/previous.json`): once, into the cache, which takes
 * some minutes.
 */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { EVERYTHING } from "./cargo.mjs";
import { installed } from "./installed.mjs";
import { cache, environment, root, run } from "./run.mjs";

const PROGRAMS = ["tidegraph-node", "tidegraph"];
const PINNED = join(root, "integration-tests", "fleet", "previous.json");

/**
 * Returns the paths of the previous release's programs, and what they are. `TIDEGRAPH_PREVIOUS_PROGRAMS` names a folder
 * that has them.
 *
 * @returns {Promise<{ nodeBinary: string, workerBinary: string, name: string }>}
 */
export async function previousPrograms() {
  const given = process.env.TIDEGRAPH_PREVIOUS_PROGRAMS;
  const { commit } = JSON.parse(readFileSync(PINNED, "utf8"));
  const folder = given
    ? resolve(given)
    : await installed("previous", commit.slice(0, 8), [PINNED], build(commit));
  for (const program of PROGRAMS) {
    if (!existsSync(join(folder, program))) throw new Error(`there is no ${join(folder, program)}`);
  }
  return {
    nodeBinary: join(folder, "tidegraph-node"),
    workerBinary: join(folder, "tidegraph"),
    name: given ? `the programs in ${folder}` : `commit ${commit.slice(0, 8)}`,
  };
}

/** @param {string} commit */
function build(commit) {
  return async (/** @type {string} */ into) => {
    const tree = mkdtempSync(join(tmpdir(), "tidegraph-previous-"));
    const target = join(cache, "target-previous");
    try {
      await run("git", ["-C", root, "worktree", "add", "--detach", tree, commit]);
      const bins = PROGRAMS.flatMap((name) => ["--bin", name]);
      await run("cargo", ["build", ...EVERYTHING, ...bins], {
        cwd: tree,
        env: { ...environment, CARGO_TARGET_DIR: target },
      });
      for (const name of PROGRAMS) copyFileSync(join(target, "debug", name), join(into, name));
    } finally {
      await run("git", ["-C", root, "worktree", "remove", "--force", tree]).catch(() => undefined);
      rmSync(tree, { recursive: true, force: true });
      rmSync(target, { recursive: true, force: true });
    }
  };
}

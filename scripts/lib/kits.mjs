/** openCypher's Technology Compatibility Kit and TinkerPop's feature tests, from Maven Central. */
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { installed, jars } from "./installed.mjs";
import { root } from "./run.mjs";

/**
 * Installs the kits, unless they are installed.
 *
 * @returns {Promise<Record<string, string>>} Variables that tell the tests where the kits are.
 */
export async function kits() {
  const pom = join(root, "scripts", "lib", "kits", "pom.xml");
  const into = await installed("kits", "kits", [pom], async (into) => {
    const lib = join(into, "lib");
    await jars(pom, lib);
    for (const [kit, folder] of [
      ["tck-", "tck"],
      ["gremlin-test-", "gremlin"],
    ]) {
      const jar = readdirSync(lib).find((name) => name.startsWith(kit ?? ""));
      if (!jar) throw new Error(`${lib} has no jar of ${kit}…`);
      const unpacked = join(into, folder ?? "");
      mkdirSync(unpacked);
      await promisify(execFile)("jar", ["xf", join(lib, jar)], { cwd: unpacked });
    }
  });
  const tinkerpop = join(into, "gremlin", "org", "apache", "tinkerpop", "gremlin");
  return {
    TCK_FEATURES: join(into, "tck"),
    GREMLIN_FEATURES: join(tinkerpop, "test", "features"),
    GREMLIN_GRATEFUL: join(tinkerpop, "structure", "io", "graphson", "grateful-dead-v1.json"),
  };
}

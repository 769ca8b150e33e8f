/** openCypher's Technology Compatibility Kit and TinkerPop's feature tests, from Maven Central. */
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { installed, jars } from "./installed.mjs";
import { root } from "./run.mjs";

/** The folder of an unpacked `gremlin-test` jar that has the features. */
const TINKERPOP = join("gremlin", "org", "apache", "tinkerpop", "gremlin");

/**
 * Installs the kits, unless they are installed.
 *
 * @returns {Promise<Record<string, string>>} Variables that tell the tests where the kits are.
 */
export async function kits() {
  const folder = join(root, "scripts", "lib", "kits");
  const into = await unpacked("kits", join(folder, "pom.xml"), { "tck-": "tck", "gremlin-test-": "gremlin" });
  const newer = await unpacked("kits-3.8", join(folder, "gremlin-3.8", "pom.xml"), {
    "gremlin-test-": "gremlin",
  });
  return {
    TCK_FEATURES: join(into, "tck"),
    GREMLIN_FEATURES: join(into, TINKERPOP, "test", "features"),
    GREMLIN_3_8_FEATURES: join(newer, TINKERPOP, "test", "features"),
    GREMLIN_GRATEFUL: join(into, TINKERPOP, "structure", "io", "graphson", "grateful-dead-v1.json"),
  };
}

/**
 * Installs the jars that a pom names, and unpacks some.
 *
 * @param {string} name
 * @param {string} pom
 * @param {Record<string, string>} folders The folder of each jar, by the beginning of the jar's name.
 * @returns {Promise<string>}
 */
async function unpacked(name, pom, folders) {
  return installed("kits", name, [pom], async (into) => {
    const lib = join(into, "lib");
    await jars(pom, lib);
    for (const [kit, folder] of Object.entries(folders)) {
      const jar = readdirSync(lib).find((file) => file.startsWith(kit));
      if (!jar) throw new Error(`${lib} has no jar of ${kit}…`);
      mkdirSync(join(into, folder));
      await promisify(execFile)("jar", ["xf", join(lib, jar)], { cwd: join(into, folder) });
    }
  });
}

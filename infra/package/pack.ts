/**
 * Makes the package `@tidegraph/cdk` for CDK apps outside of this repository: `npm run pack --workspace infra -- FOLDER`
 * writes `tidegraph-cdk-VERSION.tgz` into the folder.
 *
 * It has the constructs as JavaScript with types, the files of machines and workers, and the functions in TypeScript,
 * bundled. The commands `tidegraph-doctor` and `tidegraph-remove` are one file each. It has no programs: the prop `bundle` names a folder with those of a release.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { temporaryFolder } from "../lib/temporary.ts";
import { BUNDLING, SOURCES } from "../lib/typescript-function.ts";

const INFRA = join(import.meta.dirname, "..");
const ROOT = join(INFRA, "..");
/** Folders with files of machines and images. */
const FILES = ["agent", "backup", "node", "worker"];

/** Makes the package in a folder, and returns the path of its archive. */
export async function pack(folder: string): Promise<string> {
  const home = temporaryFolder("package");
  const lib = join(home, "lib");
  execFileSync("npx", ["--no-install", "tsc", "--project", join(INFRA, "package"), "--outDir", lib], {
    cwd: ROOT,
    stdio: ["ignore", "inherit", "inherit"],
  });
  await packFiles(home);
  await packDoctor(join(home, "doctor", "tidegraph-doctor.cjs"));
  await packCommand("remove", join(home, "remove", "tidegraph-remove.cjs"));
  copyFileSync(join(INFRA, "package", "README.md"), join(home, "README.md"));
  writeFileSync(join(home, "package.json"), `${JSON.stringify(manifest(), null, 2)}\n`);
  mkdirSync(folder, { recursive: true });
  const packed = ["pack", "--silent", "--pack-destination", resolve(folder)];
  const name = execFileSync("npm", packed, { cwd: home, encoding: "utf8" }).trim().split("\n").at(-1) ?? "";
  return join(resolve(folder), name);
}

/** Writes what the constructs read beside their code: the functions, bundled, and the files of machines and images. */
export async function packFiles(home: string): Promise<void> {
  for (const [name, source] of Object.entries(SOURCES)) {
    await build({
      target: BUNDLING.target,
      minify: BUNDLING.minify,
      sourcemap: BUNDLING.sourceMap,
      sourcesContent: BUNDLING.sourcesContent,
      entryPoints: [join(ROOT, source)],
      outfile: join(home, "functions", name, "index.js"),
      bundle: true,
      format: "cjs",
      platform: "node",
      logLevel: "warning",
    });
  }
  for (const files of FILES) cpSync(join(INFRA, files), join(home, files), { recursive: true });
  copyFileSync(join(ROOT, "LICENSE"), join(home, "LICENSE"));
}

/** Bundles the command `tidegraph-doctor` into one file, with AWS's clients, so that it needs nothing but Node. */
export const packDoctor = (outfile: string): Promise<void> => packCommand("doctor", outfile);

/** Bundles a command, whose folder is given, into one file. */
async function packCommand(folder: "doctor" | "remove", outfile: string): Promise<void> {
  await build({
    target: BUNDLING.target,
    minify: BUNDLING.minify,
    entryPoints: [join(INFRA, folder, "bin.ts")],
    outfile,
    bundle: true,
    format: "cjs",
    platform: "node",
    logLevel: "warning",
  });
  chmodSync(outfile, 0o755);
}

/** Returns the manifest. What the constructs import comes from the app, so that there is one of it. */
function manifest(): object {
  const read = (path: string) => JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  const { version, license, engines } = read(ROOT);
  const { dependencies } = read(INFRA);
  const peers = ["aws-cdk-lib", "constructs"].map((name) => [name, `^${dependencies[name]}`]);
  return {
    name: "@tidegraph/cdk",
    version,
    description: "AWS CDK constructs of Tidegraph, a graph database that answers Gremlin and openCypher",
    license,
    type: "module",
    engines,
    exports: { ".": { types: "./lib/index.d.ts", default: "./lib/index.js" } },
    types: "./lib/index.d.ts",
    bin: {
      "tidegraph-doctor": "doctor/tidegraph-doctor.cjs",
      "tidegraph-remove": "remove/tidegraph-remove.cjs",
    },
    files: ["doctor", "functions", "lib", "remove", ...FILES],
    peerDependencies: Object.fromEntries(peers),
  };
}

if (process.argv[1] === import.meta.filename) {
  const [folder] = process.argv.slice(2);
  if (folder === undefined) throw new Error("say the folder of the archive: npm run pack -- FOLDER");
  console.log(await pack(folder));
}

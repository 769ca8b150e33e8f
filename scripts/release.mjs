/**
 * `npm run release [-- --arch ARCH] [--bundle FOLDER] [--out FOLDER]`: makes the files of a release, in `dist/release`.
 *
 * - `tidegraph-VERSION-linux-ARCH.tar.gz`: the programs, the licence and the README. `npm start` uses the archive if it
 *   finds it.
 * - `tidegraph-cdk-VERSION.tgz`: the package `@tidegraph/cdk`, whose prop `bundle` takes the unpacked archive for arm64.
 * - `tidegraph_cdk-VERSION-py3-none-any.whl`: the same for CDK apps in Python.
 * - `tidegraph_neptune-VERSION-py3-none-any.whl`: the package `tidegraph-neptune` for Neptune's clients in Python.
 * - `tidegraph-VERSION-cloudformation.tar.gz`, with the programs for arm64: templates of CloudFormation for several numbers
 *   of nodes, with what they refer to (`npm run template`).
 * - `container/`: the Dockerfile of the service of one process, and the files that it copies.
 * - `tidegraph-VERSION.cdx.json`: the bill of materials of the Rust programs (CycloneDX), and
 *   `tidegraph-functions-VERSION.cdx.json` for the functions, constructs and the doctor in TypeScript.
 * - `SHA256SUMS`: the checksums of all of them.
 *
 * The programs come from `npm run bundle`, which runs first unless `--bundle` names a folder that it made.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { archiveName, CHECKSUMS } from "./lib/archives.mjs";
import { cargoTool } from "./lib/cargo.mjs";
import { neptuneWheel, pythonWithCdk } from "./lib/python.mjs";
import { installNodeModules, root, run } from "./lib/run.mjs";

const CYCLONEDX_VERSION = "0.5.9";
const PROGRAMS = ["bootstrap", "tidegraph", "tidegraph-node", "tidegraph-rebalance", "tidegraph-ingest"];
/** Numbers of storage nodes for which a release has templates. */
const NODES = [3, 6, 9, 12];
const DOCUMENTS = ["LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md"];

const { values } = parseArgs({
  options: {
    arch: { type: "string", default: process.arch === "arm64" ? "arm64" : "x86_64" },
    bundle: { type: "string" },
    out: { type: "string", default: join(root, "dist", "release") },
  },
});
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const out = resolve(values.out);
const bundle = resolve(values.bundle ?? join(root, "dist", values.arch));
if (values.bundle === undefined)
  await run("node", [join(root, "scripts", "bundle.mjs"), "--arch", values.arch]);
for (const name of PROGRAMS)
  if (!existsSync(join(bundle, name))) throw new Error(`there is no ${name} in ${bundle}`);
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
packPrograms();
defineContainer();
await installNodeModules();
await run("npm", ["run", "pack", "--silent", "--workspace", "infra", "--", out]);
await run("npm", ["run", "pack:python", "--silent", "--workspace", "infra", "--", out], {
  env: await pythonWithCdk(),
});
await neptuneWheel(out);
if (values.arch === "arm64") await packTemplates();
await billsOfMaterials();
const sums = writeChecksums();
console.log(`\n${out}\n${sums}`);

/** Packs the programs and their documents, in a folder with the archive's name. */
function packPrograms() {
  const work = mkdtempSync(join(tmpdir(), "tidegraph-release-"));
  const name = archiveName(version, values.arch).replace(/\.tar\.gz$/, "");
  mkdirSync(join(work, name));
  for (const program of PROGRAMS) copyFileSync(join(bundle, program), join(work, name, program));
  for (const document of DOCUMENTS) copyFileSync(join(root, document), join(work, name, document));
  packFolder(work, name);
}

/** Packs the templates and what they refer to. Machines are of arm64, and so are their programs. */
async function packTemplates() {
  const work = mkdtempSync(join(tmpdir(), "tidegraph-release-"));
  const name = `tidegraph-${version}-cloudformation`;
  const flags = ["--bundle", bundle, "--nodes", NODES.join(","), "--out", join(work, name)];
  await run("npm", ["run", "template", "--silent", "--", ...flags]);
  copyFileSync(join(root, "LICENSE"), join(work, name, "LICENSE"));
  packFolder(work, name);
}

/**
 * Packs a folder into an archive of the release, and removes where it is. Order, times and owners are fixed, so that equal
 * files make equal archives.
 *
 * @param {string} parent
 * @param {string} name
 */
function packFolder(parent, name) {
  const same = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  execFileSync("tar", [...same, "-C", parent, "-czf", join(out, `${name}.tar.gz`), name]);
  rmSync(parent, { recursive: true });
}

/** Writes the input of `docker build` for an image of the service of one process. */
function defineContainer() {
  const folder = join(out, "container");
  mkdirSync(folder);
  copyFileSync(join(bundle, "tidegraph"), join(folder, "tidegraph"));
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  writeFileSync(
    join(folder, "Dockerfile"),
    `# The service of one process. docker build -t tidegraph . && docker run -p 127.0.0.1:8182:8182 -v tidegraph:/data -v ./token:/token:ro tidegraph
# The service asks clients for the token in /token. It has no TLS (--insecure): publish the port on this machine only, put something
# before it that ends TLS, or run it with --listen-tls-certificate and --listen-tls-key instead.
FROM public.ecr.aws/amazonlinux/amazonlinux:2023-minimal
COPY --chmod=0755 tidegraph /usr/local/bin/tidegraph
COPY LICENSE /usr/share/doc/tidegraph/LICENSE
USER 65532:65532
VOLUME /data
EXPOSE 8182
ENTRYPOINT ["/usr/local/bin/tidegraph"]
CMD ["serve", "--host", "0.0.0.0", "--insecure", "--port", "8182", "--data", "/data", "--token-file", "/token"]
`,
  );
}

async function billsOfMaterials() {
  const bin = await cargoTool("cargo-cyclonedx", CYCLONEDX_VERSION);
  const name = `tidegraph-${version}.cdx`;
  const env = { PATH: [bin, process.env.PATH].join(delimiter) };
  const what = ["--format", "json", "--all-features", "--top-level", "--override-filename", name];
  // The tool writes a file beside each manifest; only that of the programs is kept.
  await run("cargo", ["cyclonedx", ...what], { env });
  const made = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(`${name}.json`) && !file.includes("node_modules"))
    .map((file) => join(root, file))
    .filter((file) => !file.startsWith(out));
  const programs = made.find((file) => file.startsWith(join(root, "services", "query")));
  if (!programs) throw new Error("cargo-cyclonedx wrote no bill of materials for services/query");
  copyFileSync(programs, join(out, `${name}.json`));
  for (const file of made) rmSync(file);
  const functions = [
    "sbom",
    "--sbom-format",
    "cyclonedx",
    "--omit",
    "dev",
    // Functions, and the constructs with the functions and the command that the package bundles.
    ...["services/ingest/control", "infra"].flatMap((workspace) => ["--workspace", workspace]),
  ];
  writeFileSync(
    join(out, `tidegraph-functions-${version}.cdx.json`),
    execFileSync("npm", functions, { cwd: root, maxBuffer: 64 << 20 }),
  );
}

/** Writes the checksums of all files, and returns them. */
function writeChecksums() {
  const files = readdirSync(out, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  const lines = files
    .map((file) => join(file.parentPath, file.name))
    .map((file) => [
      file.slice(out.length + 1),
      createHash("sha256").update(readFileSync(file)).digest("hex"),
    ])
    .sort()
    .map(([file, sum]) => `${sum}  ${file}\n`)
    .join("");
  writeFileSync(join(out, CHECKSUMS), lines);
  return lines;
}

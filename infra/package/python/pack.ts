/**
 * Makes the package `tidegraph-cdk` for CDK apps in Python: `npm run pack:python --workspace infra -- FOLDER` writes
 * `tidegraph_cdk-VERSION-py3-none-any.whl` into the folder. `TIDEGRAPH_PYTHON_CDK` names a Python with setuptools;
 * `scripts/lib/python.mjs` makes one.
 *
 * jsii compiles the same sources as `@tidegraph/cdk` has, and describes their types; jsii-pacmak writes Python classes
 * that call the compiled code in a process of Node. A copy of the sources differs from them where jsii asks for it:
 *
 * - it is CommonJS, which has no `import.meta`;
 * - `InvalidProp` is not exported, because an exported class extends no class that jsii does not know. Python gets its
 *   message in a `RuntimeError`;
 * - constructors that only our own constructs call take settings without a type, because types of parameters would have
 *   to be exported.
 */
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import ts from "typescript";
import { temporaryFolder } from "../../lib/temporary.ts";
import { packFiles } from "../pack.ts";

const HERE = import.meta.dirname;
const INFRA = join(HERE, "..", "..");
const ROOT = join(INFRA, "..");
/** What apps make themselves: these constructors keep their types. */
const MADE_BY_APPS = new Set(["GraphState", "GraphService", "StateStack", "ServiceStack"]);
/** The newest CDK of the Python Package Index is often older than that of npm. */
const OLDEST_CDK = "2.275.0";

/**
 * Makes the wheel in a folder, and returns its path.
 *
 * @param python a Python with setuptools
 */
export async function packPython(folder: string, python: string): Promise<string> {
  const home = temporaryFolder("python");
  cpSync(join(INFRA, "lib"), join(home, "lib"), { recursive: true });
  for (const path of readdirSync(join(home, "lib"), { recursive: true, encoding: "utf8" })) {
    if (!path.endsWith(".ts")) continue;
    const file = join(home, "lib", path);
    writeFileSync(file, forJsii(path, readFileSync(file, "utf8")));
  }
  await packFiles(home);
  for (const name of ["README.md", "tsconfig.json"]) copyFileSync(join(HERE, name), join(home, name));
  const description = manifest();
  writeFileSync(join(home, "package.json"), `${JSON.stringify(description, null, 2)}\n`);
  symlinkSync(join(ROOT, "node_modules"), join(home, "node_modules"));
  call("jsii", home);
  const code = join(home, "dist");
  call("jsii-pacmak", home, "--target", "python", "--code-only", "--no-npmignore", "--outdir", code);
  mkdirSync(folder, { recursive: true });
  const wheel = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", resolve(folder)];
  execFileSync(python, ["-m", "pip", "wheel", ...wheel, join(code, "python")], {
    stdio: ["ignore", "inherit", "inherit"],
    // The oldest date that an archive of this kind can have.
    env: { ...process.env, SOURCE_DATE_EPOCH: "315532800" },
  });
  return join(resolve(folder), `tidegraph_cdk-${description.version}-py3-none-any.whl`);
}

/** Runs a program of jsii, which prints nothing unless it fails. */
function call(program: string, ...args: string[]): void {
  try {
    execFileSync("npx", ["--no-install", program, ...args], {
      cwd: ROOT,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      // It prints a page if this version of Node is not a new one.
      env: { ...process.env, JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION: "1" },
    });
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

/** Returns a source as jsii takes it. */
function forJsii(path: string, source: string): string {
  let text = source.replaceAll("import.meta.dirname", "__dirname");
  if (path === "index.ts") text = text.replace('export { InvalidProp } from "./check.ts";\n', "");
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const edits: { at: number; to: number; with: string }[] = [];
  file.forEachChild((node) => {
    if (!ts.isClassDeclaration(node) || MADE_BY_APPS.has(node.name?.text ?? "")) return;
    const made = node.members.find(ts.isConstructorDeclaration);
    const [scope, , ...settings] = made?.parameters ?? [];
    if (!made?.body || scope?.name.getText() !== "scope") return;
    for (const [index, setting] of settings.entries())
      edits.push({ at: setting.getStart(), to: setting.end, with: `given${index}: any` });
    const begin = made.body.getStart() + 1;
    const typed = settings.map((setting, index) => ` const ${setting.getText()} = given${index};`);
    edits.push({ at: begin, to: begin, with: typed.join("") });
  });
  for (const { at, to, with: by } of edits.toSorted((one, other) => other.at - one.at))
    text = text.slice(0, at) + by + text.slice(to);
  return text;
}

/** Returns the manifest, with what jsii and the Python Package Index want to know. */
function manifest() {
  const read = (path: string) => JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  const { version, license } = read(ROOT);
  const { dependencies } = read(INFRA);
  const repository = /^repository = "(.*)"$/m.exec(readFileSync(join(ROOT, "Cargo.toml"), "utf8"))?.[1];
  return {
    name: "@tidegraph/cdk",
    version: version as string,
    description: "AWS CDK constructs of Tidegraph, a graph database that answers Gremlin and openCypher",
    license,
    author: { name: "The Tidegraph authors", url: repository, organization: true },
    repository: { type: "git", url: `${repository}.git` },
    main: "lib/index.js",
    types: "lib/index.d.ts",
    jsii: {
      outdir: "dist",
      versionFormat: "full",
      tsconfig: "tsconfig.json",
      validateTsconfig: "off",
      targets: { python: { distName: "tidegraph-cdk", module: "tidegraph_cdk" } },
    },
    peerDependencies: { "aws-cdk-lib": `^${OLDEST_CDK}`, constructs: `^${dependencies.constructs}` },
    devDependencies: { "aws-cdk-lib": dependencies["aws-cdk-lib"], constructs: dependencies.constructs },
  };
}

if (process.argv[1] === import.meta.filename) {
  const [folder] = process.argv.slice(2);
  const { TIDEGRAPH_PYTHON_CDK: python } = process.env;
  if (folder === undefined || python === undefined)
    throw new Error("say the folder of the wheel, and in TIDEGRAPH_PYTHON_CDK a Python with setuptools");
  console.log(await packPython(folder, python));
}

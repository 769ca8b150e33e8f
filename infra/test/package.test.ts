/**
 * The package `@tidegraph/cdk`: an app outside of the repository, in TypeScript, installs it, grants roles of its own what
 * there is to grant under AWS's rules (cdk-nag), and makes the same templates as the example here.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FLAGS } from "../lib/flags.ts";
import { temporaryFolder } from "../lib/temporary.ts";
import { SOURCES } from "../lib/typescript-function.ts";
import { pack } from "../package/pack.ts";
import { comparable, example, placeholders } from "./support.ts";

const ROOT = join(import.meta.dirname, "..", "..");

const APP = `import { GraphService, InvalidProp, ServiceStack, StateStack, type WorkersProps } from "@tidegraph/cdk";
import { App, Stack, Validations } from "aws-cdk-lib";
import { AccountRootPrincipal, Role } from "aws-cdk-lib/aws-iam";
import { AwsSolutionsChecks } from "cdk-nag";

const app = new App({ outdir: process.argv[2], analyticsReporting: false });
const workers: WorkersProps = { count: 2 };
const { state } = new StateStack(app, "State", { name: "example", graph: "people" });
const stack = new ServiceStack(app, "Service", { state, bundle: process.argv[3] ?? "", workers, backup: {} });
const service: Stack = stack;
const callers = new Stack(app, "Callers");
const role = (id: string) => new Role(callers, id, { assumedBy: new AccountRootPrincipal() });
stack.service.grantQuery(role("Query"));
stack.service.grantRead(role("Read"));
stack.service.grantWrite(role("Write"));
stack.service.grantDrop(role("Drop"));
stack.service.grantFleet(role("Fleet"));
stack.service.grantAdmin(role("Admin"));
try {
  new GraphService(new Stack(app, "Other"), "Service", { state, bundle: process.argv[3] ?? "", partitions: 3 });
} catch (error) {
  if (!(error instanceof InvalidProp) || error.prop !== "partitions") throw error;
  app.node.tryRemoveChild("Other");
  console.log(service.stackName, error.message);
}
// AWS's rules stop the app if they find something that is not explained.
Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
app.synth();
`;

test("the constructs set the feature flags of this app for apps that have others", () => {
  const { context } = JSON.parse(readFileSync(join(ROOT, "infra", "cdk.json"), "utf8"));
  const ofModules = Object.entries(context).filter(([name]) => !name.startsWith("@aws-cdk/core:"));
  assert.deepEqual({ ...FLAGS }, Object.fromEntries(ofModules));
});

test("an app outside of the repository uses the package, with its types, and makes the same templates", async () => {
  const home = temporaryFolder("consumer");
  const archive = await pack(home);
  const modules = join(home, "node_modules");
  const installed = join(modules, "@tidegraph", "cdk");
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", ["-xzf", archive, "-C", installed, "--strip-components=1"]);
  // What npm would install beside it.
  for (const name of ["aws-cdk-lib", "cdk-nag", "constructs"])
    symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
  mkdirSync(join(modules, "@types"));
  symlinkSync(join(ROOT, "node_modules", "@types", "node"), join(modules, "@types", "node"));
  const compilerOptions = {
    target: "ES2022",
    module: "NodeNext",
    strict: true,
    types: ["node"],
    skipLibCheck: false,
  };
  writeFileSync(join(home, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(join(home, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["app.ts"] }));
  writeFileSync(join(home, "app.ts"), APP);
  execFileSync("npx", ["--no-install", "tsc", "--project", home], { cwd: ROOT, stdio: "inherit" });
  const out = join(home, "out");
  const said = execFileSync(process.execPath, ["app.js", out, placeholders()], {
    cwd: home,
    encoding: "utf8",
  });
  assert.match(said, /^Service .*partitions.*a power of two/m);

  // The functions are in it, each with the map of its sources, and nothing is built when the app runs.
  assert.deepEqual(readdirSync(join(installed, "functions")).toSorted(), Object.keys(SOURCES).toSorted());
  for (const name of Object.keys(SOURCES)) {
    assert.deepEqual(readdirSync(join(installed, "functions", name)).toSorted(), [
      "index.js",
      "index.js.map",
    ]);
  }
  // The command needs nothing that the package does not have.
  const { version, bin } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  const doctor = execFileSync(join(installed, bin["tidegraph-doctor"]), ["--version"], { encoding: "utf8" });
  assert.equal(doctor, `tidegraph-doctor ${version}\n`);
  const remove = execFileSync(join(installed, bin["tidegraph-remove"]), ["--help"], { encoding: "utf8" });
  assert.match(remove, /^Removes what the deleted stacks/);
  const { state, service } = example({ backup: {} });
  for (const [name, template] of Object.entries({ State: state, Service: service })) {
    const { Resources } = JSON.parse(readFileSync(join(out, `${name}.template.json`), "utf8"));
    delete Resources.CDKMetadata;
    const ours = { ...template.toJSON().Resources };
    delete ours.CDKMetadata;
    assert.deepEqual(Object.keys(comparable(Resources)).toSorted(), Object.keys(comparable(ours)).toSorted());
    assert.deepEqual(comparable(Resources), comparable(ours), name);
  }
});

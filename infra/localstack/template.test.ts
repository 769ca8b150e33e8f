/**
 * The templates of `npm run template`, deployed to LocalStack by AWS's own command line, with the commands of the folder's
 * page except for those of images: a template without workers has none. Brokers are given, because LocalStack has no MSK.
 * LocalStack skips what it does not implement, such as groups of machines.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { ACCOUNT, LocalStack, localStackPython, REGION } from "../../scripts/lib/localstack.mjs";
import { writeFolder } from "../template/folder.ts";
import { settingsOf } from "../template/settings.ts";
import { placeholders } from "../test/support.ts";

const home = mkdtempSync(join(tmpdir(), "tidegraph-template-"));
const out = join(home, "folder");
const stack = new LocalStack({ log: join(home, "localstack.log") });
process.on("exit", () => stack.kill());

/** Returns the commands of the page's blocks, without the region, which LocalStack's environment has. */
function commands(): string {
  const page = readFileSync(join(out, "README.md"), "utf8");
  const blocks = [...page.matchAll(/^```\n(.*?)^```$/gms)].map(([, block = ""]) => block);
  return ["set -euo pipefail", ...blocks].join("\n").replace(/^export AWS_REGION=.*$/m, "");
}

before(async () => {
  const brokers = ["--brokers", "10.42.0.9:9092", "--brokers-security", "plaintext", "--brokers-copies", "1"];
  const flags = ["--workers", "0", ...brokers];
  writeFolder(settingsOf(["--out", out, "--bundle", placeholders(), ...flags]));
  await stack.start(["cloudformation", "dynamodb", "lambda", "apigateway", "s3", "stepfunctions"]);
});

after(async () => {
  await stack.stop();
  rmSync(home, { recursive: true, force: true });
});

/** Returns the resources of a stack by the beginning of their logical ids. */
async function resources(name: string): Promise<(beginning: string, type: string) => string> {
  const { StackResources: all } = await stack.aws([
    "cloudformation",
    "describe-stack-resources",
    "--stack-name",
    name,
  ]);
  return (beginning, type) => {
    const found = all.filter(
      (one: { LogicalResourceId: string; ResourceType: string }) =>
        one.LogicalResourceId.startsWith(beginning) && one.ResourceType === type,
    );
    assert.equal(found.length, 1, `${beginning} ${type}`);
    return found[0].PhysicalResourceId;
  };
}

/** Runs AWS's command line, or a script that calls it, in the folder. */
async function run(program: string, ...args: string[]): Promise<string> {
  const path = [dirname(await localStackPython()), process.env.PATH].join(delimiter);
  const env = { ...process.env, ...stack.environment, PATH: path };
  const { stdout } = await promisify(execFile)(program, args, { cwd: out, env, maxBuffer: 64 << 20 });
  return stdout;
}

async function described(name: string) {
  const { Stacks } = await stack.aws(["cloudformation", "describe-stacks", "--stack-name", name]);
  return Stacks[0];
}

test("the commands of the page deploy both stacks from the files in the bucket", async () => {
  assert.match(await run("bash", "-c", commands()), /upload: .*tidegraph-service\.template\.json/);
  assert.equal((await described("tidegraph-service")).StackStatus, "CREATE_COMPLETE");
});

test("the state was deployed twice, the second time with its protection", async () => {
  const { StackStatus, Parameters, EnableTerminationProtection } = await described("tidegraph-state");
  assert.equal(StackStatus, "UPDATE_COMPLETE");
  assert.equal(EnableTerminationProtection, true);
  // LocalStack does not change the protection of a table that exists.
  const [protect] = Parameters.filter(
    ({ ParameterKey }: { ParameterKey: string }) => ParameterKey === "Protect",
  );
  assert.equal(protect.ParameterValue, "true");
  const table = (await resources("tidegraph-state"))("StateMapTable", "AWS::DynamoDB::Table");
  assert.match(table, /^tidegraph-[0-9a-f]{8}-map$/);
});

test("functions have the code of the folder and the values that the state exports", async () => {
  const state = await resources("tidegraph-state");
  const service = await resources("tidegraph-service");
  for (const beginning of ["ServiceQueryFunction", "ServiceIngestFunction", "ServiceRebalanceFunction"]) {
    const name = service(beginning, "AWS::Lambda::Function");
    const { Configuration } = await stack.aws(["lambda", "get-function", "--function-name", name]);
    const { TIDEGRAPH_GRAPH, TIDEGRAPH_TABLE_PREFIX } = Configuration.Environment.Variables;
    assert.equal(TIDEGRAPH_GRAPH, "default");
    assert.equal(`${TIDEGRAPH_TABLE_PREFIX}map`, state("StateMapTable", "AWS::DynamoDB::Table"));
    assert.ok(Configuration.CodeSize > 0);
  }
  const intake = service("ServiceIngestIntakeFunction", "AWS::Lambda::Function");
  const { Configuration } = await stack.aws(["lambda", "get-function", "--function-name", intake]);
  // The bundled source of the function, and its map.
  assert.ok(Configuration.CodeSize > 100_000, String(Configuration.CodeSize));
});

test("a service of another name or graph is refused, because its state exports nothing", async () => {
  const bucket = `tidegraph-templates-${ACCOUNT}-${REGION}`;
  const change = (name: string, graph: string) =>
    run(
      "aws",
      ...["cloudformation", "deploy", "--no-execute-changeset", "--stack-name", `service-${name}-${graph}`],
      ...["--template-file", "tidegraph-service.template.json", "--s3-bucket", bucket],
      ...["--capabilities", "CAPABILITY_IAM", "--parameter-overrides", `Name=${name}`, `Graph=${graph}`],
      `AssetsBucket=${bucket}`,
    );
  await change("tidegraph", "default");
  for (const [name, graph] of [
    ["tidegraph", "people"],
    ["another", "default"],
  ] as const)
    await assert.rejects(change(name, graph), /ValidationError/, `${name} ${graph}`);
});

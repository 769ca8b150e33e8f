/**
 * The package `tidegraph-cdk`: an app in Python makes the same templates as the example here, and uses the constructs in a
 * stack of its own.
 *
 * `TIDEGRAPH_PYTHON_CDK` names a Python that has the CDK; `npm test -- --infra` makes one.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Duration } from "aws-cdk-lib";
import { temporaryFolder } from "../../lib/temporary.ts";
import { comparable, example, placeholders } from "../../test/support.ts";
import { packPython } from "./pack.ts";

test("an app in Python makes the same templates, and wrong settings are refused by name", async () => {
  const { TIDEGRAPH_PYTHON_CDK: python } = process.env;
  assert.ok(python, "TIDEGRAPH_PYTHON_CDK names no Python; `npm test -- --infra` makes one");
  const home = temporaryFolder("python-app");
  const wheel = await packPython(home, python);
  const installed = join(home, "installed");
  const flags = ["--quiet", "--no-deps", "--no-index", "--target", installed];
  execFileSync(python, ["-m", "pip", "install", ...flags, wheel], { stdio: "inherit" });
  const out = join(home, "out");
  const said = execFileSync(python, [join(import.meta.dirname, "app.py"), out, placeholders()], {
    encoding: "utf8",
    env: { ...process.env, PYTHONPATH: installed, JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [name, ...refusals] = said.trim().split("\n");
  assert.equal(name, "own-nodes");
  assert.deepEqual(
    refusals.map((line) => line.replace(/, such as .*/, "")),
    [
      "partitions is 3, and has to be a power of two from 1 to 32768",
      'nodes.instanceType is "m7g.large", and has to be a Graviton type with NVMe instance storage',
      'graphs[1].name is "orders", and has to be a name that is not given before',
      "secretRotation is true, and has to be a duration, or false for none",
    ],
  );
  const read = (stack: string) => JSON.parse(readFileSync(join(out, `${stack}.template.json`), "utf8"));
  const { state, service } = example({ backup: { every: Duration.days(1) } });
  for (const [stack, template] of Object.entries({ State: state, Service: service })) {
    const [theirs, ours] = [read(stack), template.toJSON()].map(
      ({ Resources: { CDKMetadata, ...rest } }) => rest,
    );
    assert.deepEqual(comparable(theirs), comparable(ours), stack);
  }
  // What the app made of its own, with the group of clients of ours.
  const own = Object.entries(read("Own").Resources as Record<string, { Type: string; Properties: object }>);
  const instance = own.find(([, { Type }]) => Type === "AWS::EC2::Instance")?.[1];
  assert.match(JSON.stringify(instance?.Properties), /ServiceWorkersClients/);
  assert.ok(
    own.every(
      ([, { Type }]) => Type !== "AWS::MSK::Cluster" && Type !== "AWS::SecretsManager::RotationSchedule",
    ),
  );
});

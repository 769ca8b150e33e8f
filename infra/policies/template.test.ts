/**
 * AWS's linter of CloudFormation (cfn-lint) reads the templates of `npm run template`: types and values of properties,
 * functions where they are not allowed, parameters, outputs.
 *
 * `TIDEGRAPH_PYTHON_POLICIES` names a Python that has it; `npm test -- --infra` makes one.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../lib/temporary.ts";
import { writeFolder } from "../template/folder.ts";
import { settingsOf } from "../template/settings.ts";
import { placeholders } from "../test/support.ts";

/** What it reports and is right as it is. */
const IGNORED = [
  // The CDK names the role of a function besides what refers to it.
  "W3005",
  // The service repeats the name of the state's bucket for people who drop files.
  "W6001",
];

/** Returns what cfn-lint says of templates, a line for each finding. */
function lint(...templates: string[]): string[] {
  const { TIDEGRAPH_PYTHON_POLICIES: python } = process.env;
  assert.ok(python, "TIDEGRAPH_PYTHON_POLICIES names no Python; `npm test -- --infra` makes one");
  const flags = [
    "--regions",
    "us-east-1",
    "eu-west-1",
    "--ignore-checks",
    ...IGNORED,
    "--format",
    "parseable",
  ];
  const { stdout, stderr, status } = spawnSync(
    join(dirname(python), "cfn-lint"),
    [...flags, "--template", ...templates],
    { encoding: "utf8" },
  );
  assert.ok(status !== null && stderr === "", stderr);
  return stdout.split("\n").filter(Boolean);
}

/** Makes a folder of templates, and returns their paths. */
function templates(...flags: string[]): string[] {
  const out = join(temporaryFolder("linted"), "folder");
  writeFolder(settingsOf(["--out", out, "--bundle", placeholders(), ...flags]));
  return readdirSync(out)
    .filter((name) => name.endsWith(".template.json"))
    .map((name) => join(out, name));
}

test("cfn-lint finds nothing in the templates, with everything that has a flag", () => {
  const all = templates("--backup", "--encryption", "--session-manager");
  assert.equal(all.length, 2);
  assert.deepEqual(lint(...all), []);
});

test("cfn-lint finds nothing in small templates without workers, with existing brokers and an existing VPC", () => {
  const given = ["--brokers", "kafka.example.com:9094", "--existing-vpc"];
  assert.deepEqual(lint(...templates("--size", "development", "--workers", "0", ...given)), []);
});

test("cfn-lint finds what is wrong", () => {
  const Parameters = { Answer: { Type: "String", Default: "maybe", AllowedValues: ["yes", "no"] } };
  const Resources = { Bucket: { Type: "AWS::S3::Bucket", Properties: { BucketNam: "a" } } };
  const wrong = join(temporaryFolder("linted"), "wrong.json");
  writeFileSync(wrong, JSON.stringify({ Parameters, Resources }));
  const found = lint(wrong).join("\n");
  for (const code of ["E2015", "E3002", "W2001"]) assert.match(found, new RegExp(code));
});

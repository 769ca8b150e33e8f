/**
 * The folder of `npm run template`: templates that CloudFormation takes without the CDK, and everything that they refer to.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { App } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import { SIZES } from "../bin/sizes.ts";
import { withParameters } from "../doctor/deployment.ts";
import { InvalidProp } from "../lib/check.ts";
import { ServiceStack, StateStack } from "../lib/index.ts";
import { temporaryFolder } from "../lib/temporary.ts";
import { makeApp, measured, writeFolder } from "../template/folder.ts";
import { HELP, settingsOf } from "../template/settings.ts";
import { Assets } from "../template/synthesizer.ts";
import { flat, placeholders, type Resource } from "./support.ts";

// biome-ignore lint/suspicious/noExplicitAny: templates have no types
type Json = any;

const bundle = placeholders();

/** Makes a folder with these flags. */
function make(...flags: string[]) {
  const out = join(temporaryFolder("templates"), "folder");
  const settings = settingsOf(["--out", out, "--bundle", bundle, ...flags]);
  return { out, settings, ...writeFolder(settings) };
}

const full = make("--nodes", "3,6", "--backup", "--encryption", "--session-manager");
const small = make("--size", "development", "--workers", "0");
const inside = make("--existing-vpc", "--brokers", "kafka.example.com:9094");
const read = (folder: { out: string }, name: string): Json =>
  JSON.parse(readFileSync(join(folder.out, `${name}.template.json`), "utf8"));
const state = read(full, "tidegraph-state");
const service = read(full, "tidegraph-service");
const ALL = [full, small, inside].flatMap((folder) =>
  Object.keys(folder.templates).map(
    (name) => [name, read(folder, name.replace(".template.json", ""))] as const,
  ),
);

/** Returns every value below a part of a template. */
function* below(node: Json): Generator<Json> {
  yield node;
  if (typeof node === "object" && node !== null) for (const one of Object.values(node)) yield* below(one);
}

test("templates name nothing of the CDK's bootstrap, and no account, region or zone", () => {
  for (const [name, template] of ALL) {
    const text = JSON.stringify(template);
    for (const word of [
      /cdk-bootstrap/,
      /cdk-[a-z0-9]{9}-/,
      /CDKMetadata/,
      /BootstrapVersion/,
      /assets-\d{12}/,
    ])
      assert.doesNotMatch(text, word, name);
    assert.doesNotMatch(text, /\b\d{12}\b/, `${name} names an account`);
    assert.doesNotMatch(text.replaceAll("us-east-1a", ""), /"[^"]*\b(us|eu|ap)-[a-z]+-\d/, name);
  }
});

test("each reference to a file or an image has it in the folder, and nothing else is there", () => {
  for (const folder of [full, small]) {
    const named = new Set<string>();
    const tags = new Set<string>();
    for (const name of Object.keys(folder.templates)) {
      for (const one of below(read(folder, name.replace(".template.json", "")).Resources)) {
        if (typeof one?.["Fn::Join"] !== "object") continue;
        const text = flat(one);
        for (const [, path = ""] of text.matchAll(/<AssetsPrefix>(assets\/[0-9a-f]{64}(?:\.zip)?)/g))
          named.add(path);
        for (const [, tag = ""] of text.matchAll(/\/<Repository>:([0-9a-f]{64})/g)) tags.add(tag);
      }
    }
    const files = readdirSync(join(folder.out, "assets")).map((name) => `assets/${name}`);
    assert.ok(files.length > 7, files.join());
    assert.deepEqual(files.toSorted(), [...named].toSorted());
    assert.deepEqual(files.toSorted(), folder.files.toSorted());
    const images = tags.size === 0 ? [] : readdirSync(join(folder.out, "images"));
    assert.deepEqual(images.toSorted(), [...tags].toSorted());
  }
  assert.equal(full.images.size, 2, "workers and backups");
  assert.equal(small.images.size, 0);
  assert.ok(
    !("Repository" in read(small, "tidegraph-service").Parameters),
    "without an image there is no repository",
  );
  assert.ok(!("AssetsBucket" in state.Parameters), "the state has no files");
});

test("functions' code is in the bucket that the parameter names", () => {
  const functions = Object.entries<Resource>(service.Resources).filter(
    ([, { Type }]) => Type === "AWS::Lambda::Function",
  );
  assert.ok(functions.length > 8);
  for (const [id, { Properties }] of functions) {
    const { S3Bucket, S3Key } = Properties.Code;
    assert.deepEqual(S3Bucket, { Ref: "AssetsBucket" }, id);
    assert.match(flat(S3Key), /^<AssetsPrefix>assets\/[0-9a-f]{64}\.zip$/, id);
  }
});

/** Returns the files of an archive, with their modes. */
function entries(archive: Buffer): [name: string, mode: number][] {
  const found: [string, number][] = [];
  // The headers of the central directory, each of 46 bytes and a name.
  for (let at = archive.indexOf("PK\u0001\u0002"); at >= 0; at = archive.indexOf("PK\u0001\u0002", at + 46)) {
    const name = archive.toString("utf8", at + 46, at + 46 + archive.readUInt16LE(at + 28));
    found.push([name, archive.readUInt32LE(at + 38) >>> 16]);
  }
  return found;
}

test("programs in archives may be executed, and equal files make equal archives", () => {
  const archives = full.files.filter((path) => path.endsWith(".zip"));
  const all = archives.map((path) => entries(readFileSync(join(full.out, path))));
  const programs = all.flat().filter(([name]) => name === "bootstrap");
  assert.equal(programs.length, 3, "query, ingest, rebalance");
  for (const [, mode] of programs) assert.equal(mode, 0o100755);
  const sources = all.flat().filter(([name]) => name === "index.js");
  assert.ok(sources.length >= 6, String(sources.length));
  for (const [, mode] of sources) assert.equal(mode, 0o100644);
  // What both folders have was made twice.
  const hash = (folder: { out: string }, path: string) =>
    createHash("sha256")
      .update(readFileSync(join(folder.out, path)))
      .digest("hex");
  assert.ok(small.files.length > 7);
  for (const path of small.files) assert.equal(hash(small, path), hash(full, path), path);
});

test("each parameter says what it is and which values it takes, and takes its default", () => {
  for (const [name, template] of ALL) {
    for (const [id, one] of Object.entries<Json>(template.Parameters)) {
      const what = `${name}: ${id}`;
      assert.ok(one.Description?.endsWith("."), what);
      // CloudFormation and its console know the values of these types.
      if (one.Type.startsWith("AWS::")) continue;
      assert.ok(one.AllowedPattern ?? one.AllowedValues ?? one.MinValue, what);
      if (one.AllowedPattern) assert.ok(one.ConstraintDescription, what);
      // The bucket is the one thing that everybody has to say.
      if (one.Default === undefined) assert.equal(id, "AssetsBucket", what);
      else if (one.AllowedPattern) assert.match(one.Default, new RegExp(one.AllowedPattern), what);
      else if (one.AllowedValues) assert.ok(one.AllowedValues.includes(one.Default), what);
      else assert.ok(one.MinValue <= one.Default && one.Default <= one.MaxValue, what);
    }
    const { ParameterGroups } = template.Metadata["AWS::CloudFormation::Interface"];
    const shown = ParameterGroups.flatMap(({ Parameters }: { Parameters: string[] }) => Parameters);
    assert.deepEqual(shown.toSorted(), Object.keys(template.Parameters).toSorted(), name);
  }
});

test("patterns refuse what constructs refuse", () => {
  const pattern = (of: Json, id: string) => new RegExp(of.Parameters[id].AllowedPattern);
  for (const name of ["A", "a", "9lives", "ends-", "my_graph"])
    assert.doesNotMatch(name, pattern(state, "Name"));
  for (const graph of ["", "a b", "a/b", "-a"]) assert.doesNotMatch(graph, pattern(service, "Graph"));
  for (const type of ["m7g.large", "i4g", "i4i.large"])
    assert.doesNotMatch(type, pattern(service, "NodeType"));
  for (const type of ["i4g.large", "r8gd.16xlarge"]) assert.match(type, pattern(service, "NodeType"));
  for (const path of ["a", "/a/", "a//", "a b/"]) assert.doesNotMatch(path, pattern(service, "AssetsPrefix"));
  for (const path of ["", "a/", "tidegraph/0.1.0/"]) assert.match(path, pattern(service, "AssetsPrefix"));
  for (const zone of ["", "us-east-1a", "ap-southeast-2c", "us-gov-west-1a"])
    assert.match(zone, pattern(state, "FirstZone"));
  for (const zone of ["1a", "us-east", "a zone"]) assert.doesNotMatch(zone, pattern(state, "FirstZone"));
});

test("the service imports what the state exports, by the name of the deployment and of the graph", () => {
  const exported = Object.values<Json>(state.Outputs).flatMap(({ Export }) =>
    Export ? [flat(Export.Name)] : [],
  );
  for (const name of exported) assert.match(name, /^\$\{Name\}:\$\{Graph\}:Exports\w+$/);
  for (const name of ["tidegraph-service", "tidegraph-service-6-nodes"]) {
    const imported = [...below(read(full, name))].flatMap((one) =>
      one?.["Fn::ImportValue"] === undefined ? [] : [flat(one["Fn::ImportValue"])],
    );
    assert.ok(imported.length > 50);
    assert.deepEqual([...new Set(imported)].toSorted(), exported.toSorted());
  }
  for (const id of ["Name", "Graph"]) assert.deepEqual(service.Parameters[id], state.Parameters[id]);
});

test("a network that exists is what parameters name, and gets no endpoints", () => {
  const [state, service] = ["tidegraph-state", "tidegraph-service"].map((name) => read(inside, name));
  const text = JSON.stringify([state.Resources, service.Resources]);
  assert.doesNotMatch(text, /AWS::EC2::(VPC|Subnet|RouteTable|VPCEndpoint)"/);
  assert.doesNotMatch(text, /(First|Second|Third)Zone/, "no resource names a zone");
  const exported = Object.values<Json>(state.Outputs).flatMap(({ Value, Export }) =>
    Export ? [flat(Value)] : [],
  );
  for (const id of ["VpcId", "FirstSubnet", "SecondSubnet", "ThirdSubnet"])
    assert.ok(exported.includes(`<${id}>`), id);
  assert.match(readFileSync(join(inside.out, "README.md"), "utf8"), /VpcId=vpc-… FirstSubnet=/);
});

test("no role or policy has a name, so that CAPABILITY_IAM is enough", () => {
  for (const [name, template] of ALL) {
    for (const [id, { Type, Properties }] of Object.entries<Resource>(template.Resources)) {
      const names = ["RoleName", "ManagedPolicyName", "InstanceProfileName", "GroupName", "UserName"];
      if (Type.startsWith("AWS::IAM::"))
        for (const one of names) assert.ok(!(one in Properties), `${name}: ${id} has ${one}`);
    }
    assert.equal(template.Transform, undefined, "nothing that needs CAPABILITY_AUTO_EXPAND");
  }
  assert.doesNotMatch(JSON.stringify(state.Resources), /AWS::IAM::/, "the state needs no capability");
  const page = readFileSync(join(full.out, "README.md"), "utf8");
  for (const [command] of page.matchAll(/^aws cloudformation deploy [^`]*?[^\\]\n/gm))
    assert.equal(command.includes("CAPABILITY_IAM"), command.includes("tidegraph-service"), command);
});

test("each number of nodes has a template of its own, and what follows from it", () => {
  for (const [name, nodes] of [
    ["tidegraph-service", "3"],
    ["tidegraph-service-6-nodes", "6"],
  ] as const) {
    const all = Object.values<Resource>(read(full, name).Resources);
    const group = all.find(({ Type }) => Type === "AWS::AutoScaling::AutoScalingGroup");
    assert.deepEqual([group?.Properties.MinSize, group?.Properties.MaxSize], [nodes, "316"]);
    const variables = all.flatMap(
      ({ Properties }) => Properties.Environment?.Variables?.TIDEGRAPH_NODES ?? [],
    );
    assert.deepEqual(variables, [nodes]);
  }
});

/**
 * Returns resources with the example's values for parameters, and with equal names for places that differ: those of assets,
 * and those of exports. Versions of functions and of the API follow from them.
 */
function compared(template: Json): Record<string, unknown> {
  const values: Record<string, string> = {
    Name: "tidegraph",
    Graph: "default",
    ...{ Protect: "true", BrokerType: "kafka.m7g.large" },
    ...{ NodeType: "i4g.xlarge", Partitions: "64", WorkerCount: "2" },
  };
  const plain = (node: Json): Json => {
    if (typeof node !== "object" || node === null) return String(node);
    if (Array.isArray(node)) return node.map(plain);
    // No zone is given.
    if ("Fn::If" in node) return plain(node["Fn::If"][2]);
    if ("Fn::ImportValue" in node) return `<${flat(node["Fn::ImportValue"]).replace(/^.*:/, "")}>`;
    const inner = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, plain(value)]));
    const isText = "Fn::Join" in inner || "Fn::Sub" in inner || "Ref" in inner;
    return isText ? flat(inner).replaceAll(/<(\w+)>/g, (all, id) => values[id] ?? all) : inner;
  };
  const resources = Object.entries<Json>(template.Resources).map(([id, { Metadata, ...resource }]) => [
    id,
    plain(resource),
  ]);
  const text = JSON.stringify(Object.fromEntries(resources))
    .replaceAll(/\$\{(AWS::\w+)\}/g, "<$1>")
    .replaceAll("cdk-hnb659fds-assets-<AWS::AccountId>-<AWS::Region>", "<AssetsBucket>")
    .replaceAll("cdk-hnb659fds-container-assets-<AWS::AccountId>-<AWS::Region>", "<Repository>")
    .replaceAll("<AssetsPrefix>assets/", "")
    .replaceAll(/([0-9a-f]{64})\.\1/g, "$1")
    .replaceAll(/((?:CurrentVersion|ApiDeployment)[0-9A-F]{8})[0-9a-f]{32}/g, "$1");
  return JSON.parse(text);
}

test("the resources are those of the example", () => {
  const app = new App({ outdir: temporaryFolder("example"), analyticsReporting: false });
  const { production: size } = SIZES;
  const { state: made } = new StateStack(app, "State", {
    stackName: "tidegraph-state",
    name: "tidegraph",
    log: size.log,
  });
  new ServiceStack(app, "Service", {
    stackName: "tidegraph-service",
    state: made,
    bundle,
    ...size,
    nodes: { ...size.nodes, sessionManager: true },
    backup: {},
    encryption: {},
  });
  const assembly = app.synth();
  for (const [ours, theirs] of [
    [state, "State"],
    [service, "Service"],
  ] as const) {
    const example = compared(assembly.getStackByName(`tidegraph-${theirs.toLowerCase()}`).template);
    const found = compared(ours);
    delete example.CDKMetadata;
    assert.deepEqual(Object.keys(found).toSorted(), Object.keys(example).toSorted());
    for (const [id, resource] of Object.entries(found)) assert.deepEqual(resource, example[id], id);
  }
});

test("cdk-nag reports nothing that is not explained", () => {
  const app = makeApp(full.settings, 3, new Assets());
  app.synth();
  assert.deepEqual(new AwsSolutionsChecks(app).validateScope(app).violations, []);
});

test("the page has a command for each step, with the names in the folder", () => {
  const page = readFileSync(join(full.out, "README.md"), "utf8");
  for (const name of ["tidegraph-state", "tidegraph-service"])
    assert.match(page, new RegExp(`aws cloudformation deploy .*--template-file ${name}\\.template\\.json`));
  for (const tag of full.images.keys()) {
    assert.match(page, new RegExp(`images/${tag}\n`));
    assert.match(page, new RegExp(`docker push \\$IMAGES:${tag}\n`));
  }
  assert.match(page, /tidegraph-service-6-nodes\.template\.json/);
  const parameters = [...page.matchAll(/--parameter-overrides (.*)$/gm)].flatMap(([, all = ""]) =>
    all.split(" ").map((one) => one.split("=")[0] ?? ""),
  );
  assert.ok(parameters.length > 5);
  for (const id of parameters) assert.ok(id in state.Parameters || id in service.Parameters, id);
  assert.doesNotMatch(readFileSync(join(small.out, "README.md"), "utf8"), /docker|Repository|images/);
});

test("flags are checked, and sizes are CloudFormation's", () => {
  const refused = (flag: string, ...flags: string[]) =>
    assert.throws(
      () => settingsOf(flags),
      (error) => error instanceof InvalidProp && error.prop === flag,
      flags.join(" "),
    );
  refused("--size", "--size", "large");
  for (const nodes of ["0", "3,3", "three", "301", "3,"]) refused("--nodes", "--nodes", nodes);
  for (const workers of ["-1", "1.5", ""]) refused("--workers", `--workers=${workers}`);
  refused("--cidr", "--existing-vpc", "--cidr", "10.0.0.0/16");
  refused("--brokers-copies", "--brokers-copies", "1");
  refused("--patience", "--patience", "4000");
  assert.throws(() => settingsOf(["--nodes", "x"]), /--nodes is "x"/);
  assert.throws(() => settingsOf(["--instances", "3"]), /Unknown option/);
  // Constructs check the others.
  const wrong = settingsOf(["--bundle", bundle, "--cidr", "10.0.0.0/8"]);
  assert.throws(() => makeApp(wrong, 3, new Assets()), /network\.cidr is "10\.0\.0\.0\/8"/);
  const large = JSON.stringify({ Resources: { One: "x".repeat(1_000_001) } });
  assert.throws(
    () => measured("large.template.json", large),
    /has 1000025 bytes, and CloudFormation takes 1000000/,
  );
  const many = Object.fromEntries(Array.from({ length: 501 }, (_, n) => [`R${n}`, {}]));
  assert.throws(() => measured("many", JSON.stringify({ Resources: many })), /has 501 Resources/);
});

test("docs/deploy.md has each parameter and each flag, with the defaults", () => {
  const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "deploy.md"), "utf8");
  const section = page.split("### Without CDK\n")[1]?.split("\n### ")[0] ?? "";
  const rows = [...section.matchAll(/^\| (`.*?) \| (\w+) \| (.*?) \| /gm)];
  const told = rows.flatMap(([, ids = "", stack, value = ""]) =>
    [...ids.matchAll(/`(\w+)`/g)].map(([, id = ""]) => [id, { stack, value }] as const),
  );
  const all = { ...state.Parameters, ...service.Parameters };
  const ours = Object.keys(all).filter((id) => !id.startsWith("Ssm"));
  assert.deepEqual(told.map(([id]) => id).toSorted(), ours.toSorted());
  for (const [id, { stack, value }] of told) {
    const where = [state, service].map(({ Parameters }) => id in Parameters);
    assert.deepEqual(where, [stack !== "service", stack !== "state"], id);
    if (value.startsWith("`") || /^\d+$/.test(value))
      assert.equal(value.replaceAll("`", ""), String(all[id].Default), id);
  }
  const flags = [...section.matchAll(/`(--[a-z-]+)`/g)].map(([, flag = ""]) => flag);
  const known = [...HELP.matchAll(/--[a-z-]+/g)].map(([flag]) => flag);
  // How an existing Kafka is reached is told with it.
  const others = [
    "--",
    "--brokers-security",
    "--brokers-copies",
    "--query-architecture",
    "--out",
    "--bundle",
  ];
  for (const flag of known) assert.ok(flags.includes(flag) || others.includes(flag), flag);
  const ofOthers = ["--help", "--capabilities", "--s3-bucket", "--name", "--stack"];
  for (const flag of flags) assert.ok(known.includes(flag) || ofOthers.includes(flag), flag);
});

test("a folder with other files is refused and left alone", () => {
  const out = temporaryFolder("others");
  writeFileSync(join(out, "theirs"), "a file");
  const settings = settingsOf(["--out", out, "--bundle", bundle]);
  assert.throws(() => writeFolder(settings), /--out is ".*", and has to be a new or empty folder/);
  assert.throws(() => writeFolder({ ...settings, out: join(out, "theirs") }), /--out is/);
  assert.deepEqual(readdirSync(out), ["theirs"]);
  // A mistake leaves what an earlier run wrote.
  assert.throws(() => writeFolder({ ...full.settings, cidr: "10.0.0.0/8" }), /network\.cidr/);
  assert.ok(readdirSync(full.out).includes("tidegraph-state.template.json"));
});

test("the doctor reads parameters of a stack as the values that it was given", () => {
  const given = new Map([
    ["Name", "people"],
    ["NodeType", "i8g.large"],
  ]);
  const template = Object.values<Resource>(service.Resources).find(
    ({ Type }) => Type === "AWS::EC2::LaunchTemplate",
  );
  const found = withParameters(template, given)?.Properties.LaunchTemplateData;
  assert.equal(found.InstanceType, "i8g.large");
  // What is no parameter stays a reference.
  assert.deepEqual(withParameters({ Ref: "AWS::Region" }, given), { Ref: "AWS::Region" });
});

/**
 * The commands of docs/first-day.md, which somebody copies one after the other: bash can read them, the programs have the
 * flags, the templates have the outputs, resources, alarms and log groups, and the changes of the example can be deployed.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readArguments as doctorArguments } from "../doctor/arguments.ts";
import { AREAS, CHECKS } from "../doctor/checks/index.ts";
import { temporaryFolder } from "../lib/temporary.ts";
import { exampleTemplates } from "../moto/templates.ts";
import { readArguments as removeArguments } from "../remove/arguments.ts";
import { HELP as TEMPLATE_HELP } from "../template/settings.ts";
import { flat, hasFlag } from "./support.ts";

const INFRA = join(import.meta.dirname, "..");
const ROOT = join(INFRA, "..");
const DOCS = join(ROOT, "docs");
const PAGE = readFileSync(join(DOCS, "first-day.md"), "utf8");

/** Returns the fenced blocks of a page, with their indentation taken away. */
function blocks(page: string): string[] {
  return [...page.matchAll(/^( *)```\w*\n([\s\S]*?)\n\1```$/gm)].map(([, indent = "", text = ""]) =>
    text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  );
}

/** Returns the commands of a block: what begins with `$ `, with the lines that belong to it, and no output. */
function commandsOf(block: string): string[] {
  const commands: string[] = [];
  let isOpen = false;
  for (const line of block.split("\n")) {
    if (line.startsWith("$ ")) commands.push(line.slice(2));
    else if (isOpen) commands.push(`${commands.pop()}\n${line}`);
    const last = commands.at(-1) ?? "";
    isOpen = last.endsWith("\\") || (last.includes("<<'END'") && !/\nEND$/.test(last));
  }
  return commands;
}

/** Returns a block of the functions that all commands use. */
const FUNCTIONS = blocks(PAGE).find((block) => block.startsWith("export AWS_REGION")) ?? "";
const DEFINED = [...PAGE.matchAll(/^(?:\$ )?(\w+)\(\) \{/gm)].map(([, name = ""]) => name);
/** Programs that are not ours. */
const PROGRAMS = [
  "aws",
  "bash",
  "cat",
  "chmod",
  "curl",
  "docker",
  "echo",
  "env",
  "eval",
  "export",
  "git",
  "mkdir",
];
PROGRAMS.push("npm", "printf", "python3", "rm", "sed", "session-manager-plugin", "sudo", "until", "for", ".");

const INLINE = PAGE.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/`([^`\n]+)`/g);
const QUOTED = [...INLINE].map(([, text = ""]) => text);
/** The word with which a command begins, after variables that are set for it. */
const first = (command: string): string => /^(?:[A-Za-z_]+=\S* )*([\w.-]+)(?= |$)/.exec(command)?.[1] ?? "";
const INLINE_COMMANDS = QUOTED.filter((text) => {
  const word = first(text);
  return (
    (PROGRAMS.includes(word) || DEFINED.includes(word)) && (text.includes(" ") || DEFINED.includes(text))
  );
});
const COMMANDS = [...blocks(PAGE).flatMap(commandsOf), ...INLINE_COMMANDS];
const CODE = [FUNCTIONS, ...COMMANDS].join("\n");

/** Returns what a pattern finds in the commands, without what was found before. */
const found = (pattern: RegExp): string[][] => {
  const all = [...CODE.matchAll(pattern)].map(([, ...groups]) => groups.map((group) => group ?? ""));
  return [...new Map(all.map((groups) => [groups.join(" "), groups])).values()];
};

/** Makes a folder with the example, after the page's changes up to the first one that `isEnd` names. */
function changed(isEnd: (command: string) => boolean): { folder: string; text: string } {
  const home = temporaryFolder("first-day");
  mkdirSync(join(home, "infra", "bin"), { recursive: true });
  for (const name of ["example.ts", "sizes.ts"])
    copyFileSync(join(INFRA, "bin", name), join(home, "infra", "bin", name));
  copyFileSync(join(INFRA, "package.json"), join(home, "infra", "package.json"));
  symlinkSync(join(INFRA, "lib"), join(home, "infra", "lib"));
  symlinkSync(join(ROOT, "node_modules"), join(home, "node_modules"));
  const path = join(home, "infra", "bin", "example.ts");
  const image = `public.ecr.aws/cloudwatch-agent/cloudwatch-agent@sha256:${"0".repeat(64)}`;
  const others = `docker() { echo ${image}; }\ngit() { cp ${join(INFRA, "bin", "example.ts")} ${path}; }\n`;
  const before = `${others}agent=${image}\n`;
  const changes = blocks(PAGE)
    .flatMap(commandsOf)
    .filter((command) => command.includes("infra/bin/example.ts"));
  assert.ok(changes.length >= 8, `${changes.length} changes`);
  for (const command of changes) {
    const text = readFileSync(path, "utf8");
    execFileSync("bash", ["-c", before + command], { cwd: home });
    assert.notEqual(readFileSync(path, "utf8"), text, `this changes nothing:\n${command}`);
    if (isEnd(command)) break;
  }
  return { folder: join(home, "infra"), text: readFileSync(path, "utf8") };
}

const CONTEXT = { graphs: "orders", backup: "true", encryption: "required", sessionManager: "true" };
const END = changed(() => false);
const TEMPLATES = exampleTemplates({ name: "tidegraph", ...CONTEXT }, END.folder);

test("no command of a page is cut by the end of a line within sh -c", () => {
  let count = 0;
  for (const name of readdirSync(DOCS).filter((file) => file.endsWith(".md"))) {
    for (const block of blocks(readFileSync(join(DOCS, name), "utf8"))) {
      for (const [whole, inner = ""] of block.matchAll(/sh -c '([^']*)'/g)) {
        count += 1;
        assert.doesNotMatch(inner, /[^\\]\n/, `${name}: the shell runs the first line alone:\n${whole}`);
      }
    }
  }
  assert.ok(count >= 3, `${count} commands were found`);
});

test("bash reads all commands, and each begins with a program or a function of the page", () => {
  assert.ok(COMMANDS.length > 120, `${COMMANDS.length} commands`);
  assert.ok(DEFINED.length > 15, DEFINED.join());
  for (const part of [FUNCTIONS, ...COMMANDS]) {
    const one = part.replaceAll("&&", "").trim();
    execFileSync("bash", ["-n"], { input: part.endsWith("\nEND") ? `${part}\n` : part });
    if (part === FUNCTIONS || /^\w+(\(\) |=["$])/.test(one)) continue;
    assert.ok(
      [...PROGRAMS, ...DEFINED].includes(first(one).replace(/^\.\/.*/, "")) ||
        one.startsWith("(") ||
        one.startsWith(". "),
      one,
    );
  }
});

test("outputs and resources that commands name exist once", () => {
  const outputs = found(/output (state|service) (\w+)/g);
  assert.ok(outputs.length > 10);
  for (const [stack, name] of outputs) {
    const of = stack === "state" ? TEMPLATES.State : TEMPLATES.Service;
    const keys = Object.keys(of.Outputs ?? {});
    const here = keys.filter((key) => key.startsWith(`State${name}`) || key.startsWith(`Service${name}`));
    assert.equal(here.length, 1, `output ${stack} ${name}: ${here.join(", ") || keys.join(", ")}`);
  }
  const parts = [
    ...found(/resource (state|service) ([A-Za-z0-9]+::[A-Za-z]+) ([A-Z][a-z]\w+)/g),
    ...found(/\balarm ([A-Z][a-z]\w+)/g).map(([part = ""]) => ["service", "CloudWatch::Alarm", part]),
    ...found(/\b(?:machine|last) ([A-Z][a-z]\w+)/g).map(([part = ""]) => [
      "service",
      "StepFunctions::StateMachine",
      part,
    ]),
  ];
  assert.ok(parts.length > 15);
  for (const [stack, type, part = ""] of parts) {
    const { Resources } = stack === "state" ? TEMPLATES.State : TEMPLATES.Service;
    const ids = Object.keys(Resources).filter((id) => Resources[id]?.Type === `AWS::${type}`);
    const here = ids.filter((id) => id.includes(part));
    assert.equal(here.length, 1, `resource ${stack} ${type} ${part}: ${here.join(", ") || ids.join(", ")}`);
  }
});

test("log groups, alarms and checks that it names exist", () => {
  const resources = [
    ...Object.values(TEMPLATES.Service.Resources),
    ...Object.values(TEMPLATES.State.Resources),
  ];
  const groups = resources
    .filter(({ Type }) => Type === "AWS::Logs::LogGroup")
    .map(({ Properties }) => flat(Properties.LogGroupName).replaceAll(/\{.*?\}\}?/g, ""));
  const named = found(/(\/(?:tidegraph|aws\/vendedlogs\/states\/tidegraph))\/(?:\$NAME|copy)\/([a-z-]+)/g);
  assert.ok(named.length > 4);
  for (const [prefix, part] of named) {
    const begin = `${prefix}/tidegraph/${part}`;
    assert.ok(
      groups.some((name) => name === begin || name.startsWith(`${begin}-`)),
      `${begin}: ${groups.join(", ")}`,
    );
  }
  const alarms = Object.entries(TEMPLATES.Service.Resources)
    .filter(([, { Type }]) => Type === "AWS::CloudWatch::Alarm")
    .map(([id]) => id);
  // With traces there is no other alarm, and these need props that the example does not have.
  const told = [...PAGE.matchAll(/alarm \[?`?([A-Z][A-Za-z]+)/g)].map(([, name = ""]) => name);
  assert.ok(told.length > 6, told.join());
  for (const name of told)
    assert.ok(
      alarms.some((id) => id.includes(`Watch${name}`)),
      name,
    );
  const checks = QUOTED.filter((text) => AREAS.includes(/^([a-z]+)\.[a-z]+$/.exec(text)?.[1] ?? ""));
  assert.ok(checks.length > 2, checks.join());
  // A prop that is named like a check.
  for (const id of checks.filter((one) => one !== "nodes.most"))
    assert.ok(
      CHECKS.some((check) => check.id === id),
      id,
    );
});

/** Returns the names in a cell of the page's tables: those of a row, by what it looks at. */
function namesOf(row: string, cell: number): string[] {
  const line = PAGE.split("\n").find((one) => one.startsWith(`| ${row} |`)) ?? assert.fail(row);
  return [...(line.split(" | ")[cell] ?? "").matchAll(/`(\w+)`/g)].map(([, name = ""]) => name);
}

test("fields of the access log, operations of an alarm and the time of workers that leave are those of the template", () => {
  const all = Object.values(TEMPLATES.Service.Resources);
  const one = (type: string) =>
    all.find(({ Type }) => Type === `AWS::${type}`)?.Properties ?? assert.fail(type);
  const fields = Object.keys(JSON.parse(one("ApiGateway::Stage").AccessLogSetting.Format));
  assert.deepEqual(namesOf("the API's access log", 2).slice(0, fields.length), fields);
  const [, throttled] =
    Object.entries(TEMPLATES.Service.Resources).find(([id]) => id.includes("MapThrottled")) ?? [];
  const operations = throttled?.Properties.Metrics.flatMap(
    ({ MetricStat }: { MetricStat?: { Metric: { Dimensions: { Name: string; Value: unknown }[] } } }) =>
      MetricStat?.Metric.Dimensions.filter(({ Name }) => Name === "Operation").map(({ Value }) => Value) ??
      [],
  );
  assert.deepEqual(namesOf("the metric behind it", 2), operations);
  const attributes: { Key: string; Value: string }[] = one(
    "ElasticLoadBalancingV2::TargetGroup",
  ).TargetGroupAttributes;
  const delay = attributes.find(({ Key }) => Key === "deregistration_delay.timeout_seconds")?.Value;
  assert.match(PAGE, new RegExp(`\\| replace the workers \\|.* \`draining\` for ${delay} s`));
  assert.match(readFileSync(join(DOCS, "upgrade.md"), "utf8"), new RegExp(`gives it ${delay} s:`));
});

test("our programs have the flags", () => {
  const words = (text: string): string[] =>
    text
      .replaceAll(/\$NAME(-broken)?/g, "tidegraph")
      .trim()
      .split(/\s+/)
      .filter(Boolean);
  const doctors = [
    ...found(/^doctor( --[^\n;)]*)?$/gm).map(([flags = ""]) => ["--name", "tidegraph", ...words(flags)]),
    ...found(/npm run doctor --( [^\n"$`]*)$/gm).map(([flags = ""]) => words(flags)),
  ];
  assert.ok(doctors.length > 3);
  for (const flags of doctors) doctorArguments(flags);
  const removes = found(/npm run remove --workspace infra --([^\n&`]*)/g);
  assert.ok(removes.length > 3);
  for (const [flags = ""] of removes) removeArguments(words(flags));
  const scripts = (path: string) => Object.keys(JSON.parse(readFileSync(path, "utf8")).scripts);
  const known = [...scripts(join(ROOT, "package.json")), ...scripts(join(INFRA, "package.json"))];
  for (const [name = ""] of found(/npm run ([\w:]+)/g)) assert.ok(known.includes(name), name);
  const bundle = readFileSync(join(ROOT, "scripts", "bundle.mjs"), "utf8");
  const [, options = ""] = /parseArgs\(\{ options: \{(.*)\} \}\)/.exec(bundle) ?? [];
  for (const [flags = ""] of found(/npm run bundle --([^\n`]*)/g))
    for (const [, flag] of flags.matchAll(/--(\w+)/g)) assert.ok(options.includes(`${flag}: `), flag);
  for (const flag of ["--backup", "--encryption", "--session-manager"]) {
    assert.ok(QUOTED.includes(flag), flag);
    assert.ok(TEMPLATE_HELP.includes(flag), flag);
  }
});

/** Returns the texts of Rust sources below a folder. */
function sources(...folder: string[]): string {
  const path = join(ROOT, ...folder);
  const names = readdirSync(path, { recursive: true, encoding: "utf8" });
  const rust = names.filter((name) => name.endsWith(".rs"));
  return rust.map((name) => readFileSync(join(path, name), "utf8")).join("\n");
}

test("the programs of the fleet have the commands and flags", () => {
  const programs = [
    {
      pattern: /\btidegraph-node ([a-z-]+)([^\n'`]*(?:\\\n[^\n'`]*)*)/g,
      source: sources("services", "storage", "src"),
    },
    {
      pattern: /\bfleet (split|plan|[a-z]+ --)([^\n|`]*)/g,
      source: sources("services", "query", "src", "cli"),
    },
  ];
  for (const { pattern, source } of programs) {
    const calls = found(pattern);
    assert.ok(calls.length > 0, String(pattern));
    for (const [command = "", flags = ""] of calls) {
      const variant = command.replaceAll(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase());
      assert.match(source, new RegExp(`^    ${variant}\\(`, "m"), command);
      for (const [flag] of flags.matchAll(/--[a-z-]+/g))
        assert.ok(hasFlag(source, flag), `${command} ${flag}`);
    }
  }
});

test("values of the context are those that the example reads", () => {
  const text = readFileSync(join(INFRA, "bin", "example.ts"), "utf8");
  const values = found(/-c (\w+)=/g);
  assert.ok(values.length > 8);
  for (const [name] of values) assert.match(text, new RegExp(`(context|isOn)\\("${name}"`), name);
});

test("the changes of the example do what the page says, and are taken back", () => {
  const wrong = changed((command) => command.includes("kafkaVersion"));
  assert.match(wrong.text, /log: addresses === "" \? \{ \.\.\.size\.log, kafkaVersion: "0\.0\.0" \} : /);
  const of = ({ Service }: typeof TEMPLATES, type: string) =>
    Object.values(Service.Resources).filter(({ Type }) => Type === type);
  const roles = of(TEMPLATES, "AWS::IAM::Role").map(({ Properties }) => Properties.RoleName);
  for (const name of ["tidegraph-Dropper", "tidegraph-Operator"]) assert.ok(roles.includes(name), name);
  const reserved = of(TEMPLATES, "AWS::Lambda::Function").map(
    ({ Properties }) => Properties.ReservedConcurrentExecutions,
  );
  assert.deepEqual(reserved.filter(Boolean).toSorted(), [10, 64]);
  const [{ Properties: template } = assert.fail()] = of(TEMPLATES, "AWS::EC2::LaunchTemplate");
  assert.match(flat(template.LaunchTemplateData.UserData["Fn::Base64"]), /^TIDEGRAPH_RESTORE_READS=8$/m);
  assert.equal(of(TEMPLATES, "AWS::XRay::SamplingRule").length, 1);
  assert.equal(of(TEMPLATES, "AWS::S3::Bucket").length, 1, "the bucket of backups");
  // With a bucket and a key of another account.
  const { folder, text } = changed((command) => command.includes('"Safe"'));
  const key = "arn:aws:kms:eu-west-1:222233334444:key/k";
  writeFileSync(
    join(folder, "bin", "example.ts"),
    text.replace('"KEY"', `"${key}"`).replace('"BUCKET"', '"safe"'),
  );
  const safe = exampleTemplates({ name: "copy", backup: "true", apiGatewayAccountRole: "false" }, folder);
  assert.equal(of(safe, "AWS::S3::Bucket").length, 0);
  assert.equal(of(safe, "AWS::ApiGateway::Account").length, 0);
  assert.ok(JSON.stringify(of(safe, "AWS::IAM::Policy")).includes(key));
  assert.doesNotMatch(END.text, /Safe/);
});

test("the next patch has its own number", () => {
  const command = COMMANDS.find((one) => one.includes("Cargo.toml && cargo")) ?? "";
  const folder = temporaryFolder("patch");
  copyFileSync(join(ROOT, "Cargo.toml"), join(folder, "Cargo.toml"));
  execFileSync("bash", ["-c", `cargo() { echo "$@"; }\n${command}`], { cwd: folder });
  const text = readFileSync(join(folder, "Cargo.toml"), "utf8");
  assert.match(text, /^\[workspace\.package\]\nversion = "0\.1\.1"$/m);
  assert.equal(text.match(/0\.1\.1/g)?.length, 1);
});

/** The pages that `tidegraph-doctor` names exist, docs/doctor.md has each check, and its smaller parts. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { SIZES } from "../bin/sizes.ts";
import { backupsOf, judged, workersOf } from "../doctor/checks/account.ts";
import { section } from "../doctor/checks/alarms.ts";
import { behindCheckpoints } from "../doctor/checks/buckets.ts";
import { revertDrift } from "../doctor/checks/by-hand.ts";
import { judgedEndpoint } from "../doctor/checks/endpoints.ts";
import { CHECKS } from "../doctor/checks/index.ts";
import { together } from "../doctor/checks/releases.ts";
import { judgedIssue } from "../doctor/checks/secrets.ts";
import type { Report } from "../doctor/doctor.ts";
import { CallFailed, explained, span } from "../doctor/finding.ts";
import { applied, MapItems } from "../doctor/map-items.ts";
import { policy } from "../doctor/policy.ts";
import { asText } from "../doctor/report.ts";
import { deployed } from "./deployed.ts";
import { exampleWithEverything } from "./options.ts";
import { example, ofType } from "./support.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), "utf8");

test("docs/doctor.md has a line for each check, and none for another", () => {
  const told = [...read("docs", "doctor.md").matchAll(/^\| `([a-z]+\.[a-z]+)` \|/gm)].map(([, id]) => id);
  // The machine's are those of `tidegraph-node doctor`.
  const folder = join(ROOT, "services", "storage", "src", "doctor");
  const machine = readdirSync(folder).flatMap((name) =>
    [
      ...readFileSync(join(folder, name), "utf8").matchAll(/^const [A-Z]+: &str = "(machine\.[a-z]+)";/gm),
    ].map(([, id]) => id),
  );
  assert.ok(machine.length >= 6);
  const checks = [...CHECKS.map(({ id }) => id), "caller.permissions", ...machine];
  assert.deepEqual(told.toSorted(), checks.toSorted());
  assert.equal(new Set(checks).size, checks.length, "identifiers are unique");
});

test("the pages and sections that remedies name exist", () => {
  const folder = join(ROOT, "infra", "doctor", "checks");
  const named = readdirSync(folder).flatMap((name) => [
    ...readFileSync(join(folder, name), "utf8").matchAll(/docs\/([a-z-]+)\.md(?:#([a-z0-9_-]+))?/g),
  ]);
  assert.ok(named.length > 10);
  for (const [whole, page = "", anchor] of named) {
    assert.ok(existsSync(join(ROOT, "docs", `${page}.md`)), whole);
    if (anchor === undefined) continue;
    const headings = [...read("docs", `${page}.md`).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replaceAll(/[^a-z0-9 _-]/g, "")
        .replaceAll(" ", "-"),
    );
    assert.ok(headings.includes(anchor), whole);
  }
});

test("the command line of the CDK has the flag that remedies name", () => {
  const remedy = revertDrift("tidegraph-service");
  const [, flag = ""] = /the stack tidegraph-service with cdk deploy --([a-z-]+)/.exec(remedy) ?? [];
  const cli = dirname(createRequire(import.meta.url).resolve("aws-cdk/package.json"));
  const { commands } = JSON.parse(readFileSync(join(cli, "lib", "cli", "cli-type-registry.json"), "utf8"));
  assert.ok(flag in commands.deploy.options, flag);
  const told = read("docs", "doctor.md");
  const [, section = ""] = /^## What was changed by hand\n(.*?)^## /ms.exec(told) ?? [];
  const flags = [...section.matchAll(/^\$ cdk deploy (.*)$/gm)].flatMap(([, text = ""]) => [
    ...text.matchAll(/--([a-z-]+)(?:=([a-z-]+))?/g),
  ]);
  assert.ok(flags.length >= 4);
  for (const [, name = "", value] of flags) {
    const option = commands.deploy.options[name];
    assert.ok(option, name);
    if (value !== undefined) assert.ok(option.choices.includes(value), value);
  }
});

test("each alarm's section of the runbook is found by its logical id", () => {
  const { service } = exampleWithEverything();
  const sections = [...read("docs", "runbook.md").matchAll(/^## (.*)$/gm)].map(([, name = ""]) =>
    name.replaceAll(/[^A-Za-z0-9]/g, ""),
  );
  for (const type of ["Alarm", "CompositeAlarm"])
    for (const [id] of ofType(service, `AWS::CloudWatch::${type}`))
      assert.ok(sections.includes(section(id)), id);
});

test("what runs on Fargate is counted from the templates", () => {
  const of = ({ state, service }: Pick<ReturnType<typeof example>, "state" | "service">) => {
    const deployment = deployed({ State: state, Service: service });
    const tasks = ofType(service, "AWS::ECS::TaskDefinition").map(([id]) => id.replace(/[0-9A-F]{8}$/, ""));
    return { workers: workersOf(deployment), backups: backupsOf(deployment), tasks };
  };
  const every = of(exampleWithEverything());
  // The check knows each of them.
  assert.deepEqual(every.tasks.toSorted(), ["ServiceBackupTask", "ServiceWorkersTask"]);
  assert.deepEqual(every.workers, { each: 2, least: 3, most: 12 });
  assert.deepEqual(every.backups, { each: 4, least: 0, most: 2 }, "two graphs at once");
  // The first day asks for what the example takes.
  const { workers, backups } = of(example({ workers: SIZES.production.workers, backup: {} }));
  const most = [workers, backups].reduce((sum, tasks) => sum + (tasks ? tasks.most * tasks.each : 0), 0);
  assert.match(
    read("docs", "first-day.md"),
    new RegExp(`--quota-code L-3032A538 --desired-value ${most}\\b`),
  );
  const usual = of(example({ workers: { cpu: 512 } }));
  assert.deepEqual(usual.workers, { each: 0.5, least: 2, most: 4 });
  assert.equal(usual.backups, undefined);
  const graphs = ["a", "b", "c", "d", "e"].map((name) => ({ name }));
  const many = of(example({ workers: false, backup: {}, graphs }));
  assert.equal(many.workers, undefined);
  assert.deepEqual(many.backups, { each: 2, least: 0, most: 4 });
});

test("certificates of the fleet are judged by when they were written", () => {
  const now = Date.parse("2030-01-10T00:00:00Z");
  const of = (day: string, stages = ["AWSCURRENT"]) => {
    const LastChangedDate = new Date(`2030-01-${day}T00:00:00Z`);
    return judgedIssue({ Name: "nodes", LastChangedDate, VersionIdsToStages: { v: stages } }, "issuer", now);
  };
  assert.equal(of("09").status, "ok");
  assert.equal(of("06").status, "warning");
  assert.equal(of("04").status, "failed");
  assert.equal(of("09", []).status, "failed");
  assert.match(of("04").remedy ?? "", /--function-name issuer/);
  // The secrets and the function are found by their logical ids.
  const { service } = example({ encryption: {} });
  const ids = ofType(service, "AWS::SecretsManager::Secret").map(([id]) => id.replace(/[0-9A-F]{8}$/, ""));
  for (const kind of ["EncryptionNodes", "EncryptionWorkers", "EncryptionFunctions"])
    assert.equal(ids.filter((id) => id.endsWith(kind)).length, 1, kind);
  const functions = ofType(service, "AWS::Lambda::Function").map(([id]) => id.replace(/[0-9A-F]{8}$/, ""));
  assert.ok(functions.some((id) => id.endsWith("EncryptionFunction")));
});

test("endpoints are judged by what the template gives them", () => {
  const { service } = example();
  const resources = ofType(service, "AWS::EC2::VPCEndpoint").map(([logicalId, { Type, Properties }]) => ({
    ...{ stack: "Service", type: Type, logicalId, id: `vpce-${logicalId}`, properties: Properties },
  }));
  const one = (name: string) => {
    const found = resources.find(({ logicalId }) => logicalId.startsWith(`ServiceEndpoints${name}`));
    assert.ok(found, name);
    return found;
  };
  const [secrets, s3] = [one("Secrets"), one("S3")];
  assert.ok(secrets.properties.SubnetIds.length > 1 && s3.properties.RouteTableIds.length > 1);
  const ServiceName = "com.amazonaws.eu-west-1.secretsmanager";
  const good = {
    ...{ ServiceName, State: "available" as never, PrivateDnsEnabled: true },
    SubnetIds: secrets.properties.SubnetIds.map((_: unknown, at: number) => `subnet-${at}`),
  };
  const found = judgedEndpoint(secrets, good);
  assert.equal(found.status, "ok");
  assert.match(found.subject ?? "", / \(secretsmanager\)$/);
  for (const [wrong, seen] of [
    [undefined, /gone/],
    [{ ...good, State: "pending" as never }, /^pending/],
    [{ ...good, PrivateDnsEnabled: false }, /without private DNS/],
    [{ ...good, SubnetIds: good.SubnetIds.slice(1) }, /in \d subnets/],
  ] as const) {
    const judged = judgedEndpoint(secrets, wrong);
    assert.equal(judged.status, "failed", String(seen));
    assert.match(judged.seen, seen);
    assert.ok(judged.remedy);
  }
  const RouteTableIds = s3.properties.RouteTableIds.map((_: unknown, at: number) => `rtb-${at}`);
  assert.equal(judgedEndpoint(s3, { State: "available" as never, RouteTableIds }).status, "ok");
  const lost = judgedEndpoint(s3, { State: "available" as never, RouteTableIds: RouteTableIds.slice(1) });
  assert.equal(lost.status, "failed");
  assert.match(lost.remedy ?? "", /--add-route-table-ids/);
});

test("the clock is judged by the surest answer", () => {
  const difference = (aheadMs: number, uncertainMs: number) => ({ aheadMs, uncertainMs });
  assert.equal(judged([difference(90_000, 100_000), difference(300, 600)]).status, "ok");
  assert.equal(judged([difference(-8_000, 600)]).status, "warning");
  assert.equal(judged([difference(301_000, 600)]).status, "failed");
  assert.equal(judged([]).status, "unknown");
});

test("versions that replicas have applied are read by partition", () => {
  assert.deepEqual(
    [...applied("4711:0-2,5;4709:3")],
    [
      [0, 4711],
      [1, 4711],
      [2, 4711],
      [5, 4711],
      [3, 4709],
    ],
  );
  assert.deepEqual([...applied("")], []);
  assert.deepEqual([...applied("7:0-99999999999;x")], [], "what cannot be is left out");
});

test("partitions behind their checkpoints come in the order of their distance", () => {
  const beat = (id: string, versions: string) => [
    { item: `map#node#${id}`, state: "up", zone: "z", generation: 1 },
    { item: `beat#${id}`, counter: 1, applied: versions },
  ];
  const map = new MapItems([
    ...beat("a", "50:0-3"),
    ...beat("b", "90:1"),
    ...beat("c", ""),
    ...[0, 1, 2].map((number) => ({ item: `checkpoint#0000${number}`, version: 50 - number, prefix: "p" })),
  ]);
  assert.deepEqual(
    behindCheckpoints(map).map(({ partition, behind, prefix }) => [partition, behind, prefix]),
    [
      [3, 50, undefined],
      [1, 41, "p"],
      [2, 2, "p"],
    ],
  );
});

test("lines of releases work together if one follows the other", () => {
  assert.ok(together("0.1", "0.1"));
  assert.ok(!together("0.1", "0.3"));
});

test("a refused call names the action that is missing, however the service says it", () => {
  const refused = (action: string, name: string, message: string, status = 403) =>
    explained(
      new CallFailed(
        action,
        Object.assign(new Error(message), { name, $metadata: { httpStatusCode: status } }),
      ),
    );
  const of = "User: x is not authorized to perform: kms:Decrypt on resource: y";
  assert.equal(refused("dynamodb:Query", "AccessDeniedException", of).denied, "kms:Decrypt");
  assert.equal(
    refused("sns:ListSubscriptionsByTopic", "AuthorizationErrorException", "no").denied,
    "sns:ListSubscriptionsByTopic",
  );
  assert.equal(
    refused("ec2:DescribeInstanceTypes", "UnauthorizedOperation", "You are not").denied,
    "ec2:DescribeInstanceTypes",
  );
  assert.equal(refused("kafka:DescribeTopic", "ForbiddenException", "no").denied, "kafka:DescribeTopic");
  const other = refused("s3:ListBucket", "NoSuchBucket", "there is\nno bucket", 404);
  assert.deepEqual([other.status, other.denied], ["unknown", undefined]);
  assert.equal(other.seen, "s3:ListBucket failed: NoSuchBucket: there is no bucket");
});

test("the policy has no action that changes something", () => {
  const actions = policy().Statement.flatMap(({ Action }) => Action);
  const reads = /:(Describe|Get|List|Simulate|Query$|Decrypt$|Invoke$|Connect$)/;
  assert.deepEqual(
    actions.filter((action) => !reads.test(action)),
    [],
  );
  assert.ok(!actions.some((action) => /Secret(Value|String)|GetObject/.test(action)), "no data, no secrets");
});

test("the text has no control characters of names, and says what to do below what is wrong", () => {
  const report: Report = {
    release: "0.1.0",
    region: "eu-west-1",
    stacks: ["a"],
    at: "",
    counts: { ok: 1, warning: 0, failed: 1, unknown: 0, absent: 0 },
    results: [
      { id: "map.table", status: "ok", seen: "ACTIVE" },
      {
        id: "alarms.now",
        status: "failed",
        subject: "x",
        seen: "on\u001b[2J\nnow",
        wanted: "off",
        remedy: "look",
      },
    ],
  };
  const lines = asText(report, false).split("\n");
  assert.deepEqual(lines.slice(2, 6), [
    "ok       map.table   ACTIVE",
    "FAILED   alarms.now  x: on [2J now",
    "                     wanted: off",
    "                     do: look",
  ]);
  assert.match(lines.at(-2) ?? "", /^1 failure, 0 warnings, 0 could not be looked at, 1 ok$/);
});

test("durations are told in words", () => {
  assert.deepEqual([4_000, 300_000, 7_200_000, 41 * 86_400_000].map(span), [
    "4 s",
    "5 min",
    "2 h",
    "41 days",
  ]);
});

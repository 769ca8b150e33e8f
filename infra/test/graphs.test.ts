/** Several graphs of one deployment: what roles, functions, machines and workers have of each, and what is refused. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type App, Stack, Validations } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import * as iam from "aws-cdk-lib/aws-iam";
import { AwsSolutionsChecks } from "cdk-nag";
import { loadSchemas } from "../../contracts/src/validate.ts";
import { type Definition, definitions, INGEST, REBALANCE } from "../draw/draw.ts";
import { InvalidProp } from "../lib/check.ts";
import type { GraphProps, GraphServiceProps } from "../lib/index.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { temporaryFolder } from "../lib/temporary.ts";
import { check, states } from "./definitions.ts";
import {
  files,
  flat,
  hasFlag,
  named,
  ofType,
  placeholders,
  type Resource,
  resources,
  testApp,
} from "./support.ts";

const FURTHER: GraphProps[] = [
  {
    name: "orders",
    partitions: 16,
    shards: 2,
    replication: 3,
    gremlin: { ids: "typed", defaultCardinality: "single" },
    share: 0.25,
    quota: 0.4,
  },
  { name: "eu-events" },
];
const NAMES = ["people", "orders", "eu-events"];
const INFRA = join(import.meta.dirname, "..");

/** Makes a deployment of several graphs, from which another account may drop files. */
function unsynthesized(
  graphs: GraphProps[] = FURTHER,
  more: Partial<GraphServiceProps> = {},
): { app: App; stack: ServiceStack; state: Stack } {
  const app = testApp();
  const { state } = new StateStack(app, "State", {
    name: "example",
    graph: "people",
    dropFrom: ["444455556666"],
  });
  const stack = new ServiceStack(app, "Service", {
    state,
    bundle: placeholders(),
    graphs,
    backup: {},
    ...more,
  });
  return { app, stack, state: Stack.of(state) };
}

function made(
  graphs?: GraphProps[],
  more?: Partial<GraphServiceProps>,
): { app: App; state: Template; service: Template } {
  const { app, stack, state } = unsynthesized(graphs, more);
  return { app, state: Template.fromStack(state), service: Template.fromStack(stack) };
}

const { app, state, service } = made();

interface Statement {
  readonly Action: unknown;
  readonly Resource: unknown;
  readonly Condition?: Record<string, Record<string, unknown>>;
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

/** Returns the statements of a role's policies. */
function statements(beginning: string): Statement[] {
  const isPolicy = ({ Type }: Resource): boolean => /^AWS::IAM::(Managed)?Policy$/.test(Type);
  const found = [...resources(service)].filter(([id, one]) => isPolicy(one) && id.startsWith(beginning));
  assert.ok(found.length > 0, beginning);
  return found.flatMap(([, { Properties }]) => Properties.PolicyDocument.Statement);
}

/** Returns the resources of the statements with an action, without what stands before the part that graphs differ in. */
function resourcesOf(role: string, action: string, form: RegExp): string[] {
  const all = statements(role)
    .filter(({ Action }) => list(Action).includes(action))
    .flatMap(({ Resource }) => list(Resource).map(flat));
  return all.flatMap((one) => form.exec(one)?.[1] ?? []).toSorted();
}

test("each role reads or changes the items of all graphs, and of no other", () => {
  for (const role of [
    "ServiceNodesRole",
    "ServiceRebalanceRole",
    "ServiceQueryRole",
    "ServiceIngestRole",
    "ServiceWorkersRole",
    "ServiceBackupRole",
  ]) {
    const ofMap = statements(role).filter(({ Action }) => list(Action).includes("dynamodb:Query"));
    assert.ok(ofMap.length > 0, role);
    for (const { Condition } of ofMap) {
      assert.deepEqual(Condition?.["ForAllValues:StringEquals"]?.["dynamodb:LeadingKeys"], NAMES, role);
    }
  }
});

test("nodes use the topic of each graph, and backups read it", () => {
  const topics = NAMES.map((name) => `tidegraph-${name}`).toSorted();
  const form = /:topic\/.*\/(tidegraph-[^/]*)$/;
  for (const [role, action] of [
    ["ServiceNodesRole", "kafka-cluster:WriteData"],
    ["ServiceNodesRole", "kafka-cluster:CreateTopic"],
    ["ServiceNodesRole", "kafka-cluster:DeleteTopic"],
    ["ServiceBackupRole", "kafka-cluster:ReadData"],
  ] as const) {
    assert.deepEqual(resourcesOf(role, action, form), topics, `${role} ${action}`);
  }
  assert.deepEqual(resourcesOf("ServiceBackupRole", "kafka-cluster:WriteData", form), []);
});

test("the first graph has the root of the data bucket, and each other one a folder", () => {
  const form = /<StateBucketsData[^>]*>\/(.*)$/;
  const each = (...paths: string[]): string[] =>
    ["", "graphs/orders/", "graphs/eu-events/"]
      .flatMap((folder) => paths.map((path) => folder + path))
      .toSorted();
  assert.deepEqual(
    resourcesOf("ServiceWorkersRole", "s3:PutObject", form),
    each("jobs/*", "loads/*", "resets/*"),
  );
  assert.deepEqual(resourcesOf("ServiceQueryRole", "s3:GetObject", form), each("jobs/*"));
  assert.deepEqual(
    resourcesOf("ServiceIngestRole", "s3:PutObject", form),
    each("ingest/*", "jobs/*", "loads/*"),
  );
  assert.deepEqual(
    resourcesOf("ServiceIngestReportRole", "s3:GetObject", form),
    each("ingest/*/report.json"),
  );
  const rules = named(state, "AWS::S3::Bucket", "StateBucketsData").Properties.LifecycleConfiguration.Rules;
  const expire = rules.filter(({ Prefix }: { Prefix?: string }) => Prefix?.endsWith("ingest/"));
  assert.deepEqual(
    expire.map(({ Prefix, ExpirationInDays }: { Prefix: string; ExpirationInDays: number }) => [
      Prefix,
      ExpirationInDays,
    ]),
    ["", "graphs/orders/", "graphs/eu-events/"].map((folder) => [`${folder}ingest/`, 7]),
  );
});

test("other accounts drop files for each graph", () => {
  const policy = named(state, "AWS::S3::BucketPolicy", "StateBucketsDropPolicy").Properties.PolicyDocument;
  const theirs = policy.Statement.filter(({ Principal }: { Principal: unknown }) =>
    JSON.stringify(Principal).includes("444455556666"),
  );
  const of = (action: string): string[] =>
    theirs
      .filter(({ Action }: Statement) => list(Action).includes(action))
      .flatMap(({ Resource }: Statement) => list(Resource).map((one) => flat(one).replace(/^<[^>]*>\//, "")))
      .toSorted();
  assert.deepEqual(of("s3:PutObject"), NAMES.map((name) => `drop/${name}/*`).toSorted());
  assert.deepEqual(of("s3:GetObject"), NAMES.map((name) => `reports/${name}/*`).toSorted());
});

test("functions and workers get the names of all graphs, the first one first", () => {
  const all = NAMES.join();
  for (const id of [
    "ServiceQuery",
    "ServiceRebalance",
    "ServiceIngestFunction",
    "ServiceIngestIntake",
    "ServiceIngestStale",
  ]) {
    const { Variables } = named(service, "AWS::Lambda::Function", id).Properties.Environment;
    assert.equal(Variables.TIDEGRAPH_GRAPH, all, id);
  }
  const { Variables } = named(service, "AWS::Lambda::Function", "ServiceIngestFunction").Properties
    .Environment;
  const places = flat(Variables.TIDEGRAPH_LOAD_FROM)
    .replaceAll(/<StateBucketsDrop[^>]*>/g, "DROP")
    .split(",");
  assert.deepEqual(
    places,
    NAMES.map((name) => `s3://DROP/drop/${name}/`),
  );
  const task = named(service, "AWS::ECS::TaskDefinition", "ServiceWorkers").Properties
    .ContainerDefinitions[0];
  const command: string[] = task.Command.map(flat);
  const graphs = command.flatMap((word, index) => (word === "--graph" ? [command[index + 1]] : []));
  assert.deepEqual(graphs, NAMES);
});

test("with encryption, processes of all graphs have certificates", () => {
  const { app, service } = made(FURTHER, { encryption: {} });
  const launch = named(service, "AWS::EC2::LaunchTemplate", "ServiceNodes").Properties.LaunchTemplateData;
  const script = flat(launch.UserData["Fn::Base64"]);
  assert.match(script, /^TIDEGRAPH_GRAPH=people,orders,eu-events$/m);
  assert.match(script, /^TIDEGRAPH_TLS_SECRET=<ServiceEncryptionNodes/m);
  for (const name of ["Query", "Ingest"]) {
    const { Variables } = named(service, "AWS::Lambda::Function", `Service${name}Function`).Properties
      .Environment;
    assert.equal(Variables.TIDEGRAPH_GRAPH, NAMES.join(","), name);
    assert.match(flat(Variables.TIDEGRAPH_TLS_SECRET), /^<ServiceEncryptionFunctions/, name);
  }
  const [worker] = named(service, "AWS::ECS::TaskDefinition", "ServiceWorkers").Properties
    .ContainerDefinitions;
  const command: string[] = worker.Command.map(flat);
  assert.deepEqual(
    command.flatMap((one, at) => (one === "--graph" ? [command[at + 1]] : [])),
    NAMES,
  );
  assert.equal(command[command.indexOf("--graph-quota") + 1], "orders=40");
  assert.match(command[command.indexOf("--tls-secret") + 1] ?? "", /^<ServiceEncryptionWorkers/);
  const issuer = named(service, "AWS::Lambda::Function", "ServiceEncryptionFunction").Properties;
  assert.match(issuer.Description, /of the fleet of the graph people and 2 more$/);
  assert.deepEqual(new AwsSolutionsChecks(app).validateScope(app).violations, []);
});

test("a state that is prepared for graphs is prepared once", () => {
  const app = testApp();
  const given = { name: "example", graph: "people", dropFrom: ["444455556666"] };
  const { state } = new StateStack(app, "State", given);
  state.addGraphs("orders");
  state.addGraphs("orders", "events", "events");
  const template = Template.fromStack(Stack.of(state));
  const { Rules } = named(template, "AWS::S3::Bucket", "StateBucketsData").Properties.LifecycleConfiguration;
  const loads = Rules.map(({ Prefix }: { Prefix?: string }) => Prefix).filter((prefix: string | undefined) =>
    prefix?.endsWith("ingest/"),
  );
  assert.deepEqual(loads, ["ingest/", "graphs/orders/ingest/", "graphs/events/ingest/"]);
  const { Statement } = named(template, "AWS::S3::BucketPolicy", "StateBucketsDropPolicy").Properties
    .PolicyDocument;
  const sids = Statement.flatMap(({ Sid }: { Sid?: string }) => Sid ?? []);
  assert.equal(new Set(sids).size, sids.length, sids.join());
  for (const wrong of ["people", "a b", ""])
    assert.throws(
      () => state.addGraphs("fine", wrong),
      (error) => error instanceof InvalidProp && error.prop === "graphs[1]",
      wrong,
    );
});

test("a machine makes each graph with its own settings, in a unit beside the daemon", () => {
  const written = files(service);
  assert.deepEqual(written.get("/opt/tidegraph/etc/graphs")?.split("\n"), [
    "people --partitions 64 --shards 1 --replication 2",
    "orders --partitions 16 --shards 2 --replication 3 --share-objects --ids typed --default-cardinality single",
    "eu-events --partitions 64 --shards 1 --replication 2 --share-objects",
    "",
  ]);
  const fleet = written.get("/opt/tidegraph/etc/fleet.env") ?? "";
  assert.match(fleet, /^TIDEGRAPH_GRAPH=people,orders,eu-events$/m);
  assert.match(fleet, /^TIDEGRAPH_GRAPH_SHARE=people=375,orders=250,eu-events=375$/m);
  // Settings of one graph are no variables of all.
  assert.doesNotMatch(fleet, /^(TIDEGRAPH_IDS|TIDEGRAPH_DEFAULT_CARDINALITY|PARTITIONS)=/m);
  assert.match(
    written.get("/etc/systemd/system/tidegraph-node.service.d/graphs.conf") ?? "",
    /^ExecStartPre=$/m,
  );
  const unit = written.get("/etc/systemd/system/tidegraph-graphs.service") ?? "";
  assert.match(unit, /^ExecStart=\/opt\/tidegraph\/bin\/make-graphs\.sh$/m);
  const script = written.get("/opt/tidegraph/bin/make-graphs.sh") ?? "";
  const sources = join(INFRA, "..", "services", "storage", "src");
  const source = ["serve.rs", "admin.rs", "connect.rs"]
    .map((name) => readFileSync(join(sources, name), "utf8"))
    .join("");
  const flags = [...(written.get("/opt/tidegraph/etc/graphs") ?? "").matchAll(/--([a-z-]+)/g)];
  for (const [, flag = ""] of [...flags, ...script.matchAll(/ --([a-z-]+)/g)])
    assert.ok(hasFlag(source, flag), flag);
  for (const name of ["TIDEGRAPH_GRAPH", "TIDEGRAPH_GRAPH_SHARE"])
    assert.ok(source.includes(`env = "${name}"`), name);
  const [, launch] = ofType(service, "AWS::EC2::LaunchTemplate", 1)[0] ?? [];
  const enabled = flat(launch?.Properties.LaunchTemplateData.UserData["Fn::Base64"]);
  assert.match(enabled, /^systemctl enable --now --no-block .*tidegraph-graphs\.service/m);
});

test("programs without their comments are programs", () => {
  const programs = [...files(service)].filter(([path]) => path.endsWith(".sh"));
  assert.equal(programs.length, 4);
  for (const [path, input] of programs) {
    assert.match(input, /^#!\/bin\/bash\n/, path);
    assert.doesNotMatch(input, /^\s*# /m, path);
    const checked = spawnSync("bash", ["-n"], { input, encoding: "utf8" });
    assert.equal(checked.status, 0, `${path}: ${checked.stderr}`);
  }
});

test("systemd accepts the unit that makes graphs", () => {
  const folder = temporaryFolder("units");
  const paths = [...files(service)]
    .filter(([path]) => /^\/etc\/systemd\/system\/[a-z-]+\.(service|timer)$/.test(path))
    .map(([path, content]) => {
      const file = join(folder, path.slice(path.lastIndexOf("/") + 1));
      writeFileSync(file, content.replaceAll(/\/opt\/tidegraph\/bin\/[a-z.-]+/g, "/bin/true"));
      return file;
    });
  assert.equal(paths.length, 6);
  const verified = spawnSync("systemd-analyze", ["verify", ...paths], { encoding: "utf8" });
  assert.ifError(verified.error);
  assert.deepEqual(
    verified.stderr.split("\n").filter((line) => /tidegraph-/.test(line)),
    [],
  );
});

test("a graph that cannot be made keeps no other from being made", () => {
  const home = temporaryFolder("graphs");
  for (const folder of ["bin", "etc"]) mkdirSync(join(home, folder));
  writeFileSync(join(home, "etc", "graphs"), files(service).get("/opt/tidegraph/etc/graphs") ?? "");
  const stub = `#!/bin/bash\ncat >/dev/null\necho "$*" >>${home}/calls\n[[ "$*" != *--graph\\ $FAILS\\ * ]]\n`;
  writeFileSync(join(home, "bin", "tidegraph-node"), stub, { mode: 0o755 });
  const run = (fails: string) =>
    spawnSync("bash", [join(INFRA, "node", "make-graphs.sh")], {
      encoding: "utf8",
      env: {
        PATH: process.env.PATH,
        TIDEGRAPH_HOME: home,
        LOG_REPLICATION: "3",
        LOG_IN_SYNC: "2",
        FAILS: fails,
      },
    });
  const failed = run("orders");
  assert.equal(failed.status, 1);
  assert.match(failed.stderr, /these graphs are not made yet: orders$/m);
  const calls = readFileSync(join(home, "calls"), "utf8").trim().split("\n");
  assert.deepEqual(
    calls.map((call) => call.split(" ").slice(0, 3).join(" ")),
    NAMES.map((name) => `init --graph ${name}`),
  );
  const of = "--partitions 64 --shards 1 --replication 2 --share-objects --log-replication 3 --log-in-sync 2";
  assert.equal(calls[2], `init --graph eu-events ${of}`);
  const done = run("nothing");
  assert.equal(done.status, 0, done.stderr);
});

const machines = new Map([...definitions(service, REBALANCE), ...definitions(service, INGEST)]);
const of = (name: string): Definition => {
  const found = machines.get(name);
  assert.ok(found, name);
  return found;
};

test("every state of the machines is reachable, and has a successor or is an end", () => {
  for (const [name, definition] of machines) check(name, definition);
});

test("each step of the machines names the graph, in events of the contracts", () => {
  const schemas = loadSchemas({ strict: true });
  const validators = {
    Rebalance: schemas.getSchema("rebalance-event.schema.json"),
    IngestFunction: schemas.getSchema("ingest-event.schema.json"),
  };
  const loadId = "0f8fad5b-d9cb-569f-a165-70867728950e";
  // Example values for the paths that Step Functions resolves at run time.
  const examples: Record<string, unknown> = {
    holder: "arn:aws:states:eu-west-1:123456789012:execution:heal:1",
    instances: [{ InstanceId: "i-1", LifecycleState: "InService" }],
    seen: { holder: "other", endpoint: "", epoch: 1, counter: 1, ttlMs: 120_000 },
    moves: [{ partition: 1, to: "i-1", from: "i-2", isBegun: false, others: 2 }],
    looks: 1,
    drain: "i-1",
    node: "i-1",
    graph: "orders",
    loadId,
    stage: "parse",
    round: 0,
    task: 1,
    error: "Unavailable",
    cause: "",
  };
  const resolved = (fields: object): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(fields).map(([key, value]) =>
        key.endsWith(".$") ? [key.slice(0, -2), examples[key.slice(0, -2)]] : [key, value],
      ),
    );
  const seen = new Set<string>();
  for (const [name, definition] of machines) {
    for (const [id, { Parameters, Resource }] of states(definition)) {
      const kind = /^<Service(Rebalance|IngestFunction)/.exec(flat(Resource))?.[1] as keyof typeof validators;
      if (kind === undefined || !Parameters) continue;
      const event = resolved(Parameters);
      const isValid = validators[kind];
      assert.ok(
        isValid?.(event),
        `${name}: ${id}: ${JSON.stringify(isValid?.errors)} ${JSON.stringify(event)}`,
      );
      const isOfAll = ["detect-all", "graphs"].includes(String(event.step));
      assert.equal(event.graph, isOfAll ? undefined : "orders", `${name}: ${id}`);
      seen.add(String(event.step));
    }
  }
  const steps = ["acquire", "detect-all", "drain", "graphs", "move", "plan", "release", "silent", "verify"];
  assert.deepEqual([...seen].toSorted(), [...steps, "abandon", "commit", "next"].toSorted());
  // The tasks of a stage are given their event as an item.
  const work = states(of("ingest")).find(
    ([, { Type, ItemProcessor }]) => Type === "Map" && ItemProcessor,
  )?.[1];
  const item = (work as unknown as { ItemSelector: Record<string, unknown> }).ItemSelector;
  assert.ok(validators.IngestFunction?.(resolved(item)), JSON.stringify(item));
  assert.equal(item["graph.$"], "$.load.graph");
});

test("a machine that leaves is emptied of each graph before its group goes on", () => {
  const { StartAt, States } = of("drain");
  assert.equal(StartAt, "List the graphs");
  const each = States["Each graph"] as unknown as { ItemSelector: object; Next: string };
  assert.deepEqual(each.ItemSelector, { "node.$": "$.node", "graph.$": "$$.Map.Item.Value" });
  assert.equal(each.Next, "Let the group go on");
  const inner = States["Each graph"]?.ItemProcessor;
  assert.equal(inner?.StartAt, "Say that it leaves");
  assert.ok(!Object.keys(inner?.States ?? {}).includes("Let the group go on"));
  // Moves of each graph prolong the time of the hook.
  const beats = Object.entries(inner?.States ?? {}).filter(([, { Resource }]) =>
    flat(Resource).endsWith(":recordLifecycleActionHeartbeat"),
  );
  assert.deepEqual(beats.map(([id]) => id).toSorted(), ["Another one moves them", "Replicas move"]);
  for (const [id, { Parameters }] of beats) assert.equal(Parameters?.["InstanceId.$"], "$.node", id);
  assert.equal(inner?.States.Move?.Next, "Replicas move");
  const role = statements("ServiceRebalanceDrain").flatMap(({ Action }) => list(Action));
  assert.ok(role.includes("autoscaling:RecordLifecycleActionHeartbeat"), role.join());
  // It waits for each graph: an error of one fails it, and the detector starts the next one.
  assert.equal(States["Each graph"]?.Catch, undefined);
});

test("the detector starts a machine for each graph that needs one", () => {
  const check = loadSchemas({ strict: true }).getSchema("rebalance-input.schema.json");
  const each = of("detect").States["Each graph"];
  assert.equal(each?.ItemsPath, "$.graphs");
  const { Heal, Drain, "Scale out": scaleOut } = each?.ItemProcessor?.States ?? {};
  const input = (parameters: Record<string, unknown> | undefined): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries((parameters?.Input ?? {}) as Record<string, unknown>)
        .filter(([key]) => !key.startsWith("AWS_STEP_FUNCTIONS"))
        .map(([key, value]) =>
          key.endsWith(".$") ? [key.slice(0, -2), key === "node.$" ? "i-1" : "orders"] : [key, value],
        ),
    );
  const inputs = {
    heal: input(Heal?.Parameters),
    drain: input(Drain?.Parameters),
    scaleOut: input(scaleOut?.Parameters),
    upgrade: { release: "0.1.0" },
  };
  assert.ok(check?.(inputs), `${JSON.stringify(check?.errors)} ${JSON.stringify(inputs)}`);
  assert.deepEqual(
    [inputs.heal.graph, inputs.drain.graph, inputs.scaleOut.graph],
    ["orders", undefined, "orders"],
  );
});

test("backups are of each graph, and one that fails keeps no other from its own", () => {
  const { Properties } = named(service, "AWS::StepFunctions::StateMachine", "ServiceBackupMachine");
  const [, parts] = Properties.DefinitionString["Fn::Join"] as [string, unknown[]];
  const definition: Definition = JSON.parse(
    parts.map((part) => (typeof part === "string" ? part : "X")).join(""),
  );
  check("backup", definition);
  const { graphs } = (
    definition.States["List the graphs"] as unknown as {
      Result: { graphs: { graph: string; command: string[] }[] };
    }
  ).Result;
  assert.deepEqual(
    graphs.map(({ graph }) => graph),
    NAMES,
  );
  for (const { graph, command } of graphs) {
    assert.deepEqual(command.slice(0, 3), ["backup", "--graph", graph]);
    assert.ok(command.includes("--to"));
  }
  const run = definition.States["Each graph"]?.ItemProcessor?.States["Back up"];
  const { ContainerOverrides } = (run?.Parameters?.Overrides ?? {}) as { ContainerOverrides?: unknown };
  assert.deepEqual(ContainerOverrides, [{ Name: "backup", "Command.$": "$.command" }]);
  assert.equal(run?.Catch?.[0]?.Next, "Not backed up");
});

test("the dashboard has the versions of each graph, which the agent sends apart", () => {
  const agent = JSON.parse(files(service).get("/opt/tidegraph/etc/agent.json") ?? "");
  const declared = agent.logs.metrics_collected.prometheus.emf_processor.metric_declaration;
  assert.deepEqual(declared.at(-1).dimensions, [["Deployment", "graph"]]);
  assert.deepEqual(declared.at(-1).metric_selectors, ["^tidegraph_version$"]);
  const { DashboardBody } = named(service, "AWS::CloudWatch::Dashboard", "ServiceWatch").Properties;
  for (const name of NAMES) {
    const drawn = `["Tidegraph","tidegraph_version","Deployment","example","graph","${name}"`;
    assert.equal(flat(DashboardBody).split(drawn).length, 3, name);
  }
  // The alarm about silent nodes has all graphs.
  const silent = named(service, "AWS::CloudWatch::Alarm", "ServiceWatchNodesSilent").Properties;
  assert.deepEqual(silent.Dimensions, [{ Name: "Deployment", Value: "example" }]);
});

test("AWS's own rules (cdk-nag) find nothing that is not explained", () => {
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  assert.doesNotThrow(() => app.synth({ force: true }));
});

test("grants are of one graph", () => {
  const { app, stack } = unsynthesized();
  const other = new Stack(app, "Other", { env: stack.env });
  const role = new iam.Role(other, "Role", { assumedBy: new iam.AccountRootPrincipal() });
  const { service: graph } = stack;
  graph.grantRead(role, "orders");
  graph.grantDrop(role, "orders");
  const policy = named(Template.fromStack(other), "AWS::IAM::Policy", "RoleDefaultPolicy");
  const { Statement } = policy.Properties.PolicyDocument;
  const calls = Statement.flatMap(({ Resource }: Statement) => list(Resource).map(flat)).toSorted();
  assert.ok(
    calls.some((call: string) => call.endsWith(">/GET/graph/orders/openCypher")),
    calls.join("\n"),
  );
  assert.ok(calls.some((call: string) => call.endsWith("/drop/orders/*")));
  assert.ok(!calls.some((call: string) => />\/GET\/openCypher$|people/.test(call)), calls.join("\n"));
  for (const wrong of [
    () => graph.grantWrite(role, "nobody"),
    () => graph.grantQuery(role, "*"),
    () => graph.grantDrop(role, "x"),
  ]) {
    assert.throws(
      wrong,
      (error) =>
        error instanceof InvalidProp && error.prop === "graph" && /one of people, orders/.test(error.message),
    );
  }
});

test("props that cannot be are refused at synth", () => {
  const refused = (graphs: GraphProps[], prop: string, ...words: string[]): void => {
    assert.throws(
      () => made(graphs),
      (error) => {
        assert.ok(error instanceof InvalidProp, String(error));
        assert.equal(error.prop, prop);
        for (const word of words) assert.ok(error.message.includes(word), error.message);
        return true;
      },
    );
  };
  for (const name of ["", "a b", "a/b", "a.b", "-a", "x".repeat(65), "größe"]) {
    refused(
      [{ name: "fine" }, { name }],
      "graphs[1].name",
      JSON.stringify(name),
      "letters, digits and dashes",
    );
  }
  refused([{ name: "people" }], "graphs[0].name", "people", "another name", "the state");
  refused([{ name: "a" }, { name: "b" }, { name: "a" }], "graphs[2].name", "not given before");
  const many = Array.from({ length: 8 }, (_, index) => ({ name: `graph-${index}` }));
  refused(many, "graphs", "8", "at most 7 graphs besides people");
  for (const share of [0, -0.5, 1, 2, Number.NaN, 0.0001]) {
    refused([{ name: "a", share }], "graphs[0].share", "from 0.001 to less than 1");
  }
  for (const quota of [0, 1.01, Number.NaN])
    refused([{ name: "a", quota }], "graphs[0].quota", "from 0.01 to 1");
  const shares = [
    { name: "a", share: 0.5 },
    { name: "b", share: 0.5 },
  ];
  refused(shares, "graphs", "shares of 1", "below 1", "people");
  refused(
    [
      { name: "a", share: 0.7 },
      { name: "b", share: 0.7 },
    ],
    "graphs",
    "shares of 1.4",
  );
  refused([{ name: "a", partitions: 3 }], "graphs[0].partitions", "a power of two");
  refused([{ name: "a", partitions: 4, shards: 8 }], "graphs[0].shards", "at most partitions, 4");
  refused([{ name: "a", replication: 4 }], "graphs[0].replication", "zones, 3");
  refused([{ name: "a", gremlin: { ids: "uuids" } }], "graphs[0].gremlin.ids", "strings, typed or longs");
});

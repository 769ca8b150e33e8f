/** The removal of one graph: what its function may do and what it must not, its machine, and who may start it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import * as iam from "aws-cdk-lib/aws-iam";
import { AwsSolutionsChecks } from "cdk-nag";
import type { Definition, Page } from "../draw/draw.ts";
import { definitions } from "../draw/draw.ts";
import { InvalidProp } from "../lib/check.ts";
import type { GraphServiceProps } from "../lib/index.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { check } from "./definitions.ts";
import { example, flat, hasFlag, named, ofType, placeholders, testApp, unknownVariables } from "./support.ts";

const GRAPHS = { graphs: [{ name: "orders" }, { name: "events" }] };
const { app, service } = example(GRAPHS);
const PAGE: Page = { path: "", machines: new Map([["removal", "ServiceRemovalMachine"]]) };

interface Statement {
  readonly Sid: string;
  readonly Effect: string;
  readonly Action: string | string[];
  readonly Resource: unknown;
  readonly Condition?: unknown;
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

/** Removes what CDK adds to names. */
const short = (resource: unknown): string =>
  flat(resource).replaceAll(/<State:?(?:Buckets|Map|Log)?([A-Z][A-Za-z]+?)[0-9A-F]{8}[^>]*>/g, "<$1>");

/** Returns the statements of the function's role, by name. */
function statements(template: Template): Map<string, Statement & { actions: string[]; resources: string[] }> {
  const { Statement } = named(template, "AWS::IAM::Policy", "ServiceRemovalRole").Properties.PolicyDocument;
  return new Map(
    (Statement as Statement[]).map((one) => [
      one.Sid,
      { ...one, actions: list(one.Action).map(String), resources: list(one.Resource).map(short) },
    ]),
  );
}

test("the function may remove any graph but those of the deployment", () => {
  const all = statements(service);
  const of = (sid: string) => {
    const found = all.get(sid);
    assert.ok(found, `${sid} of ${[...all.keys()]}`);
    return found;
  };
  const names = ["people", "orders", "events"];
  const maps = of("KeepMaps");
  assert.equal(maps.Effect, "Deny");
  assert.deepEqual(maps.Condition, { "ForAnyValue:StringEquals": { "dynamodb:LeadingKeys": names } });
  const changes = of("ChangeMap").actions.filter((action) => !/:(GetItem|Query)$/.test(action));
  assert.deepEqual(changes.toSorted(), maps.actions.toSorted());
  assert.deepEqual(of("ChangeMap").resources, maps.resources);

  const topics = of("KeepTopics");
  assert.deepEqual([topics.Effect, topics.actions], ["Deny", ["kafka-cluster:DeleteTopic"]]);
  const topic = (text: string): string => text.slice(text.lastIndexOf("/") + 1);
  assert.deepEqual(topics.resources.map(topic).toSorted(), [
    "tidegraph-events",
    "tidegraph-orders",
    "tidegraph-people",
  ]);
  assert.deepEqual(of("RemoveTopic").resources.map(topic), ["tidegraph-*"]);

  const kept = of("KeepObjects");
  assert.deepEqual([kept.Effect, kept.actions], ["Deny", of("RemoveObjects").actions]);
  assert.deepEqual(of("RemoveObjects").resources, ["<Data>/graphs/*", "<Drop>/drop/*", "<Drop>/reports/*"]);
  // The first graph has the root of the data bucket, of which nothing is allowed.
  assert.deepEqual(
    kept.resources.toSorted(),
    [
      ...["<Data>/graphs/orders/*", "<Data>/graphs/events/*"],
      ...["drop", "reports"].flatMap((folder) => names.map((name) => `<Drop>/${folder}/${name}/*`)),
    ].toSorted(),
  );
  const others = [...all.values()].filter(({ Sid }) => !/^(Change|Keep|Remove)/.test(Sid));
  for (const { Sid, actions } of others)
    assert.ok(!actions.some((action) => /Delete(Item|Topic|Object)|Put(Item|Object)/.test(action)), Sid);
});

test("the function runs the daemon's program, with variables and flags that it knows", () => {
  const { Properties } = named(service, "AWS::Lambda::Function", "ServiceRemovalFunction");
  assert.deepEqual(Properties.Architectures, ["arm64"]);
  assert.equal(Properties.Timeout, 900);
  const { GRAPHS: graphs, DROP_BUCKET, NODE_OPTIONS, ...variables } = Properties.Environment.Variables;
  assert.equal(graphs, "people,orders,events");
  assert.match(flat(DROP_BUCKET), /BucketsDrop/);
  assert.ok(NODE_OPTIONS);
  const folder = join("services", "storage", "src");
  assert.deepEqual(
    unknownVariables(variables, join(folder, "connect.rs"), join(folder, "drop_graph.rs")),
    [],
  );
  const source = readFileSync(join(import.meta.dirname, "..", "..", folder, "drop_graph.rs"), "utf8");
  const code = readFileSync(join(import.meta.dirname, "..", "removal", "removal.ts"), "utf8");
  const flags = [...code.matchAll(/"(--[a-z-]+)"/g)].map(([, flag = ""]) => flag);
  assert.deepEqual(flags, ["--confirm"]);
  for (const flag of flags) assert.ok(new RegExp(`${flag.slice(2)}: String`).test(source), flag);
  assert.ok(!hasFlag(source, "--name"), "the name of the graph is no flag");
});

test("the machine goes on with what the function could not finish, and does not repeat what was refused", () => {
  const definition = definitions(service, PAGE).get("removal") as Definition;
  check("removal", definition);
  const [state] = Object.values(definition.States);
  const repeated = new Map(
    (state?.Retry ?? []).flatMap(({ ErrorEquals, MaxAttempts = 3 }) =>
      ErrorEquals.map((error) => [error, MaxAttempts] as const),
    ),
  );
  assert.ok((repeated.get("Unfinished") ?? 0) >= 100);
  assert.equal(repeated.get("DropFailed"), 2);
  for (const refused of ["NoGraphName", "NotConfirmed", "GraphIsServed", "States.ALL"])
    assert.ok(!repeated.has(refused), refused);
  const thrown = readFileSync(join(import.meta.dirname, "..", "removal", "removal.ts"), "utf8");
  for (const name of ["Unfinished", "DropFailed"]) assert.ok(thrown.includes(`RemovalError("${name}"`), name);
});

/** Makes a service with one graph, or more. */
function made(props: Partial<GraphServiceProps>): ServiceStack {
  const another = testApp();
  const { state } = new StateStack(another, "State", { name: "example", graph: "people" });
  return new ServiceStack(another, "Service", { state, bundle: placeholders(), ...props });
}

test("only who is granted the removal starts it", () => {
  const stack = made(GRAPHS);
  const operator = (id: string) =>
    new iam.Role(stack, id, { assumedBy: new iam.ServicePrincipal("ec2.amazonaws.com") });
  stack.service.grantRemoval(operator("Remover"));
  stack.service.grantAdmin(operator("Admin"));
  const template = Template.fromStack(stack);
  const machine = [...ofType(template, "AWS::StepFunctions::StateMachine")].find(([id]) =>
    id.startsWith("ServiceRemoval"),
  )?.[0];
  assert.ok(machine);
  const of = (id: string): [string, string][] => {
    const { Statement } = named(template, "AWS::IAM::Policy", `${id}DefaultPolicy`).Properties.PolicyDocument;
    return (Statement as Statement[]).flatMap(({ Action, Resource }) =>
      list(Action).flatMap((action) =>
        list(Resource).map((one): [string, string] => [String(action), flat(one)]),
      ),
    );
  };
  const remover = of("Remover");
  assert.deepEqual(remover.map(([action]) => action).toSorted(), [
    "states:DescribeExecution",
    "states:GetExecutionHistory",
    "states:ListExecutions",
    "states:StartExecution",
    "states:StopExecution",
  ]);
  for (const [action, resource] of remover) assert.ok(resource.includes(machine), `${action} ${resource}`);
  for (const [action, resource] of of("Admin"))
    assert.ok(!resource.includes(machine), `${action} ${resource}`);
  const outputs = Object.keys(template.findOutputs("*"));
  assert.ok(
    outputs.some((id) => /RemovalMachine/.test(id)),
    outputs.join(),
  );
});

test("a deployment of one graph has no removal, unless it is to remove its last other graph", () => {
  assert.deepEqual(
    ofType(example().service, "AWS::Lambda::Function").filter(([id]) => id.startsWith("ServiceRemoval")),
    [],
  );
  assert.throws(
    () => {
      const stack = made({});
      stack.service.grantRemoval(new iam.Role(stack, "Role", { assumedBy: new iam.AnyPrincipal() }));
    },
    (error) => error instanceof InvalidProp && error.prop === "graphRemoval",
  );
  const { service: last } = example({ graphRemoval: true });
  const maps = statements(last).get("KeepMaps");
  assert.deepEqual(maps?.Condition, { "ForAnyValue:StringEquals": { "dynamodb:LeadingKeys": ["people"] } });
  const none = example({ ...GRAPHS, graphRemoval: false }).service;
  assert.deepEqual(
    ofType(none, "AWS::StepFunctions::StateMachine").filter(([id]) => id.startsWith("ServiceRemoval")),
    [],
  );
});

test("brokers of somebody else need no permission, and the machine is explained", () => {
  const another = testApp();
  const log = { addresses: "b-1.example.com:9094" };
  const { state } = new StateStack(another, "State", { name: "example", graph: "people", log });
  const stack = new ServiceStack(another, "Service", { state, bundle: placeholders(), ...GRAPHS });
  const all = statements(Template.fromStack(stack));
  assert.ok(!all.has("KeepTopics") && all.has("KeepMaps"), [...all.keys()].join());
  for (const one of [app, another])
    assert.deepEqual(new AwsSolutionsChecks(one).validateScope(one).violations, []);
  assert.equal(Stack.of(state).stackName, "State");
});

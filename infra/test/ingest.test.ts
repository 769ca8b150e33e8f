/**
 * The parts that load dropped files: the machine's definition, the payloads of its functions, their permissions, what
 * starts it, and that its drawing is up to date.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Duration, Stack } from "aws-cdk-lib";
import { loadSchemas } from "../../contracts/src/validate.ts";
import { inputSchema as intakeInput } from "../../services/ingest/control/src/intake.ts";
import { inputSchema as reportInput } from "../../services/ingest/control/src/report.ts";
import { stoppedSchema } from "../../services/ingest/control/src/stopped.ts";
import { current, type Definition, definitions, draw, INGEST } from "../draw/draw.ts";
import { METRICS } from "../lib/constructs/metrics.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { check, states } from "./definitions.ts";
import {
  example,
  FLEET_VARIABLES,
  flat,
  named,
  ofType,
  placeholders,
  testApp,
  unknownVariables,
} from "./support.ts";

const { service } = example();
const machines = definitions(service, INGEST);
const machine = machines.get("ingest") as Definition;
const settle = machines.get("settle") as Definition;
const ROOT = join(import.meta.dirname, "..", "..");
const CONTROL = join(ROOT, "services", "ingest", "control", "src");

test("every state is reachable, and has a successor or is an end", () => {
  for (const [name, definition] of machines) check(name, definition);
  assert.equal(machine.TimeoutSeconds, 24 * 3600);
});

test("tasks run in executions of their own, with the time limit of the function and without results", () => {
  const { Work } = machine.States;
  const { ItemProcessor, ...map } = Work as unknown as {
    ItemProcessor: Definition & { ProcessorConfig: unknown };
    MaxConcurrency: number;
    ItemsPath: string;
    ResultPath: unknown;
    ToleratedFailurePercentage?: number;
  };
  // An express execution ends after five minutes.
  assert.deepEqual(ItemProcessor.ProcessorConfig, { Mode: "DISTRIBUTED", ExecutionType: "STANDARD" });
  assert.deepEqual([map.MaxConcurrency, map.ItemsPath, map.ResultPath], [64, "$.at.tasks", null]);
  assert.equal(map.ToleratedFailurePercentage, undefined, "one task that fails for good fails the load");
  const one = ItemProcessor.States["Do a task"] as unknown as { OutputPath: unknown; TimeoutSeconds: number };
  assert.equal(one.OutputPath, null);
  assert.ok(one.TimeoutSeconds > 900);
});

test("each step has a time limit and retries; a permanent error abandons the load and is reported", () => {
  for (const [id, state] of [...states(machine), ...states(settle)]) {
    if (state.Type !== "Task") continue;
    assert.ok(state.TimeoutSeconds, `${id} has no time`);
    const tried = state.Retry?.flatMap(({ ErrorEquals }) => ErrorEquals) ?? [];
    const isOfLoad = flat(state.Resource).startsWith("<ServiceIngestFunction");
    const expected = isOfLoad
      ? ["Unavailable", "Lambda.Unknown", "Sandbox.Timedout", "Runtime.ExitError"]
      : ["States.ALL"];
    // A function for which there is no place did not run, and tasks keep their places for a quarter of an hour.
    const [first] = state.Retry ?? [];
    assert.deepEqual(first?.ErrorEquals, ["Lambda.TooManyRequestsException"], id);
    assert.ok((first?.MaxAttempts ?? 0) * 30 > 4 * 3600, `${id} waits for hours`);
    for (const error of expected) assert.ok(tried.includes(error), `${id} is not tried again at ${error}`);
    // Permanent errors are not retried.
    for (const error of ["Invalid", "Defect"]) assert.ok(!tried.includes(error), `${id}: ${error}`);
  }
  for (const id of ["Begin", "Work", "Next", "Commit"]) {
    const [caught] = machine.States[id]?.Catch ?? [];
    assert.deepEqual([caught?.ErrorEquals, caught?.Next], [["States.ALL"], "Abandon"], id);
  }
  // The Map itself could not report the cause.
  const inside = machine.States.Work?.ItemProcessor?.States ?? {};
  assert.equal(inside["Do a task"]?.Catch?.[0]?.Next, "Say what failed");
  assert.equal(inside["Say what failed"]?.Next, "Task failed");
  const [last] = machine.States.Abandon?.Catch ?? [];
  assert.equal(last?.Next, "Report the failure");
  // The report has the error that was caught first, whatever the result of abandoning.
  const caught = machine.States.Begin?.Catch?.[0]?.ResultPath;
  assert.equal(caught, "$.error");
  assert.notEqual(last?.ResultPath, caught);
  assert.match(JSON.stringify(machine.States["Report the failure"]), /"error\.\$":"\$\.error"/);
});

test("a completed load succeeds, and every other status fails the execution", () => {
  const { "Completed?": end, "Not loaded": failed } = machine.States as Record<string, unknown> as Record<
    string,
    Record<string, unknown>
  >;
  assert.deepEqual(end?.Choices, [
    { Variable: "$.told.status", StringEquals: "LOAD_COMPLETED", Next: "Loaded" },
  ]);
  assert.equal(end?.Default, "Not loaded");
  assert.deepEqual([failed?.ErrorPath, failed?.CausePath], ["$.told.status", "$.told.message"]);
  for (const id of ["Report", "Report the refusal", "Report the failure"])
    assert.equal(machine.States[id]?.Next, "Completed?", id);
});

/** Replaces the paths in a state's parameters by example values. */
function asked(parameters: unknown, examples: Record<string, unknown>): unknown {
  if (typeof parameters !== "object" || parameters === null) return parameters;
  return Object.fromEntries(
    Object.entries(parameters).map(([key, value]) => {
      if (!key.endsWith(".$")) return [key, asked(value, examples)];
      assert.ok(String(value) in examples, `no example of ${value}`);
      return [key.slice(0, -2), examples[String(value)]];
    }),
  );
}

test("payloads are valid events of the functions", () => {
  const golden = JSON.parse(readFileSync(join(ROOT, "contracts", "golden", "ingest.json"), "utf8"));
  const event = loadSchemas({ strict: true }).getSchema("ingest-event.schema.json");
  assert.ok(event);
  const [begin] = golden.events;
  const ended = golden.answers.find((one: { stage?: string }) => one.stage === "ended");
  const { loadId } = begin;
  const load = { loadId, source: begin.source, report: `reports/people/first/${loadId}.json` };
  const examples: Record<string, unknown> = {
    $: golden.inputs[0],
    "$$.Execution.Id": "arn:aws:states:eu-west-1:123456789012:execution:ingest:1",
    "$$.Map.Item.Value": 7,
    "$.load": load,
    "$.load.loadId": loadId,
    "$.loadId": loadId,
    "$.reason": "it has no files",
    "$.error": { Error: "Defect", Cause: "{}" },
    "$.error.Error": "Defect",
    "$.error.Cause": "{}",
    "$.at.loadId": loadId,
    "$.at.stage": "edges",
    "$.at.round": 0,
    "$.at.status": ended.status,
    "$.at.report": ended.report,
  };
  const steps = new Set<unknown>();
  for (const [id, state] of states(machine)) {
    const { Parameters, Resource, ItemSelector } = state as typeof state & { ItemSelector?: object };
    const value = asked(Parameters ?? ItemSelector, examples) as Record<string, unknown> | undefined;
    if (value === undefined) continue;
    const what = flat(Resource ?? "");
    if (what.startsWith("<ServiceIngestIntake")) intakeInput.parse(value);
    else if (what.startsWith("<ServiceIngestReport")) reportInput.parse(value);
    else {
      assert.ok(event(value), `${id}: ${JSON.stringify(event.errors)} ${JSON.stringify(value)}`);
      steps.add(value.step);
    }
  }
  assert.deepEqual([...steps].toSorted(), ["abandon", "commit", "next", "work"]);
  // The intake function determines the payload of the first step; its own tests check it.
  assert.equal((machine.States.Begin as { InputPath?: string }).InputPath, "$.begin");
});

test("a stopped load is settled after its last step may have run, if it is still open, and is reported", () => {
  const golden = JSON.parse(readFileSync(join(ROOT, "contracts", "golden", "ingest.json"), "utf8"));
  const event = loadSchemas({ strict: true }).getSchema("ingest-event.schema.json");
  assert.ok(event);
  const [{ loadId, source }] = golden.events;
  const ended = golden.answers.find((one: { stage?: string }) => one.stage === "ended");
  const load = { loadId, source, report: `reports/people/first/${loadId}.json` };
  for (const input of golden.stopped) {
    const examples: Record<string, unknown> = {
      $: input,
      "$.found.load": load,
      "$.found.load.loadId": loadId,
      "$.found.error": { Error: "ABORTED", Cause: "somebody stopped it" },
      "$.found.error.Error": "ABORTED",
      "$.found.error.Cause": "somebody stopped it",
      "$.at.status": ended.status,
      "$.at.report": ended.report,
    };
    for (const [id, { Type, Parameters }] of states(settle)) {
      if (Type !== "Task") continue;
      const value = asked(Parameters, examples);
      if (id.startsWith("Look")) assert.equal(stoppedSchema.parse(value).longestSeconds, 960);
      else if (id.startsWith("Report")) reportInput.parse(value);
      else assert.ok(event(value), `${id}: ${JSON.stringify(event.errors)}`);
    }
  }
  // Longer than the function that loads may run.
  assert.ok(960 > named(service, "AWS::Lambda::Function", "ServiceIngestFunction").Properties.Timeout);
  const { States } = settle;
  const wait = States["Steps may run on"];
  assert.deepEqual(
    [wait?.SecondsPath, wait?.Next, States["Look again"]?.Next],
    ["$.found.waitSeconds", "Look again", "Still open?"],
  );
  for (const id of ["Open?", "Still open?"]) {
    const [choice, ...others] = States[id]?.Choices ?? [];
    assert.deepEqual([choice?.Variable, choice?.StringEquals, others], ["$.found.outcome", "open", []], id);
    assert.equal(States[id]?.Default, "Nothing to tell", id);
  }
  assert.equal(States.Abandon?.Catch?.[0]?.Next, "Report the end");
});

test("an unsuccessful execution starts the machine that settles loads, with the unchanged event", () => {
  const { EventPattern, Targets } = named(service, "AWS::Events::Rule", "ServiceIngestEnded").Properties;
  assert.deepEqual(
    [EventPattern.source, EventPattern["detail-type"]],
    [["aws.states"], ["Step Functions Execution Status Change"]],
  );
  assert.deepEqual(EventPattern.detail.status, ["ABORTED", "FAILED", "TIMED_OUT"]);
  assert.match(flat(EventPattern.detail.stateMachineArn[0]), /^<ServiceIngestMachineStateMachine/);
  const [target, ...others] = Targets;
  assert.deepEqual(others, []);
  assert.match(flat(target.Arn), /^<ServiceIngestSettleStateMachine/);
  assert.deepEqual(
    [target.Input, target.InputTransformer, target.InputPath],
    [undefined, undefined, undefined],
  );
});

test("a mark in the drop bucket starts the machine, with the unchanged event", () => {
  const { EventPattern, Targets } = named(service, "AWS::Events::Rule", "ServiceIngestDropped").Properties;
  assert.deepEqual([EventPattern.source, EventPattern["detail-type"]], [["aws.s3"], ["Object Created"]]);
  assert.match(flat(EventPattern.detail.bucket.name[0]), /^<StateBucketsDrop/);
  assert.deepEqual(EventPattern.detail.object.key, [{ wildcard: "drop/*/_SUCCESS" }]);
  const [target, ...others] = Targets;
  assert.deepEqual(others, []);
  assert.match(flat(target.Arn), /^<ServiceIngestMachineStateMachine/);
  assert.deepEqual(
    [target.Input, target.InputTransformer, target.InputPath],
    [undefined, undefined, undefined],
  );
  const each = named(service, "AWS::Events::Rule", "ServiceIngestEachHour").Properties;
  assert.equal(each.ScheduleExpression, "rate(1 hour)");
  assert.match(flat(each.Targets[0].Arn), /^<ServiceIngestStaleFunction/);
});

test("the function that loads has the subnets of the query function, its maximum time and one processor", () => {
  const { Properties } = named(service, "AWS::Lambda::Function", "ServiceIngestFunction");
  const query = named(service, "AWS::Lambda::Function", "ServiceQueryFunction").Properties;
  assert.deepEqual([Properties.Runtime, Properties.Architectures], ["provided.al2023", ["arm64"]]);
  assert.deepEqual([Properties.Timeout, Properties.MemorySize], [900, 1769]);
  assert.deepEqual(Properties.VpcConfig.SubnetIds, query.VpcConfig.SubnetIds);
  assert.notDeepEqual(Properties.VpcConfig.SecurityGroupIds, query.VpcConfig.SecurityGroupIds);
  const { Variables } = Properties.Environment;
  for (const name of ["GRAPH", "TABLE_PREFIX", "FLEET_SECRET"]) {
    assert.deepEqual(Variables[`TIDEGRAPH_${name}`], query.Environment.Variables[`TIDEGRAPH_${name}`], name);
  }
  // A variable that the program does not know would make it exit.
  const own = ["settings.rs", "main.rs"].map((name) => join("services", "ingest", "src", name));
  assert.deepEqual(unknownVariables(Variables, ...own, FLEET_VARIABLES), []);
  assert.match(flat(Variables.TIDEGRAPH_OBJECTS), /^s3:\/\/<StateBucketsData/);
  assert.match(flat(Variables.TIDEGRAPH_LOAD_FROM), /^s3:\/\/<StateBucketsDrop[^>]*>\/drop\/people\/$/);
  assert.ok(Properties.KmsKeyArn);
});

test("the small functions are traced, outside the VPC, and have the variables that they read", () => {
  const sources = readdirSync(CONTROL).map((name) => readFileSync(join(CONTROL, name), "utf8"));
  for (const name of ["intake", "report", "stale"]) {
    const id = `ServiceIngest${name[0]?.toUpperCase()}${name.slice(1)}Function`;
    const { Properties } = named(service, "AWS::Lambda::Function", id);
    assert.deepEqual([Properties.Runtime, Properties.Handler], ["nodejs24.x", "index.handler"], name);
    assert.deepEqual(Properties.TracingConfig, { Mode: "Active" }, name);
    assert.equal(Properties.VpcConfig, undefined, name);
    assert.ok(Properties.KmsKeyArn, name);
    const variables = Object.keys(Properties.Environment.Variables).filter((one) =>
      one.startsWith("TIDEGRAPH_"),
    );
    const handler = readFileSync(join(CONTROL, `${name}.handler.ts`), "utf8");
    const needed = [handler, readFileSync(join(CONTROL, "observe.ts"), "utf8")].flatMap((source) =>
      [...source.matchAll(/\b(?:setting|bucket)\("(TIDEGRAPH_[A-Z_]+)"\)/g)].map(([, variable]) => variable),
    );
    for (const variable of needed) assert.ok(variables.includes(variable ?? ""), `${name} lacks ${variable}`);
    for (const variable of variables)
      assert.ok(
        sources.some((source) => source.includes(`"${variable}"`)),
        `${name}: nobody asks for ${variable}`,
      );
    const { Variables } = Properties.Environment;
    assert.equal(Variables.POWERTOOLS_METRICS_NAMESPACE, METRICS.namespace);
    assert.equal(Variables.POWERTOOLS_SERVICE_NAME, METRICS.ofIngest.service);
  }
});

test("alarms and functions use the same names of metrics", () => {
  const written = [...readFileSync(join(CONTROL, "metrics.ts"), "utf8").matchAll(/"(tidegraph_[a-z_]+)"/g)];
  assert.deepEqual(written.map(([, name]) => name).toSorted(), METRICS.ofIngest.names.toSorted());
});

test("the table of taken loads is encrypted, expires its items, and is deleted with the service", () => {
  const [[id, table] = ["", undefined], ...others] = ofType(service, "AWS::DynamoDB::Table");
  assert.deepEqual(others, []);
  assert.match(id, /^ServiceIngestTaken/);
  assert.deepEqual(table?.Properties.TimeToLiveSpecification, { AttributeName: "expiration", Enabled: true });
  assert.equal(table?.Properties.SSESpecification.SSEType, "KMS");
  assert.equal(table?.DeletionPolicy, "Delete");
});

test("intermediate files are deleted after a week, and no load takes longer", () => {
  const { state } = example();
  const { Rules } = named(state, "AWS::S3::Bucket", "StateBucketsData").Properties.LifecycleConfiguration;
  const ofLoads = Rules.filter((rule: { Prefix?: string }) => rule.Prefix !== undefined);
  assert.deepEqual(
    ofLoads.map(({ Prefix, ExpirationInDays }: { Prefix: string; ExpirationInDays: number }) => [
      Prefix,
      ExpirationInDays,
    ]),
    [
      ["ingest/", 7],
      ["machines/", 30],
    ],
  );
  const { service: long } = example({
    ingest: { longest: Duration.days(6), concurrency: 7, memoryMib: 512 },
  });
  const other = definitions(long, INGEST).get("ingest");
  assert.equal(other?.TimeoutSeconds, 6 * 86_400);
  assert.equal(other?.States.Work?.MaxConcurrency, 7);
  assert.equal(named(long, "AWS::Lambda::Function", "ServiceIngestFunction").Properties.MemorySize, 512);
});

test("places are reserved for loads and for moves if the deployment says so, and none by default", () => {
  const reserved = (template: typeof service): Record<string, number> =>
    Object.fromEntries(
      ofType(template, "AWS::Lambda::Function").flatMap(([id, { Properties }]) => {
        const places = Properties.ReservedConcurrentExecutions;
        return places === undefined ? [] : [[id.replace(/^Service|[0-9A-F]{8}$/g, ""), places]];
      }),
    );
  // An account that allows 10 functions refuses each reservation.
  assert.deepEqual(reserved(service), {});
  const props = {
    query: { concurrency: 50 },
    ingest: { concurrency: 32, reservedConcurrency: 64 },
    rebalance: { concurrency: 10 },
  };
  assert.deepEqual(reserved(example(props).service), {
    IngestFunction: 64,
    QueryFunction: 50,
    RebalanceFunction: 10,
  });
});

test("alarms cover failed and slow loads, lost events and stale drops", () => {
  const alarms = ["LoadsFailed", "LoadsTooLong", "LoadsUntold", "DropsUnheard", "DropsStale"].map(
    (name) => named(service, "AWS::CloudWatch::Alarm", `ServiceWatch${name}`).Properties,
  );
  assert.deepEqual(
    alarms.map(({ Namespace, MetricName, Threshold, Metrics }) =>
      Metrics ? [Metrics.length, Threshold] : [Namespace, MetricName, Threshold],
    ),
    [
      ["AWS/States", "ExecutionsFailed", 0],
      ["AWS/States", "ExecutionsTimedOut", 0],
      // The sum of those that failed, took too long and were stopped.
      [4, 0],
      ["AWS/Events", "FailedInvocations", 0],
      ["Tidegraph", "tidegraph_drops_stale", 0],
    ],
  );
  assert.equal(alarms[4].Period, 3600, "as often as it is looked");
});

test("each function is bundled into one file with its source map, without Docker", () => {
  const app = testApp({ bundles: true });
  const { state } = new StateStack(app, "State", { name: "example", graph: "people" });
  const stack = new ServiceStack(app, "Service", { state, bundle: placeholders(), encryption: {} });
  app.synth();
  const manifest = JSON.parse(
    readFileSync(join(app.outdir, `${Stack.of(stack).artifactId}.assets.json`), "utf8"),
  );
  const folders = Object.values<{ source: { path: string } }>(manifest.files)
    .map(({ source }) => join(app.outdir, source.path))
    .filter((path) => existsSync(join(path, "index.js.map")));
  // Three around loads, and those that ask for brokers, empty the group of storage nodes, register what workers run, rotate
  // the secret, and make certificates.
  assert.equal(folders.length, 8);
  for (const folder of folders) {
    assert.deepEqual(readdirSync(folder).toSorted(), ["index.js", "index.js.map"]);
    const code = readFileSync(join(folder, "index.js"), "utf8");
    assert.match(code, /handler/);
    // The bundle must not depend on packages that Lambda provides.
    assert.doesNotMatch(code, /require\("@aws-sdk\/(client|lib)-/);
  }
});

test("the drawings match the definitions", () => {
  assert.ok(draw(machine).includes("for each task, 64 at once"));
  assert.ok(draw(settle).includes("Steps may run on"));
  const page = readFileSync(INGEST.path, "utf8");
  assert.ok(
    current(service, INGEST) === page,
    "run `npm run draw --workspace infra` and commit what it makes",
  );
});

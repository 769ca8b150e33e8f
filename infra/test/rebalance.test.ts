/**
 * The machines that move replicas: their definitions, the payloads of the function, the permissions, and that their
 * drawings are up to date.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadSchemas } from "../../contracts/src/validate.ts";
import { current, type Definition, definitions, draw, REBALANCE, type State } from "../draw/draw.ts";
import { UNTOLD } from "../lib/state-machines/heal.ts";
import { CONCURRENCY, LOOKS, LOTS, ROUNDS } from "../lib/state-machines/moves.ts";
import { check, events, states } from "./definitions.ts";
import { example, flat, named, ofType } from "./support.ts";

const { service } = example();
const machines = definitions(service, REBALANCE);
const ROOT = join(import.meta.dirname, "..", "..");

test("every state is reachable, and has a successor or is an end", () => {
  for (const [name, definition] of machines) check(name, definition);
});

test("each step has a time limit and retries, and a permanent error releases the lease", () => {
  for (const [name, definition] of machines) {
    assert.ok(definition.TimeoutSeconds, name);
    for (const [id, state] of states(definition)) {
      if (state.Type !== "Task") continue;
      assert.ok((state.TimeoutSeconds ?? 0) <= 120 && state.TimeoutSeconds, `${name}: ${id} has no time`);
      assert.ok(state.Retry || state.Catch, `${name}: ${id} is not tried again`);
    }
    if (name === "detect") continue;
    for (const id of ["Plan", "Move", "Verify"]) {
      const [caught] = definition.States[id]?.Catch ?? [];
      assert.deepEqual(caught?.ErrorEquals, ["States.ALL"], `${name}: ${id}`);
      assert.equal(caught?.Next, "Give the lease back after a failure", `${name}: ${id}`);
    }
  }
});

test("payloads are valid events of the function", () => {
  const check = loadSchemas({ strict: true }).getSchema("rebalance-event.schema.json");
  assert.ok(check);
  // Example values for the paths that Step Functions resolves at run time.
  const examples: Record<string, unknown> = {
    holder: "arn:aws:states:eu-west-1:123456789012:execution:heal:1",
    instances: [{ InstanceId: "i-1", LifecycleState: "InService" }],
    seen: { holder: "other", endpoint: "", epoch: 1, counter: 1, ttlMs: 120_000 },
    moves: [{ partition: 1, to: "i-1", from: "i-2", isBegun: false, others: 2 }],
    looks: 1,
    drain: "i-1",
    node: "i-1",
  };
  const asked = new Set<string>();
  for (const [name, definition] of machines) {
    for (const [id, event] of events(states(definition), examples)) {
      assert.ok(check(event), `${name}: ${id}: ${JSON.stringify(check.errors)} ${JSON.stringify(event)}`);
      asked.add(String(event.step));
    }
  }
  assert.deepEqual([...asked].toSorted(), [
    "acquire",
    "detect",
    "drain",
    "move",
    "plan",
    "release",
    "silent",
    "verify",
  ]);
});

test("inputs are valid under the contract", () => {
  const check = loadSchemas({ strict: true }).getSchema("rebalance-input.schema.json");
  assert.ok(check);
  const { Heal, Drain, "Scale out": scaleOut } = machines.get("detect")?.States ?? {};
  const input = (state: State | undefined): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries((state?.Parameters?.Input ?? {}) as Record<string, unknown>)
        .filter(([key]) => !key.startsWith("AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID"))
        .map(([key, value]) => (key.endsWith(".$") ? [key.slice(0, -2), "i-1"] : [key, value])),
    );
  // `upgrade.test.ts` checks the input of the machine that upgrades.
  const upgrade = { release: "0.1.0" };
  const inputs = { heal: input(Heal), drain: input(Drain), scaleOut: input(scaleOut), upgrade };
  assert.ok(check(inputs), `${JSON.stringify(check.errors)} ${JSON.stringify(inputs)}`);
  assert.deepEqual(inputs.heal, { patienceSeconds: 120 });
});

test("an execution stays within 25,000 events, and within its lease", () => {
  // Events of a Task without retries: entered, scheduled, started, succeeded, exited. Events of every other state:
  // entered, exited.
  const events = (parts: Definition): number =>
    Object.values(parts.States).reduce((sum, { Type }) => sum + (Type === "Task" ? 5 : 2), 0);
  for (const name of ["heal", "scale-out", "drain"]) {
    const definition = machines.get(name);
    const inside = definition?.States.Move?.ItemProcessor;
    assert.ok(definition && inside, name);
    const round = LOTS * (LOOKS * events(inside) + 2) + events(definition);
    assert.ok(ROUNDS * round < 25_000, `${name}: ${ROUNDS * round} events`);
  }
  const { Variables } = named(service, "AWS::Lambda::Function", "ServiceRebalance").Properties.Environment;
  // Three nodes, 16 restores on each.
  assert.equal(Variables.TIDEGRAPH_MOVES, "48");
  for (const [name, one] of machines) {
    for (const [id, { Type, Seconds }] of states(one)) {
      // A retried step may wait for a minute in addition.
      if (Type === "Wait" && Seconds && id !== "Another one works")
        assert.ok(Seconds * 1000 + 60_000 < Number(Variables.TIDEGRAPH_LEASE_MS), `${name}: ${id}`);
    }
  }
});

test("the function has its variables and enough time for its steps", () => {
  const { Properties } = named(service, "AWS::Lambda::Function", "ServiceRebalance");
  assert.deepEqual([Properties.Runtime, Properties.Architectures], ["provided.al2023", ["arm64"]]);
  assert.equal(Properties.VpcConfig, undefined);
  const { Variables } = Properties.Environment;
  const code = readFileSync(join(ROOT, "services", "rebalance", "src", "settings.rs"), "utf8");
  for (const name of Object.keys(Variables)) {
    assert.ok(code.includes(`"${name.replace(/^TIDEGRAPH_/, "")}"`), `${name} is not in settings.rs`);
  }
  assert.ok(Number(Variables.TIDEGRAPH_SILENCE_MS) / 1000 + 30 < Properties.Timeout);
  assert.equal(Variables.TIDEGRAPH_NODES, "3");
});

test("a machine that is terminated is drained, and detect runs every minute", () => {
  const away = named(service, "AWS::Events::Rule", "ServiceRebalanceTakenAway").Properties;
  assert.deepEqual(away.EventPattern, {
    source: ["aws.autoscaling"],
    "detail-type": ["EC2 Instance-terminate Lifecycle Action"],
    detail: { AutoScalingGroupName: ["example-nodes"], LifecycleHookName: ["leaves"] },
  });
  assert.match(flat(away.Targets[0].Arn), /^<ServiceRebalanceDrain/);
  assert.deepEqual(away.Targets[0].InputTransformer.InputPathsMap, {
    "detail-EC2InstanceId": "$.detail.EC2InstanceId",
  });
  const minute = named(service, "AWS::Events::Rule", "ServiceRebalanceEachMinute").Properties;
  assert.equal(minute.ScheduleExpression, "rate(1 minute)");
  assert.match(flat(minute.Targets[0].Arn), /^<ServiceRebalanceDetect/);
  const group = ofType(service, "AWS::AutoScaling::AutoScalingGroup")[0]?.[1].Properties;
  const leaves = group.LifecycleHookSpecificationList[1];
  assert.equal(leaves.HeartbeatTimeout, 7200);
  const tell = machines.get("drain")?.States["Let the group go on"]?.Parameters;
  assert.equal(tell?.LifecycleHookName, leaves.LifecycleHookName);
});

test("a drain prolongs the time of the hook with each round of moves, and not when nothing moves", () => {
  const { States } = machines.get("drain") as Definition;
  const group = ofType(service, "AWS::AutoScaling::AutoScalingGroup")[0]?.[1].Properties;
  const leaves = group.LifecycleHookSpecificationList[1];
  const beats = Object.entries(States).filter(([, { Resource }]) =>
    flat(Resource).endsWith(":aws-sdk:autoscaling:recordLifecycleActionHeartbeat"),
  );
  assert.deepEqual(beats.map(([id]) => id).toSorted(), ["Another one moves them", "Replicas move"]);
  for (const [id, { Parameters, Catch }] of beats) {
    assert.deepEqual(Parameters, {
      AutoScalingGroupName: group.AutoScalingGroupName,
      LifecycleHookName: leaves.LifecycleHookName,
      "InstanceId.$": "$.node",
    });
    // A node whose machine stays has no such action.
    const [caught] = Catch ?? [];
    assert.deepEqual([caught?.ErrorEquals, caught?.Next], [["States.ALL"], States[id]?.Next], id);
  }
  // Where the signs come: after moves, and while another execution has the lease. What plans nothing gives none.
  const before = (next: string): string[] =>
    Object.entries(States)
      .filter(([, state]) => [state.Next, state.Default].includes(next))
      .map(([id]) => id);
  assert.deepEqual(before("Replicas move"), ["Move"]);
  assert.deepEqual(before("Another one moves them"), ["Another one works"]);
  assert.equal(States["Replicas move"]?.Next, "Breathe");
  assert.equal(States["Another one moves them"]?.Next, "Say that it leaves");
  // The longest time between two signs: all lots of a round, some at a time, each with its looks; then detect's next
  // execution, whose name changes after ten minutes, and which waits for the lease.
  const lots =
    Math.ceil(LOTS / CONCURRENCY) *
    LOOKS *
    ((States.Move?.ItemProcessor?.States["Wait for nodes"]?.Seconds ?? 0) + 60);
  assert.ok(lots + 600 + 145 < leaves.HeartbeatTimeout, String(lots));
  for (const name of ["heal", "scale-out"])
    assert.equal(machines.get(name)?.States.Move?.Next, "Breathe", name);
});

test("the machine of a node that stays silent is replaced, and replicas move whether that succeeds or not", () => {
  const { States } = machines.get("heal") as Definition;
  const chain = ["It may come back", "Look at the group", "Who is silent?", "Forget the group"];
  const order = [...chain, "Replace machines", "Count rounds"];
  for (const [at, id] of order.slice(0, -1).entries()) assert.equal(States[id]?.Next, order[at + 1], id);
  for (const id of ["Look at the group", "Who is silent?"]) {
    const [caught] = States[id]?.Catch ?? [];
    assert.deepEqual([caught?.ErrorEquals, caught?.Next], [["States.ALL"], "Nobody was told"], id);
  }
  assert.equal(States["Nobody was told"]?.Next, "Count rounds");
  const silent = States["Who is silent?"]?.Parameters as Record<string, unknown>;
  assert.deepEqual([silent.step, silent["instances.$"]], ["silent", "$.group.instances"]);
  const states = States["Replace machines"]?.ItemProcessor?.States ?? {};
  const tell = states["Tell the group"];
  // The grace period is that of a start, in which the group would ignore it.
  assert.deepEqual(tell?.Parameters, {
    "InstanceId.$": "$.node",
    HealthStatus: "Unhealthy",
    ShouldRespectGracePeriod: false,
  });
  assert.match(flat(tell?.Resource), /aws-sdk:autoscaling:setInstanceHealth$/);
  assert.deepEqual(
    [tell?.Catch?.[0]?.ErrorEquals, tell?.Catch?.[0]?.Next],
    [["States.ALL"], "The machine stays"],
  );
  assert.equal(states["The machine stays"]?.Next, "Told");
});

test("an alarm finds in the log of heals that a machine was not reported", () => {
  const [[, filter] = []] = ofType(service, "AWS::Logs::MetricFilter", 1);
  assert.equal(
    filter?.Properties.FilterPattern,
    '{ ($.type = "PassStateEntered") && (($.details.name = "Nobody was told") || ($.details.name = "The machine stays")) }',
  );
  assert.match(flat(filter?.Properties.LogGroupName), /^<ServiceRebalanceHealLogs/);
  const [metric] = filter?.Properties.MetricTransformations ?? [];
  const alarm = named(service, "AWS::CloudWatch::Alarm", "ServiceWatchMachinesStay").Properties;
  assert.deepEqual(
    [alarm.Namespace, alarm.MetricName, metric?.MetricNamespace, metric?.MetricName],
    [...["Tidegraph/Heals", "example-machines-stay"], ...["Tidegraph/Heals", "example-machines-stay"]],
  );
  // What the alarm looks for is what the definition has.
  const { States } = machines.get("heal") as Definition;
  const all = { ...States, ...States["Replace machines"]?.ItemProcessor?.States };
  for (const id of UNTOLD) assert.equal(all[id]?.Type, "Pass", id);
});

test("executions are logged, and only detect is an express machine", () => {
  for (const [id, { Properties }] of ofType(service, "AWS::StepFunctions::StateMachine")) {
    assert.equal(Properties.LoggingConfiguration.Level, "ALL", id);
    const isDetect = id.startsWith("ServiceRebalanceDetect");
    assert.equal(Properties.StateMachineType === "EXPRESS", isDetect, id);
  }
});

test("the drawings match the definitions", () => {
  assert.ok(draw(machines.get("drain") as Definition).includes("Let the group go on"));
  const page = readFileSync(REBALANCE.path, "utf8");
  assert.ok(
    current(service, REBALANCE) === page,
    "run `npm run draw --workspace infra` and commit what it makes",
  );
});

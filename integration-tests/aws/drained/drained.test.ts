/**
 * A machine is terminated under load. The Auto Scaling group announces it and waits. The rule for that event starts
 * `drain`, the node answers until other nodes have its replicas, and only then the group is told to continue.
 *
 * LocalStack has no Auto Scaling. The test sends the group's event, and stops the daemon as the end of its machine
 * would. The call that tells the group to continue fails here, and the state machine treats it like the call for a
 * machine that stays.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deployed } from "../../src/aws.ts";
import { EXECUTION_MS, executions, History, inputOf, send, succeeded } from "../../src/aws-machines.ts";
import {
  fewestAnswer,
  held,
  Load,
  REPLICAS,
  rebalancer,
  sequencer,
  standing,
  still,
  until,
} from "../../src/aws-moves.ts";
import { eventually } from "../../src/server.ts";

const GROUP = "local-nodes";
const HOOK = "leaves";

/** Names of the executions that `detect` starts while the node is not empty yet. */
const OF_DETECT = /^drain-\d+-\d+$/;

interface Acquired {
  readonly lease: { readonly ours: boolean; readonly lease: { readonly holder: string } };
}

interface Planned {
  readonly plan: {
    readonly lots: readonly {
      readonly moves: readonly { readonly partition: number; readonly from?: string; readonly to?: string }[];
    }[];
  };
}

/**
 * The event that Auto Scaling sends when it terminates a machine (Amazon EC2 Auto Scaling User Guide, "EC2
 * Instance-terminate Lifecycle Action").
 */
const taken = (instance: string, group = GROUP, hook = HOOK) => ({
  LifecycleActionToken: "87654321-4321-4321-4321-210987654321",
  AutoScalingGroupName: group,
  LifecycleHookName: hook,
  EC2InstanceId: instance,
  LifecycleTransition: "autoscaling:EC2_INSTANCE_TERMINATING",
  Origin: "AutoScalingGroup",
  Destination: "EC2",
});

/** Returns the moves that an execution carried out. One that takes long is in several plans. */
function movesOf(history: History): ReadonlySet<string> {
  const plans = history.left<Planned>("Plan");
  const moves = plans.flatMap(({ plan }) => plan.lots.flatMap((lot) => lot.moves));
  return new Set(moves.map(({ partition, from, to }) => `partition ${partition} from ${from} to ${to}`));
}

test("a machine is taken away: its node is drained before, no read fails, nothing acknowledged is lost, and only its replicas move", async (t) => {
  await still();
  const before = await standing();
  // The hardest case: the sequencer's node, which also orders writes.
  const leader = await sequencer();
  const leaves = deployed().nodes.find(({ name }) => name === leader);
  assert.ok(leaves && before.states.get(leader) === "up", `the sequencer is ${leader}`);
  const stay = deployed().nodes.find(({ name }) => name !== leader && before.states.get(name) === "up");
  assert.ok(stay, "nobody is there to take what it holds");
  const had = held(before, leader);
  assert.ok(had > 0, "the node that is to be drained has nothing");
  const known = new Set((await executions("drain")).map(({ executionArn }) => executionArn));
  const asked = async () =>
    (await executions("drain"))
      .filter(({ executionArn, name }) => !known.has(executionArn) && !OF_DETECT.test(name))
      .map(({ executionArn }) => executionArn);

  const load = new Load(t, "Drained");
  const begun = performance.now();
  // Events of another group, and of another hook of this group, must not drain a node. EventBridge may deliver an event
  // twice.
  const told = [taken(stay.name, "others"), taken(stay.name, GROUP, "others"), taken(leader), taken(leader)];
  await send("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", told);
  const [drain, other] = await eventually(
    "one of two executions has the lease",
    async () => {
      const both = await asked();
      const holder = await rebalancer();
      const rest = both.filter((arn) => arn !== holder);
      return both.includes(holder) && rest[0] !== undefined && ([holder, rest[0]] as const);
    },
    EXECUTION_MS,
  );
  let fewest = Number.POSITIVE_INFINITY;
  const isEmpty = until("the node holds nothing", (map) => {
    fewest = Math.min(fewest, fewestAnswer(map));
    return held(map, leader) === 0;
  });
  await Promise.all([isEmpty, succeeded(drain)]);
  const seconds = (performance.now() - begun) / 1000;

  const after = await standing();
  assert.equal(after.states.get(leader), "draining");
  assert.equal(held(after, leader), 0);
  for (const [partition, nodes] of after.serving)
    assert.equal(nodes.length, REPLICAS, `partition ${partition} is served by ${nodes}`);
  assert.equal(fewest, REPLICAS, "a replica was dropped before others answered");

  const history = await History.of(drain);
  const moved = movesOf(history);
  console.log(`${moved.size} replicas moved in ${seconds.toFixed(1)} s, the node had ${had}`);
  assert.equal(moved.size, had, [...moved].join());
  assert.deepEqual(
    [...moved].filter((one) => !one.includes(` from ${leader} `)),
    [],
  );
  assert.deepEqual(history.given("Let the group go on"), [
    {
      AutoScalingGroupName: GROUP,
      LifecycleHookName: HOOK,
      InstanceId: leader,
      LifecycleActionResult: "CONTINUE",
    },
  ]);

  // Two executions at once: the second learned who has the lease, and moved nothing.
  const refused = await History.of(other);
  const [answer] = refused.left<Acquired>("Take the lease");
  assert.deepEqual([answer?.lease.ours, answer?.lease.lease.holder], [false, drain]);
  assert.deepEqual(movesOf(refused), new Set());
  const both = await asked();
  assert.deepEqual(both.toSorted(), [drain, other].toSorted());
  assert.deepEqual(await Promise.all(both.map(inputOf)), [{ node: leader }, { node: leader }]);
  // It would wait for minutes and then find nothing to do.
  await still();

  process.kill(leaves.pid, "SIGTERM");
  await until("the node is gone", ({ states }) => states.get(leader) === "gone");
  const acknowledged = load.acknowledged.length;
  await eventually("writes go on", async () => load.acknowledged.length >= acknowledged + 10, EXECUTION_MS);
  const next = await sequencer();
  assert.equal(after.states.get(next), "up", `the sequencer is ${next}`);
  await load.end();
});

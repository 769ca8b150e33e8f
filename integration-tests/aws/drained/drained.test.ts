/**
 * A machine is terminated under load. The Auto Scaling group announces it and waits. The rule for that event starts
 * `drain`, the node answers until other nodes have its replicas of all graphs, and only then the group is told to
 * continue. With several graphs, an execution of `drain` starts another one for each of them.
 *
 * LocalStack has no Auto Scaling. The test sends the group's event, and stops the daemon as the end of its machine
 * would. The call that tells the group to continue fails here, and the state machine treats it like the call for a
 * machine that stays.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deployed } from "../../src/aws.ts";
import {
  childrenOf,
  EXECUTION_MS,
  executions,
  History,
  inputOf,
  send,
  succeeded,
} from "../../src/aws-machines.ts";
import {
  fewestAnswer,
  held,
  Load,
  named,
  REPLICAS,
  rebalancer,
  sequencer,
  standing,
  still,
  until,
} from "../../src/aws-moves.ts";
import { eventually } from "../../src/server.ts";

const { graphs, nodes } = deployed();

const GROUP = "local-nodes";
const HOOK = "leaves";

/** Names of the executions that `detect` starts while the node is not empty yet. */
const OF_DETECT = /^drain-(\w+-)?\d+-\d+$/;

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

/** Returns the execution that moves replicas of a graph for an execution of `drain`, once there is one. */
async function workOf(drain: string, graph: string): Promise<string | undefined> {
  if (named(graph).graph === undefined) return drain;
  for (const { executionArn } of await childrenOf(drain)) {
    const input: { readonly graph?: string } | undefined = await inputOf(executionArn);
    if (input?.graph === graph) return executionArn;
  }
  return undefined;
}

/** An execution of `drain` that has the lease of a graph, the one that moves for it, and the other execution of `drain`. */
interface Drain {
  readonly drain: string;
  readonly work: string;
  readonly other: string;
}

/** Waits until one of two executions has the lease of a graph. */
function leased(graph: string, asked: () => Promise<string[]>): Promise<Drain> {
  const found = async (): Promise<Drain | undefined> => {
    const both = await asked();
    const holder = await rebalancer(graph);
    for (const [drain, other] of [both, both.toReversed()]) {
      if (drain === undefined || other === undefined) continue;
      if ((await workOf(drain, graph)) === holder) return { drain, work: holder, other };
    }
    return undefined;
  };
  return eventually(`one of two executions has the lease of ${graph}`, found, EXECUTION_MS);
}

/** Checks that the node is emptied of a graph, that no replica was dropped before others answered, and who moved it. */
async function checkGraph(graph: string, leader: string, had: number, drain: Drain, fewest: number) {
  const after = await standing(graph);
  assert.equal(after.states.get(leader), "draining");
  assert.equal(held(after, leader), 0);
  for (const [partition, those] of after.serving)
    assert.equal(those.length, REPLICAS, `partition ${partition} of ${graph} is served by ${those}`);
  assert.equal(fewest, REPLICAS, `a replica of ${graph} was dropped before others answered`);
  const moved = movesOf(await History.of(drain.work));
  assert.equal(moved.size, had, [...moved].join());
  const others = [...moved].filter((one) => !one.includes(` from ${leader} `));
  assert.deepEqual(others, []);

  // Two executions at once: the second learned who has the lease, and moved nothing.
  const work = await workOf(drain.other, graph);
  assert.ok(work, `the other execution does not know the graph ${graph}`);
  const refused = await History.of(work);
  const [answer] = refused.left<Acquired>("Take the lease");
  assert.deepEqual([answer?.lease.ours, answer?.lease.lease.holder], [false, drain.work]);
  assert.deepEqual(movesOf(refused), new Set());
}

test("a machine is taken away: its node is drained before, no read fails, nothing acknowledged is lost, and only its replicas move", async (t) => {
  await still();
  const [first = ""] = graphs;
  // The hardest case: the sequencer's node, which also orders writes.
  const leader = await sequencer(first);
  const leaves = nodes.find(({ name }) => name === leader);
  const before = await standing(first);
  assert.ok(leaves && before.states.get(leader) === "up", `the sequencer is ${leader}`);
  const stay = nodes.find(({ name }) => name !== leader && before.states.get(name) === "up");
  assert.ok(stay, "nobody is there to take what it holds");
  const had = await Promise.all(graphs.map(async (graph) => held(await standing(graph), leader)));
  assert.ok(!had.includes(0), `the node that is to be drained has ${had}`);
  const known = new Set((await executions("drain")).map(({ executionArn }) => executionArn));
  const asked = async () =>
    (await executions("drain"))
      .filter(({ executionArn, name }) => !known.has(executionArn) && !OF_DETECT.test(name))
      .map(({ executionArn }) => executionArn);

  const loads = graphs.map((graph) => new Load(t, "Drained", graph));
  const begun = performance.now();
  // Events of another group, and of another hook of this group, must not drain a node. EventBridge may deliver an event
  // twice.
  const told = [taken(stay.name, "others"), taken(stay.name, GROUP, "others"), taken(leader), taken(leader)];
  await send("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", told);
  const fewest = graphs.map(() => Number.POSITIVE_INFINITY);
  const areEmpty = graphs.map((graph, index) =>
    until(graph, "the node holds nothing", (map) => {
      fewest[index] = Math.min(fewest[index] ?? 0, fewestAnswer(map));
      return held(map, leader) === 0;
    }),
  );
  const drains = await Promise.all(graphs.map((graph) => leased(graph, asked)));
  await Promise.all(areEmpty);
  const seconds = (performance.now() - begun) / 1000;
  console.log(`the node had ${had} replicas of ${graphs}, which moved in ${seconds.toFixed(1)} s`);
  const working = [...new Set(drains.map(({ drain }) => drain))];
  await Promise.all(working.map(succeeded));

  for (const [index, graph] of graphs.entries())
    await checkGraph(graph, leader, had[index] ?? 0, drains[index] as Drain, fewest[index] ?? 0);
  for (const drain of working) {
    const children = await childrenOf(drain);
    assert.equal(children.length, graphs.length > 1 ? graphs.length : 0);
    for (const { status } of children) assert.equal(status, "SUCCEEDED");
    assert.deepEqual((await History.of(drain)).given("Let the group go on"), [
      {
        AutoScalingGroupName: GROUP,
        LifecycleHookName: HOOK,
        InstanceId: leader,
        LifecycleActionResult: "CONTINUE",
      },
    ]);
  }
  const both = await asked();
  assert.equal(both.length, 2, both.join());
  assert.deepEqual(await Promise.all(both.map(inputOf)), [{ node: leader }, { node: leader }]);
  // The other one would wait for minutes and then find nothing to do.
  await still();

  process.kill(leaves.pid, "SIGTERM");
  for (const [index, graph] of graphs.entries()) {
    await until(graph, "the node is gone", ({ states }) => states.get(leader) === "gone");
    const load = loads[index] as Load;
    const acknowledged = load.acknowledged.length;
    const goOn = async () => load.acknowledged.length >= acknowledged + 10;
    await eventually(`writes of ${graph} go on`, goOn, EXECUTION_MS);
    const next = await sequencer(graph);
    assert.equal((await standing(graph)).states.get(next), "up", `the sequencer of ${graph} is ${next}`);
  }
  for (const load of loads) await load.end();
});

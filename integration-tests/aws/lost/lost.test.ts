/**
 * A storage node is killed under load, and nobody intervenes: the rule that runs every minute starts `detect`, which
 * starts a `heal` for each graph, and the node's replicas are restored on other nodes.
 *
 * Executions of `detect` are express executions, which cannot be listed. Only `detect` names the executions that it
 * starts, so the test recognises them by name.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deployed } from "../../src/aws.ts";
import { EXECUTION_MS, execute, executions, succeeded } from "../../src/aws-machines.ts";
import { held, Load, named, REPLICAS, rebalancer, standing, until } from "../../src/aws-moves.ts";
import { eventually } from "../../src/server.ts";

const { graphs } = deployed();

/**
 * Waits until a node that was killed is lost to a graph, and its replicas are restored by an execution that is not in
 * `known`. Returns how long each took after the beginning, as text.
 */
async function restored(graph: string, lost: string, known: ReadonlySet<string>): Promise<string> {
  const begun = performance.now();
  const seconds = (): string => `${((performance.now() - begun) / 1000).toFixed(1)} s`;
  await until(graph, "the node is gone", ({ states }) => states.get(lost) === "gone");
  const gone = seconds();
  const holder = await eventually(
    `somebody heals ${graph}`,
    async () => (await rebalancer(graph)) || undefined,
    EXECUTION_MS,
  );
  const started = seconds();
  const healing = (await executions("heal")).find(({ executionArn }) => executionArn === holder);
  assert.ok(healing && !known.has(holder), `it is ${holder}`);
  // Such a name consists of the required action, one of several graphs, the epoch of the map, and the time in steps.
  const words = ["heal", ...Object.values(named(graph)), "\\d+", "\\d+"];
  assert.match(healing.name, new RegExp(`^${words.join("-")}$`));
  // A second execution, started by hand at the same time, learns who has the lease and does no harm.
  const other = execute("heal", { ...named(graph), patienceSeconds: 0 });
  await until(graph, "all replicas serve again", ({ serving }) =>
    [...serving.values()].every((nodes) => nodes.filter((node) => node !== lost).length >= REPLICAS),
  );
  const whole = seconds();
  await Promise.all([succeeded(holder), other]);
  return `noticed after ${gone}, heal began to move after ${started}, restored after ${whole}`;
}

test("a node is lost, no read fails, nothing acknowledged is, and its replicas are restored by themselves", async (t) => {
  const lost = deployed().nodes.at(-1);
  assert.ok(lost);
  const isRunning = async () => (await executions("heal")).some(({ status }) => status === "RUNNING");
  // An execution that has been waiting since the first placement would heal what is lost now.
  await eventually("nothing is healed", async () => !(await isRunning()), EXECUTION_MS);
  const known = new Set((await executions("heal")).map(({ executionArn }) => executionArn));
  const had = new Map<string, number>();
  for (const graph of graphs) {
    const count = held(await standing(graph), lost.name);
    assert.ok(count > 0, `the node that is to be lost has nothing of ${graph}`);
    had.set(graph, count);
  }
  const loads = graphs.map((graph) => new Load(t, "Lost", graph));
  process.kill(lost.pid, "SIGKILL");
  const told = await Promise.all(graphs.map((graph) => restored(graph, lost.name, known)));
  for (const [index, graph] of graphs.entries())
    console.log(`${graph}: ${had.get(graph)} replicas lost: ${told[index]}`);
  for (const load of loads) await load.end();
});

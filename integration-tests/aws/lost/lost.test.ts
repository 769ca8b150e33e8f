/**
 * A storage node is killed under load, and nobody intervenes: the rule that runs every minute starts `detect`, which
 * starts `heal`, and the node's replicas are restored on other nodes.
 *
 * Executions of `detect` are express executions, which cannot be listed. Only `detect` names the executions that it
 * starts, so the test recognises them by name.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deployed } from "../../src/aws.ts";
import { EXECUTION_MS, execute, executions, succeeded } from "../../src/aws-machines.ts";
import { Load, REPLICAS, rebalancer, standing, until } from "../../src/aws-moves.ts";
import { eventually } from "../../src/server.ts";

/** Such a name consists of the required action, the epoch of the map, and the time in steps. */
const OF_DETECT = /^heal-\d+-\d+$/;

test("a node is lost, no read fails, nothing acknowledged is, and its replicas are restored by themselves", async (t) => {
  const lost = deployed().nodes.at(-1);
  assert.ok(lost);
  const isRunning = async () => (await executions("heal")).some(({ status }) => status === "RUNNING");
  // An execution that has been waiting since the first placement would heal what is lost now.
  await eventually("nothing is healed", async () => !(await isRunning()), EXECUTION_MS);
  const known = new Set((await executions("heal")).map(({ executionArn }) => executionArn));
  const before = await standing();
  const had = [...before.serving.values()].filter((nodes) => nodes.includes(lost.name)).length;
  assert.ok(had > 0, "the node that is to be lost has nothing");
  const load = new Load(t, "Lost");
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  process.kill(lost.pid, "SIGKILL");
  await until("the node is gone", ({ states }) => states.get(lost.name) === "gone");
  const gone = seconds();
  const holder = await eventually(
    "somebody heals",
    async () => (await rebalancer()) || undefined,
    EXECUTION_MS,
  );
  const started = seconds();
  const healing = (await executions("heal")).find(({ executionArn }) => executionArn === holder);
  assert.ok(healing && !known.has(holder), `it is ${holder}`);
  assert.match(healing.name, OF_DETECT);
  // A second execution, started by hand at the same time, learns who has the lease and does no harm.
  const other = execute("heal", { patienceSeconds: 0 });
  await until("all replicas serve again", ({ serving }) =>
    [...serving.values()].every((nodes) => nodes.filter((node) => node !== lost.name).length >= REPLICAS),
  );
  const whole = seconds();
  await Promise.all([succeeded(holder), other]);
  console.log(
    `${had} replicas lost: noticed after ${gone.toFixed(1)} s, heal began to move after ${started.toFixed(1)} s, restored after ${whole.toFixed(1)} s`,
  );
  await load.end();
});

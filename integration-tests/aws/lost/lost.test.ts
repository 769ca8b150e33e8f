/** A storage node is killed under load: what it had is restored elsewhere by the state machine `heal`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deployed } from "../../src/aws.ts";
import { execute, Load, REPLICAS, standing, until } from "../../src/aws-moves.ts";

test("a node is lost, no read fails, nothing acknowledged is, and its replicas are restored", async () => {
  const lost = deployed().nodes.at(-1);
  assert.ok(lost);
  const before = await standing();
  const had = [...before.serving.values()].filter((nodes) => nodes.includes(lost.name)).length;
  assert.ok(had > 0, "the node that is to be lost has nothing");
  const load = new Load("Lost");
  const begun = performance.now();
  process.kill(lost.pid, "SIGKILL");
  await until("the node is gone", ({ states }) => states.get(lost.name) === "gone");
  const gone = (performance.now() - begun) / 1000;
  // Another one at the same time hears who is at it, and does nothing.
  await Promise.all([execute("heal", { patienceSeconds: 0 }), execute("heal", { patienceSeconds: 0 })]);
  await until("all replicas serve again", ({ serving }) =>
    [...serving.values()].every((nodes) => nodes.filter((node) => node !== lost.name).length >= REPLICAS),
  );
  const whole = (performance.now() - begun) / 1000;
  console.log(
    `${had} replicas lost: noticed after ${gone.toFixed(1)} s, restored after ${whole.toFixed(1)} s`,
  );
  await load.end();
});

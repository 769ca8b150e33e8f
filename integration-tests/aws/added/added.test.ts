/** A new storage node has joined: the state machine `scale-out` gives it its share, under load. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deployed } from "../../src/aws.ts";
import { execute } from "../../src/aws-machines.ts";
import { Load, REPLICAS, share, standing, until } from "../../src/aws-moves.ts";

test("a node that was added gets about its share, and no more moves than that", async (t) => {
  const added = deployed().nodes.at(-1);
  assert.ok(added);
  const before = await standing();
  assert.equal(share(before, added.name), 0);
  const load = new Load(t, "Added");
  const begun = performance.now();
  await execute("scaleOut", {});
  const fair = (before.serving.size * REPLICAS) / 3;
  await until("it has its share", (map) => share(map, added.name) >= Math.floor(fair));
  await until("each partition has as many replicas as it should", ({ serving }) =>
    [...serving.values()].every((nodes) => nodes.length === REPLICAS),
  );
  const seconds = (performance.now() - begun) / 1000;
  const after = await standing();
  const moved = share(after, added.name);
  console.log(`${moved} replicas moved in ${seconds.toFixed(1)} s; a fair share is ${fair.toFixed(1)}`);
  assert.ok(moved <= Math.ceil(fair), `${moved} replicas moved`);
  await load.end();
});

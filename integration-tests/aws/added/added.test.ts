/** A new storage node has joined: the state machine `scale-out` gives it its share of each graph, under load. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deployed } from "../../src/aws.ts";
import { execute } from "../../src/aws-machines.ts";
import { Load, named, REPLICAS, share, standing, until } from "../../src/aws-moves.ts";

const { graphs, nodes } = deployed();

/** Gives the node its share of a graph. */
async function balance(graph: string, added: string): Promise<void> {
  const before = await standing(graph);
  assert.equal(share(before, added), 0, graph);
  const begun = performance.now();
  await execute("scaleOut", named(graph));
  const fair = (before.serving.size * REPLICAS) / 3;
  await until(graph, "it has its share", (map) => share(map, added) >= Math.floor(fair));
  await until(graph, "each partition has as many replicas as it should", ({ serving }) =>
    [...serving.values()].every((those) => those.length === REPLICAS),
  );
  const seconds = (performance.now() - begun) / 1000;
  const moved = share(await standing(graph), added);
  console.log(
    `${graph}: ${moved} replicas moved in ${seconds.toFixed(1)} s; a fair share is ${fair.toFixed(1)}`,
  );
  assert.ok(moved <= Math.ceil(fair), `${moved} replicas of ${graph} moved`);
}

test("a node that was added gets about its share of each graph, and no more moves than that", async (t) => {
  const added = nodes.at(-1);
  assert.ok(added);
  const loads = graphs.map((graph) => new Load(t, "Added", graph));
  await Promise.all(graphs.map((graph) => balance(graph, added.name)));
  for (const load of loads) await load.end();
});

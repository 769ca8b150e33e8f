/**
 * Tests what the schemas of the partition map's items accept and refuse, and that the documentation names the same
 * attributes.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { mapItemProblem } from "../src/index.ts";
import { contractPath } from "../src/paths.ts";

const marks = { changedAt: 7, changes: 2 };
const items = {
  graph: {
    graph: "people",
    item: "map#graph",
    ...marks,
    name: "people",
    partitions: 64,
    shards: 1,
    hashBits: 64,
    replicationFactor: 2,
  },
  node: {
    graph: "people",
    item: "map#node#i-0123456789abcdef0",
    ...marks,
    zone: "eu-west-3a",
    endpoint: "10.42.0.7:7600",
    capacityBytes: 1_000_000_000_000,
    roles: ["storage", "sequencer"],
    state: "up",
    generation: 1,
  },
  partition: {
    graph: "people",
    item: "map#part#00063",
    ...marks,
    replicas: { "i-0": "serving", "i-1": "catching-up" },
  },
  beat: {
    graph: "people",
    item: "beat#i-0",
    generation: 1,
    counter: 12,
    diskFull: false,
    usedBytes: 0,
    applied: "4711:0-15,32;4709:16",
  },
  checkpoint: { graph: "people", item: "checkpoint#00000", version: 4711, prefix: "c/data-4711" },
  lease: {
    graph: "people",
    item: "lease#sequencer",
    holder: "",
    endpoint: "",
    epoch: 3,
    counter: 9,
    ttlMs: 1500,
  },
  release: { graph: "people", item: "release#i-0", generation: 1, release: "0.2.0" },
  upgrade: {
    graph: "people",
    item: "upgrade",
    serial: 7,
    release: "0.2.0",
    state: "running",
    holder: "arn:aws:states:eu-west-3:123456789012:execution:upgrade:1",
    capacity: 3,
    launched: true,
    reason: "",
  },
  snapshot: {
    graph: "people",
    item: "snapshot",
    format: 1,
    incarnation: "9f86d081884c7d65",
    epoch: 812,
    body: new Uint8Array([31, 139]),
  },
};

test("items of the daemons are accepted", () => {
  for (const item of Object.values(items)) assert.equal(mapItemProblem(item), undefined);
  assert.equal(mapItemProblem({ ...items.beat, applied: "" }), undefined);
  const gremlin = { ids: "typed", defaultCardinality: "single" };
  assert.equal(mapItemProblem({ ...items.graph, gremlin }), undefined);
  assert.equal(mapItemProblem({ ...items.graph, gremlin: { ids: "longs" } }), undefined);
  const stuck = [{ partition: 0, version: 4712, reason: "a segment is missing" }];
  assert.equal(mapItemProblem({ ...items.beat, stuck }), undefined);
  assert.equal(mapItemProblem({ ...items.partition, replicas: {} }), undefined);
  assert.equal(mapItemProblem({ ...items.upgrade, floor: "0.1.3" }), undefined);
  assert.equal(mapItemProblem({ ...items.snapshot, epoch: 0, body: new Uint8Array() }), undefined);
});

test("a missing, unknown or mistyped attribute is refused with the item and the place", () => {
  for (const item of Object.values(items)) {
    for (const [name, value] of Object.entries(item)) {
      if (name === "item") continue;
      const { [name as "graph"]: _, ...less } = item;
      assert.match(mapItemProblem(less) ?? "", /required/, `${item.item} without ${name}`);
      const other = typeof value === "number" ? String(value) : 1;
      assert.ok(mapItemProblem({ ...item, [name]: other })?.startsWith(item.item), `${item.item} ${name}`);
    }
    assert.ok(mapItemProblem({ ...item, colour: "red" }), `${item.item} with more`);
  }
  assert.match(mapItemProblem({ ...items.release, release: "0.2" }) ?? "", /release/);
  assert.match(mapItemProblem({ ...items.upgrade, state: "begun" }) ?? "", /state/);
  assert.match(mapItemProblem({ ...items.graph, gremlin: { ids: "uuids" } }) ?? "", /gremlin/);
  assert.match(mapItemProblem({ ...items.node, state: "lost" }) ?? "", /state/);
  assert.match(mapItemProblem({ ...items.partition, replicas: { "i-0": "gone" } }) ?? "", /replicas/);
  for (const item of ["map#part#63", "map#node#", "map#nobody", "checkpoint#0", "", undefined]) {
    assert.ok(mapItemProblem({ ...items.partition, item }), String(item));
  }
});

test("the documentation names the same attributes", () => {
  const page = readFileSync(contractPath("../docs/partition-map.md"), "utf8");
  for (const item of Object.values(items)) {
    const key = item.item.replace(/#(i-[0-9a-f]+|\d+|sequencer)$/, "#");
    const row = page.split("\n").find((line) => line.startsWith(`| \`${key}`)) ?? "";
    for (const name of Object.keys(item)) {
      if (name === "graph" || name === "item") continue;
      assert.ok(row.includes(`\`${name}\``), `${key}: ${name} is not in: ${row}`);
    }
  }
});

/** Tests which drops are taken, that each is taken once, and why the others are refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Input, inputSchema, intake, type Taken } from "../src/intake.ts";
import { golden, Memory, problem } from "./memory.ts";

const BUCKET = "example-drop";

/** Makes a drop bucket, and a map from load ids to the executions that took the loads. */
function world(graphs = ["people"]) {
  const drop = new Memory(BUCKET);
  const owners = new Map<string, string>();
  const claim = async (loadId: string, execution: string): Promise<string> => {
    if (!owners.has(loadId)) owners.set(loadId, execution);
    return owners.get(loadId) ?? "";
  };
  const take = (key: string, execution = "first", bucket = BUCKET): Promise<Taken> => {
    const input: Input = { execution, input: { detail: { bucket: { name: bucket }, object: { key } } } };
    return intake(inputSchema.parse(input), { graphs, drop, claim });
  };
  return { drop, owners, take };
}

/** Checks that a drop is refused, and returns the reason. */
function reason(taken: Taken): string {
  assert.equal(taken.outcome, "refused");
  return taken.outcome === "refused" ? taken.reason : "";
}

const KEY = "drop/people/2026-11-22/_SUCCESS";

test("a mark begins a load with the event of the contract", async () => {
  const { drop, owners, take } = world();
  drop.put(KEY);
  const taken = await take(KEY);
  assert.equal(taken.outcome, "load");
  if (taken.outcome !== "load") return;
  assert.equal(problem("ingest-event", taken.begin), undefined);
  assert.deepEqual(taken.begin, {
    ...(golden.events?.[0] as object),
    loadId: taken.load.loadId,
    source: "s3://example-drop/drop/people/2026-11-22/",
  });
  assert.equal(taken.load.report, `reports/people/2026-11-22/${taken.load.loadId}.json`);
  assert.equal(owners.get(taken.load.loadId), "first");
});

test("with several graphs, the folder names the graph of the load, and each step gets it", async () => {
  const { drop, take } = world(["people", "orders"]);
  for (const graph of ["people", "orders"]) {
    const key = `drop/${graph}/first/_SUCCESS`;
    drop.put(key);
    const taken = await take(key);
    assert.ok(taken.outcome === "load");
    assert.equal(problem("ingest-event", taken.begin), undefined);
    assert.deepEqual([taken.load.graph, taken.begin.graph], [graph, graph]);
    assert.equal(taken.load.source, `s3://example-drop/drop/${graph}/first/`);
    assert.equal(taken.load.report, `reports/${graph}/first/${taken.load.loadId}.json`);
  }
  const cases: [string, RegExp][] = [
    ["drop/others/first/_SUCCESS", /the graph is "others", and this is the drop bucket of people, orders/],
    ["drop/orders/_SUCCESS", /has no name of a load: drop\/GRAPH\/NAME\/_SUCCESS/],
  ];
  for (const [key, why] of cases) {
    drop.put(key);
    assert.match(reason(await take(key)), why);
  }
});

test("a manifest becomes a list of names if its files exist with the expected ETags", async () => {
  const { drop, take } = world();
  const folder = "drop/people/2026-11-22/";
  for (const name of ["a.csv", "b/c.csv"]) drop.put(folder + name, name);
  const etag = `"${await drop.etag(`${folder}b/c.csv`)}"`;
  const mark = (files: unknown): void => drop.put(KEY, JSON.stringify({ files, format: "csv" }));
  mark(["a.csv", { name: "b/c.csv", etag }]);
  const taken = await take(KEY);
  assert.ok(taken.outcome === "load");
  assert.equal(problem("ingest-event", taken.begin), undefined);
  assert.deepEqual([taken.begin.files, taken.begin.format], [["a.csv", "b/c.csv"], "csv"]);
  drop.put(`${folder}b/c.csv`, "another");
  mark([{ name: "b/c.csv", etag }]);
  assert.match(
    reason(await take(KEY)),
    /files\[0\] is "b\/c\.csv" with the ETag [0-9a-f]{32}, and the object's/,
  );
  mark(["a.csv", "gone.csv"]);
  assert.match(
    reason(await take(KEY)),
    /files\[1\] is "gone\.csv", and there is no such object in drop\/people/,
  );
  mark(["a.csv", { name: "a.csv" }]);
  assert.match(reason(await take(KEY)), /files has "a\.csv" twice/);
});

test("a repeated event and a rewritten mark name the same load, which the first execution keeps", async () => {
  const { drop, owners, take } = world();
  drop.put(KEY, "{}");
  const first = await take(KEY, "first");
  drop.put(KEY, "{}", new Date());
  assert.deepEqual(await take(KEY, "first"), first, "a step that is run again goes on");
  const second = await take(KEY, "second");
  assert.equal(second.outcome, "already");
  assert.equal(owners.size, 1);
});

test("another content or another folder of the mark makes another load", async () => {
  const { drop, owners, take } = world();
  for (const content of ["", "{}", '{"attempt": 1}', '{"attempt": 2}']) {
    drop.put(KEY, content);
    assert.equal((await take(KEY)).outcome, "load", content);
  }
  drop.put("drop/people/other/_SUCCESS");
  assert.equal((await take("drop/people/other/_SUCCESS")).outcome, "load");
  assert.equal(owners.size, 5);
});

test("ids are UUIDs that do not change between releases", async () => {
  const { drop, take } = world();
  drop.put(KEY);
  const taken = await take(KEY);
  assert.ok(taken.outcome === "load");
  assert.equal(taken.load.loadId, "4c1319a3-4694-553b-a7e0-4dd33a7f089e");
});

test("a drop with a report is not taken again, even if the table has forgotten it", async () => {
  const { drop, owners, take } = world();
  drop.put(KEY);
  const taken = await take(KEY, "first");
  assert.ok(taken.outcome === "load");
  drop.put(taken.load.report, "{}");
  owners.clear();
  assert.equal((await take(KEY, "second")).outcome, "already");
  assert.equal(owners.size, 0);
});

test("other graphs, invalid names and marks over the limit are refused without a claim", async () => {
  const { drop, owners, take } = world();
  const cases: [string, RegExp][] = [
    ["drop/others/first/_SUCCESS", /the graph is "others", and this is the drop bucket of people/],
    ["drop/people/_SUCCESS", /no name of a load: drop\/people\/NAME\/_SUCCESS/],
    ["drop//first/_SUCCESS", /the graph is ""/],
    ["drop/people//_SUCCESS", /the name of the load is ""/],
    ["drop/people/../_SUCCESS", /the name of the load is "\.\.", and has to be 1 to 128 letters/],
    ["drop/people/with space/_SUCCESS", /"with space"/],
    [`drop/people/${"x".repeat(129)}/_SUCCESS`, /1 to 128/],
  ];
  for (const [key, expected] of cases) {
    drop.put(key);
    const taken = await take(key);
    assert.match(reason(taken), expected, key);
    assert.ok(taken.outcome === "refused");
    assert.equal(taken.load.source, `s3://example-drop/${key}`);
    const folder = key.replace(/^drop\//, "reports/").replace(/_SUCCESS$/, "");
    assert.equal(taken.load.report, `${folder}${taken.load.loadId}.json`);
  }
  drop.put(KEY, `{"format": "${"x".repeat(128 << 10)}"}`);
  assert.match(reason(await take(KEY)), /more than 131072 bytes/);
  drop.put(KEY, '{"format": "xls"}');
  assert.match(reason(await take(KEY)), /"xls"/);
  assert.equal(owners.size, 0);
});

test("marks inside a load, in other buckets, and deleted marks are ignored", async () => {
  const { drop, take } = world();
  const inside = ["drop/people/first/nodes/_SUCCESS", "drop/people/a/b/c/_SUCCESS"];
  const others = ["reports/people/first/_SUCCESS", "drop/people/first/_SUCCESS.csv", "_SUCCESS"];
  for (const key of [...inside, ...others]) {
    drop.put(key);
    assert.equal((await take(key)).outcome, "ignored", key);
  }
  assert.equal((await take(KEY)).outcome, "ignored");
  drop.put(KEY);
  assert.equal((await take(KEY, "first", "another-bucket")).outcome, "ignored");
});

test("inputs are accepted and refused as the contract says", () => {
  const { inputs = [], refusedInputs = [] } = golden;
  for (const input of inputs) assert.ok(inputSchema.parse({ execution: "first", input }));
  for (const input of refusedInputs) {
    assert.equal(inputSchema.safeParse({ execution: "first", input }).success, false, JSON.stringify(input));
  }
});

test("a mark whose folder leaves no room for a report is ignored, and a shorter one is refused", async () => {
  const { drop, take } = world();
  // The id of a load has 36 characters.
  const longest = 1024 - "reports//.json".length - 36;
  const outcome = async (bytes: number): Promise<string> => {
    const folder = `people/${"x".repeat(bytes - 9)}ü`;
    assert.equal(Buffer.byteLength(folder), bytes);
    drop.put(`drop/${folder}/_SUCCESS`);
    return (await take(`drop/${folder}/_SUCCESS`)).outcome;
  };
  assert.deepEqual([await outcome(longest), await outcome(longest + 1)], ["refused", "ignored"]);
});

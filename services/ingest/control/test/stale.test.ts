/** Tests that stale drops are found with few requests and reported once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { look, type Parts } from "../src/stale.ts";
import { Memory, problem } from "./memory.ts";

const NOW = new Date("2026-11-22T12:00:00Z");
const HOUR = 3_600_000;
const ago = (hours: number): Date => new Date(NOW.getTime() - hours * HOUR);

function parts(drop: Memory, requests = 1000): Parts {
  return { graph: "people", drop, patienceMs: 6 * HOUR, now: NOW, requests };
}

test("a folder without a mark or new objects is reported once", async () => {
  const drop = new Memory("example-drop");
  drop.put("drop/people/stale/a.csv", "", ago(9));
  drop.put("drop/people/stale/b/c.csv", "", ago(7));
  drop.put("drop/people/stale/d.csv", "", ago(8));
  drop.put("drop/people/grows/a.csv", "", ago(9));
  drop.put("drop/people/grows/b.csv", "", ago(5));
  drop.put("drop/people/whole/a.csv", "", ago(9));
  drop.put("drop/people/whole/_SUCCESS", "", ago(8));
  // Marks in deeper folders mean nothing.
  drop.put("drop/people/tables/nodes/_SUCCESS", "", ago(8));
  // A file beside the folders, and another graph.
  drop.put("drop/people/stray.csv", "", ago(9));
  drop.put("drop/others/first/a.csv", "", ago(9));
  const { stale, told, after } = await look(parts(drop), undefined);
  assert.deepEqual(
    stale.map(({ folder }) => folder),
    ["drop/people/stale/", "drop/people/tables/"],
  );
  assert.deepEqual([told, after], [stale, undefined]);
  const report = drop.json("reports/people/stale/stale.json");
  assert.equal(problem("ingest-report", report), undefined);
  assert.deepEqual(report, {
    status: "LOAD_NOT_STARTED",
    source: "s3://example-drop/drop/people/stale/",
    newest: "drop/people/stale/b/c.csv",
    newestTime: ago(7).getTime() / 1000,
    objects: 3,
    message: "there is no _SUCCESS, and nothing came for 6 hours",
  });
  const again = await look(parts(drop), undefined);
  assert.deepEqual([again.stale.length, again.told.length], [2, 0]);
});

test("a folder whose name leaves no room for a report or a mark does not stop the search", async () => {
  const drop = new Memory("example-drop");
  const root = "drop/people/";
  // The longest folder that has an object, one with room for a mark only, and one with room for a report too.
  const lengths = [1022, 1024 - "/_SUCCESS".length, 1024 - "reports/stale.json".length + "drop/".length - 1];
  const folders = lengths.map((length, at) => `${root}${at}${"x".repeat(length - root.length - 1)}/`);
  for (const folder of folders) drop.put(`${folder}a`, "", ago(9));
  drop.put(`${root}last/a.csv`, "", ago(9));
  const { stale, told } = await look(parts(drop), undefined);
  assert.deepEqual(
    stale.map(({ folder }) => folder),
    [...folders, `${root}last/`],
  );
  assert.deepEqual(told, stale.slice(2));
});

test("a drop that was completed meanwhile is not stale", async () => {
  const drop = new Memory("example-drop");
  drop.put("drop/people/late/a.csv", "", ago(9));
  assert.equal((await look(parts(drop), undefined)).stale.length, 1);
  drop.put("drop/people/late/_SUCCESS", "", NOW);
  assert.equal((await look(parts(drop), undefined)).stale.length, 0);
});

test("all pages of folders and files are read", async () => {
  const drop = new Memory("example-drop", 2);
  for (const name of ["a", "b", "c", "d", "e"]) {
    for (const file of [1, 2, 3, 4, 5]) drop.put(`drop/people/${name}/${file}.csv`, "", ago(20 - file));
  }
  // The newest object is on the last page.
  drop.put("drop/people/c/9.csv", "", ago(1));
  const { stale } = await look(parts(drop), undefined);
  assert.deepEqual(
    stale.map(({ folder, objects }) => `${folder} ${objects}`),
    ["a", "b", "d", "e"].map((name) => `drop/people/${name}/ 5`),
  );
});

test("a search keeps to its limit of requests, and the next one continues after it", async () => {
  const drop = new Memory("example-drop", 3);
  const names = ["a", "b", "b0", "c", "d", "e", "f", "g"];
  for (const name of names) drop.put(`drop/people/${name}/1.csv`, "", ago(9));
  const found: string[] = [];
  let after: string | undefined;
  let looks = 0;
  do {
    drop.requests = 0;
    const some = await look(parts(drop, 7), after);
    assert.ok(drop.requests <= 8, `${drop.requests} requests`);
    found.push(...some.stale.map(({ folder }) => folder));
    after = some.after;
    looks += 1;
  } while (after !== undefined && looks < 20);
  assert.ok(looks > 2, `${looks} looks`);
  assert.deepEqual(
    found,
    names.map((name) => `drop/people/${name}/`),
  );
});

test("an empty bucket costs one request", async () => {
  const drop = new Memory("example-drop");
  assert.deepEqual(await look(parts(drop), undefined), { stale: [], told: [], after: undefined });
  assert.equal(drop.requests, 1);
});

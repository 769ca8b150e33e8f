/**
 * The drop folder: each folder in it is one load, taken exactly once when `_SUCCESS` appears in it, either immediately
 * or at the next start.
 */
import assert from "node:assert/strict";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { cypherValue } from "../src/client.ts";
import { dataPath, LIBRARY } from "../src/data.ts";
import { eventually, Server } from "../src/server.ts";

const LOOKING_MS = 2_000;

const count = (server: Server) => cypherValue(server, "MATCH (n) RETURN count(n)");
const edges = (server: Server) => cypherValue(server, "MATCH ()-[r]->() RETURN count(r)");
const done = (folder: string) => writeFile(join(folder, "_SUCCESS"), "");

/** Copies files of `data/` into a folder of the drop folder, without marking them as complete. */
async function drop(server: Server, name: string, files: readonly string[]): Promise<string> {
  const folder = join(server.drop, name);
  await mkdir(folder);
  for (const file of files) await copyFile(dataPath(file), join(folder, file.replace(/^.*\//, "")));
  return folder;
}

for (const files of [
  ["gremlin/vertices.csv", "gremlin/edges.csv"],
  ["opencypher/nodes.csv", "opencypher/relationships.csv"],
]) {
  test(`a dropped folder with ${files.join(" and ")} is loaded when it is complete`, async (t) => {
    const server = await Server.start(t);
    const folder = await drop(server, "library", files);
    await sleep(LOOKING_MS);
    assert.equal(await count(server), 0, "it was loaded before it was complete");
    await done(folder);
    await eventually("all vertices are there", async () => (await count(server)) === LIBRARY.vertices);
    assert.equal(await edges(server), LIBRARY.edges, "vertices and edges become visible together");
  });
}

test("what was dropped while the service was down is loaded at its start, once", async (t) => {
  const server = await Server.start(t);
  await server.stop();
  await done(await drop(server, "library", ["gremlin/vertices.csv"]));
  await server.start();
  await eventually("all vertices are there", async () => (await count(server)) === LIBRARY.vertices);
  await cypherValue(server, "MATCH (n) WHERE id(n) = 'b1' DETACH DELETE n RETURN count(*)");
  await server.stop();
  await server.start();
  await sleep(LOOKING_MS);
  assert.equal(await count(server), LIBRARY.vertices - 1, "it was loaded again");
});

test("a bad load does no harm: nothing of it is seen, and the next one is loaded", async (t) => {
  const server = await Server.start(t);
  await done(await drop(server, "bad", ["gremlin/edges.csv", "bad/missing-id.csv"]));
  await done(await drop(server, "good", ["gremlin/vertices.csv"]));
  await eventually("the good one is loaded", async () => (await count(server)) === LIBRARY.vertices);
  assert.equal(await edges(server), 0);
});

/** The drop folder: files that are copied into it are loaded, also those that were there before. */
import assert from "node:assert/strict";
import { copyFile, mkdtemp, rename, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { cypherValue } from "../src/client.ts";
import { dataPath, LIBRARY } from "../src/data.ts";
import { eventually, Server } from "../src/server.ts";

const count = (server: Server) => cypherValue(server, "MATCH (n) RETURN count(n)");
const edges = (server: Server) => cypherValue(server, "MATCH ()-[r]->() RETURN count(r)");

for (const [dialect, files] of [
  ["gremlin", ["vertices.csv", "edges.csv"]],
  ["opencypher", ["nodes.csv", "relationships.csv"]],
] as const) {
  test(`files in the ${dialect} dialect that are copied into the drop folder are loaded`, async (t) => {
    const server = await Server.start(t);
    for (const file of files) await copyFile(dataPath(`${dialect}/${file}`), join(server.drop, file));
    await eventually("all vertices are there", async () => (await count(server)) === LIBRARY.vertices);
    await eventually("all edges are there", async () => (await edges(server)) === LIBRARY.edges);
  });
}

test("a file that was moved in while the service was down is loaded at its start, once", async (t) => {
  const server = await Server.start(t);
  await server.stop();
  const folder = await mkdtemp(join(tmpdir(), "tidegraph-drop-"));
  await copyFile(dataPath("gremlin/vertices.csv"), join(folder, "vertices.csv"));
  await rename(join(folder, "vertices.csv"), join(server.drop, "vertices.csv"));
  await server.start();
  await eventually("all vertices are there", async () => (await count(server)) === LIBRARY.vertices);
  await cypherValue(server, "MATCH (n) WHERE id(n) = 'b1' DETACH DELETE n RETURN count(*)");
  await server.stop();
  await server.start();
  await new Promise((done) => setTimeout(done, 2_000));
  assert.equal(await count(server), LIBRARY.vertices - 1, "it was loaded again");
});

test("a bad file does no harm: nothing of it is seen, and the next one is loaded", async (t) => {
  const server = await Server.start(t);
  await writeFile(join(server.drop, "bad.csv"), "~label,name:String\nBook,Nobody\n");
  await copyFile(dataPath("gremlin/vertices.csv"), join(server.drop, "vertices.csv"));
  await eventually("the good file is loaded", async () => (await count(server)) === LIBRARY.vertices);
});

/** Compressed files, complete and truncated, through the loader and through the drop folder. */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { cypherValue, load } from "../src/client.ts";
import { dataPath, dataUri, LIBRARY, manyVertices, writeSource } from "../src/data.ts";
import { shared } from "../src/fleet.ts";
import { eventually, Server } from "../src/server.ts";

const vertices = (server: Server) => cypherValue(server, "MATCH (n) RETURN count(n)");

/** Drops a folder and returns the report that the service leaves in it. */
async function dropped(server: Server, name: string, files: Record<string, Uint8Array>) {
  const folder = join(server.drop, name);
  await mkdir(folder);
  for (const [file, bytes] of Object.entries(files)) await writeFile(join(folder, file), bytes);
  await writeFile(join(folder, "_SUCCESS"), "");
  const report = await eventually("a report is left", () =>
    readFile(join(folder, "_REPORT.json"), "utf8").catch(() => undefined),
  );
  return JSON.parse(report) as { status: string; errorLogs: { fileName: string }[] };
}

test("through the loader", async (t) => {
  const server = await Server.start(t);
  const bz2 = await load(server, {
    source: dataUri("compressed/vertices.csv.bz2"),
    format: "csv",
    queueRequest: true,
  });
  assert.equal(bz2.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(bz2));
  assert.equal(await vertices(server), LIBRARY.vertices);

  const half = gzipSync(manyVertices("m", 10));
  const members = Buffer.concat([half, gzipSync("m10,Row,10\nm11,Row,11\n")]);
  const source = await writeSource(server.home, "in/members.csv.gz", members);
  const gzip = await load(server, { source, format: "csv", queueRequest: true });
  assert.equal(gzip.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(gzip));
  assert.equal(await cypherValue(server, "MATCH (n:Row) RETURN count(n)"), 12, "members are one file");

  const whole = await readFile(dataPath("compressed/vertices.csv.bz2"));
  for (const [name, bytes] of [
    ["cut.csv.bz2", whole.subarray(0, whole.length - 40)],
    ["no.csv.bz2", Buffer.from("~id,~label\nx,Row\n")],
    ["no.csv.gz", Buffer.from("~id,~label\nx,Row\n")],
    ["empty.csv.gz", Buffer.alloc(0)],
  ] as const) {
    const bad = await load(server, {
      source: await writeSource(server.home, `in/${name}`, bytes),
      format: "csv",
      mode: "NEW",
      queueRequest: true,
    });
    assert.equal(bad.overallStatus.status, "LOAD_FAILED", `${name}: ${JSON.stringify(bad)}`);
    assert.ok(JSON.stringify(bad).includes(name));
  }
  assert.equal(await vertices(server), LIBRARY.vertices + 12);
});

test("through the drop folder", { skip: shared() && "workers have no drop folder" }, async (t) => {
  const server = await Server.start(t);
  const good = await dropped(server, "good", {
    "vertices.csv.bz2": await readFile(dataPath("compressed/vertices.csv.bz2")),
    "edges.csv.gz": gzipSync(await readFile(dataPath("gremlin/edges.csv"))),
  });
  assert.equal(good.status, "LOAD_COMPLETED", JSON.stringify(good));
  assert.equal(await vertices(server), LIBRARY.vertices);
  assert.equal(await cypherValue(server, "MATCH ()-[r]->() RETURN count(r)"), LIBRARY.edges);
  const whole = gzipSync(manyVertices("cut", 5_000));
  const cut = await dropped(server, "cut", { "cut.csv.gz": whole.subarray(0, whole.length - 200) });
  assert.equal(cut.status, "LOAD_FAILED", JSON.stringify(cut));
  assert.match(cut.errorLogs[0]?.fileName ?? "", /cut\.csv\.gz$/);
  assert.equal(await vertices(server), LIBRARY.vertices);
});

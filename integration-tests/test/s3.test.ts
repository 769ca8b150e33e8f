/** Loads from s3:// sources, from a real S3 server in its own process. */
import assert from "node:assert/strict";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { cypherValue, load } from "../src/client.ts";
import { dataPath, LIBRARY, manyVertices } from "../src/data.ts";
import { servePython } from "../src/python.ts";
import { Server } from "../src/server.ts";

const BUCKET = "tidegraph-sources";
const ROWS = 40_000;

/** Serves the library in both dialects and a large compressed object; stops when the test ends. */
async function s3(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tidegraph-s3-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const dialect of ["gremlin", "opencypher"]) {
    await cp(dataPath(dialect), join(folder, "library", dialect), { recursive: true });
  }
  await writeFile(join(folder, "library", "gremlin", "_SUCCESS"), "");
  const zipped = gzipSync(manyVertices("z", ROWS));
  await writeFile(join(folder, "zipped.csv.gz"), zipped);
  await writeFile(join(folder, "cut.csv.gz"), zipped.subarray(0, zipped.length / 2));
  return (await servePython(t, "s3_server.py", BUCKET, folder)).line;
}

test("loads from S3", async (t) => {
  const endpoint = await s3(t);
  const server = await Server.start(t, {
    loadFrom: [`s3://${BUCKET}/`, "s3://tidegraph-nowhere/library"],
    env: {
      AWS_ENDPOINT_URL: endpoint,
      AWS_ALLOW_HTTP: "true",
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
    },
  });
  const from = (source: string, format: "csv" | "opencypher" = "csv") =>
    load(server, { source, format, region: "eu-central-1", mode: "NEW", queueRequest: true });
  const vertices = () => cypherValue(server, "MATCH (n) RETURN count(n)");

  await t.test("a prefix, in each dialect", async () => {
    const first = await from(`s3://${BUCKET}/library/gremlin/`);
    assert.equal(first.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(first));
    assert.deepEqual(first.feedCount, [{ LOAD_COMPLETED: 2 }]);
    assert.equal(first.overallStatus.fullUri, `s3://${BUCKET}/library/gremlin/`);
    const second = await from(`s3://${BUCKET}/library/open`, "opencypher");
    assert.equal(second.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(second));
    assert.equal(await vertices(), LIBRARY.vertices);
    assert.equal(await cypherValue(server, "MATCH ()-[r]->() RETURN count(r)"), LIBRARY.edges);
    assert.equal(await cypherValue(server, "MATCH (b:Book) WHERE id(b) = 'b8' RETURN b.name"), "Ebb");
  });

  await t.test("one compressed object", async () => {
    const status = await from(`s3://${BUCKET}/zipped.csv.gz`);
    assert.equal(status.overallStatus.status, "LOAD_COMPLETED", JSON.stringify(status));
    assert.equal(await cypherValue(server, "MATCH (n:Row) RETURN sum(n.number)"), (ROWS * (ROWS - 1)) / 2);
  });

  await t.test("an object that is cut short leaves nothing", async () => {
    const before = await vertices();
    const status = await from(`s3://${BUCKET}/cut.csv.gz`);
    assert.equal(status.overallStatus.status, "LOAD_FAILED", JSON.stringify(status));
    assert.match(JSON.stringify(status.errors?.errorLogs), /cut\.csv\.gz/);
    assert.equal(await vertices(), before);
  });

  await t.test("a bucket that does not exist, and a prefix without objects", async () => {
    const bucket = await from("s3://tidegraph-nowhere/library/");
    assert.match(bucket.overallStatus.status, /^LOAD_(FAILED|S3_READ_ERROR)$/, JSON.stringify(bucket));
    assert.match(JSON.stringify(bucket), /tidegraph-nowhere/);
    const prefix = await from(`s3://${BUCKET}/nothing/`);
    assert.match(prefix.overallStatus.status, /^LOAD_(FAILED|S3_READ_ERROR)$/, JSON.stringify(prefix));
    assert.match(JSON.stringify(prefix), /there are no files/);
  });

  await t.test("credentials that the store refuses", async () => {
    const before = await vertices();
    // From now on the server checks credentials, and it knows none.
    const checked = await fetch(`${endpoint}/moto-api/reset-auth`, { method: "POST", body: "0" });
    assert.equal(checked.status, 200, await checked.text());
    const status = await from(`s3://${BUCKET}/library/gremlin/`);
    assert.equal(status.overallStatus.status, "LOAD_S3_ACCESS_DENIED_ERROR", JSON.stringify(status));
    assert.equal(await vertices(), before);
  });
});

/**
 * The removal of one graph: the code of the function (`infra/removal/`) against moto's S3 and DynamoDB. A script stands in
 * for `tidegraph-node`, which needs a log as well; `integration-tests/fleet/graphs.mjs` runs the program.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import * as dynamodb from "@aws-sdk/client-dynamodb";
import * as s3 from "@aws-sdk/client-s3";
import { temporaryFolder } from "../lib/temporary.ts";
import {
  type Event,
  type RemovalError,
  type Removed,
  remove,
  type Surroundings,
} from "../removal/removal.ts";
import { REGION } from "./create.ts";
import { Moto } from "./server.ts";

const TABLE = "example-map";
const DATA = "the-data";
const DROP = "the-drops";
const home = temporaryFolder("removal");

let moto: Moto;
let map: dynamodb.DynamoDBClient;
let objects: s3.S3Client;

before(async () => {
  moto = await Moto.start();
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const options = { endpoint: moto.endpoint, region: REGION, credentials };
  map = new dynamodb.DynamoDBClient(options);
  objects = new s3.S3Client({ ...options, forcePathStyle: true });
  const attribute = (AttributeName: string) => ({ AttributeName, AttributeType: "S" as const });
  await map.send(
    new dynamodb.CreateTableCommand({
      TableName: TABLE,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [attribute("graph"), attribute("item")],
      KeySchema: [
        { AttributeName: "graph", KeyType: "HASH" },
        { AttributeName: "item", KeyType: "RANGE" },
      ],
    }),
  );
  for (const Bucket of [DATA, DROP]) {
    const CreateBucketConfiguration = { LocationConstraint: REGION as s3.BucketLocationConstraint };
    await objects.send(new s3.CreateBucketCommand({ Bucket, CreateBucketConfiguration }));
  }
  const versioned = { Bucket: DATA, VersioningConfiguration: { Status: "Enabled" as const } };
  await objects.send(new s3.PutBucketVersioningCommand(versioned));
});
after(async () => {
  map.destroy();
  objects.destroy();
  await moto.stop();
});

/** Makes a graph: its item in the map, and objects in both buckets, one of them twice and one deleted. */
async function make(graph: string, folder = `graphs/${graph}/`): Promise<void> {
  const Item = { graph: { S: graph }, item: { S: "map#graph" }, name: { S: graph } };
  await map.send(new dynamodb.PutItemCommand({ TableName: TABLE, Item }));
  const put = (Bucket: string, Key: string) =>
    objects.send(new s3.PutObjectCommand({ Bucket, Key, Body: "some bytes" }));
  for (const path of ["checkpoints/p1/data", "checkpoints/p1/data", "ingest/l/x", "loads/l/v"])
    await put(DATA, `${folder}${path}`);
  await objects.send(new s3.DeleteObjectCommand({ Bucket: DATA, Key: `${folder}loads/l/v` }));
  for (const path of ["drop/NAME/a/rows.csv", "drop/NAME/a/_SUCCESS", "reports/NAME/a/1.json"])
    await put(DROP, path.replace("NAME", graph));
  const upload = { Bucket: DATA, Key: `${folder}checkpoints/p2/data` };
  await objects.send(new s3.CreateMultipartUploadCommand(upload));
}

/** Returns the names of all versions, marks and unfinished uploads of both buckets. */
async function names(): Promise<string[]> {
  const found: string[] = [];
  for (const Bucket of [DATA, DROP]) {
    const { Versions = [], DeleteMarkers = [] } = await objects.send(
      new s3.ListObjectVersionsCommand({ Bucket }),
    );
    const { Uploads = [] } = await objects.send(new s3.ListMultipartUploadsCommand({ Bucket }));
    found.push(...[...Versions, ...DeleteMarkers, ...Uploads].map(({ Key = "" }) => `${Bucket}/${Key}`));
  }
  return found.toSorted();
}

async function isInMap(graph: string): Promise<boolean> {
  const Key = { graph: { S: graph }, item: { S: "map#graph" } };
  return (await map.send(new dynamodb.GetItemCommand({ TableName: TABLE, Key }))).Item !== undefined;
}

/** Writes a program in the place of the daemon's. What it was called with is in `FILE.calls`. */
function program(name: string, body: string): string {
  const path = join(home, name);
  writeFileSync(path, `#!/bin/bash\necho "$*" >>${path}.calls\n${body}\n`, { mode: 0o755 });
  return path;
}

const calls = (path: string): string[] =>
  existsSync(`${path}.calls`) ? readFileSync(`${path}.calls`, "utf8").trim().split("\n") : [];

const removal = (event: Event, more: Partial<Surroundings> = {}): Promise<Removed> =>
  remove(event, {
    dynamodb: map,
    s3: objects,
    program: program("fine", "exit 0"),
    graphs: ["people", "events"],
    table: TABLE,
    dataBucket: DATA,
    dropBucket: DROP,
    timeLeftMs: () => 900_000,
    ...more,
  });

const fails = (name: RemovalError["name"], message: RegExp) => (error: Error) => {
  assert.equal(error.name, name, error.message);
  assert.match(error.message, message);
  return true;
};

test("a wrong input, and a graph of the deployment, remove nothing", async () => {
  await make("people", "");
  await make("events");
  const before = await names();
  const never = program("never", "exit 1");
  const refusals: [Event, RemovalError["name"], RegExp][] = [
    [{}, "NoGraphName", /^graph is missing/],
    [{ graph: "", confirm: "" }, "NoGraphName", /^graph is ""/],
    [{ graph: "../people", confirm: "../people" }, "NoGraphName", /"\.\.\/people"/],
    [{ graph: ["events"], confirm: ["events"] }, "NoGraphName", /\["events"\]/],
    [{ graph: "orders" }, "NotConfirmed", /^confirm is missing.*\{"graph":"orders","confirm":"orders"\}/],
    [{ graph: "orders", confirm: "order" }, "NotConfirmed", /^confirm is "order"/],
    [{ graph: "people", confirm: "people" }, "GraphIsServed", /people, events/],
    [{ graph: "events", confirm: "events" }, "GraphIsServed", /take it out of graphs/],
  ];
  for (const [event, name, message] of refusals)
    await assert.rejects(removal(event, { program: never }), fails(name, message));
  assert.deepEqual(await names(), before);
  assert.deepEqual(calls(never), []);
});

test("nothing of the graph is left, and everything of the others", async () => {
  const before = await names();
  // Names that begin like that of the graph are those of others.
  await make("orders2");
  const others = await names();
  await make("orders");
  assert.ok((await names()).length > others.length + 7);
  const dropped = program("drops", "exit 0");
  const first = await removal({ graph: "orders", confirm: "orders" }, { program: dropped });
  assert.deepEqual(first, { graph: "orders", wasInMap: true, versions: 8 });
  assert.deepEqual(calls(dropped), ["drop-graph orders --confirm orders"]);
  assert.deepEqual(await names(), others);
  assert.ok(others.length > before.length);
  // The program removes the items of the map, which this one did not.
  const Key = { graph: { S: "orders" }, item: { S: "map#graph" } };
  await map.send(new dynamodb.DeleteItemCommand({ TableName: TABLE, Key }));
  const again = await removal({ graph: "orders", confirm: "orders" }, { program: dropped });
  assert.deepEqual(again, { graph: "orders", wasInMap: false, versions: 0 });
  assert.equal(calls(dropped).length, 1, "the program runs only for a graph that the map has");
});

test("a removal that stops anywhere is repeated, and data goes only after the daemon's command", async () => {
  await make("stopped");
  const before = await names();
  const event = { graph: "stopped", confirm: "stopped" };
  const failing = program("failing", "echo 'processes still serve graph' >&2\nexit 3");
  await assert.rejects(
    removal(event, { program: failing }),
    fails("DropFailed", /ended with 3: processes still serve graph$/),
  );
  assert.deepEqual(await names(), before);
  // The time is over while the program runs: it is killed.
  const slow = program("slow", "exec sleep 600");
  await assert.rejects(
    removal(event, { program: slow, timeLeftMs: () => 30_200 }),
    fails("Unfinished", /partly/),
  );
  assert.deepEqual(await names(), before);
  assert.ok(await isInMap("stopped"));
  // The time is over between two requests, each time one later.
  let attempts = 0;
  for (let isDone = false; !isDone; attempts += 1) {
    let looks = 0;
    const timeLeftMs = () => (looks++ <= attempts ? 900_000 : 0);
    try {
      await removal(event, { timeLeftMs });
      isDone = true;
    } catch (error) {
      fails("Unfinished", /another attempt/)(error as Error);
    }
    assert.ok(attempts < 20, "an attempt with more time gets further");
  }
  assert.ok(attempts > 2, `${attempts} attempts`);
  assert.ok(!(await names()).some((name) => name.includes("/stopped/")));
});

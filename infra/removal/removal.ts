/**
 * Removes one graph of a deployment, with all its data. The deployment must not have it any more.
 *
 * Flow: refuse a wrong input → run `tidegraph-node drop-graph`, if the map has the graph; it removes the topic, the current
 * objects and the items of the map, the item of the graph last → remove all versions of its objects → remove its folders
 * in the drop bucket.
 *
 * Each step passes over what is gone, so that a removal that was stopped anywhere is repeated from its beginning.
 */
import { spawn } from "node:child_process";
import { type DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import type { S3Client } from "@aws-sdk/client-s3";
import { folderOf, GRAPH_NAME } from "../lib/names.ts";
import { empty } from "../remove/empty.ts";

/** What is asked for. Its fields are checked: people write them. */
export interface Event {
  readonly graph?: unknown;
  /** The name of the graph once more. */
  readonly confirm?: unknown;
}

/** What was removed. */
export interface Removed {
  readonly graph: string;
  /** Whether this attempt found the graph in the map. */
  readonly wasInMap: boolean;
  /** Versions of objects, and marks of deletion, that this attempt removed from both buckets after the daemon's command. */
  readonly versions: number;
}

/** What the removal works with. */
export interface Surroundings {
  readonly dynamodb: DynamoDBClient;
  readonly s3: S3Client;
  /** The path of `tidegraph-node`, which reads where the map, the log and the objects are from the environment. */
  readonly program: string;
  /** The graphs of the deployment. */
  readonly graphs: readonly string[];
  /** The table of the map. */
  readonly table: string;
  readonly dataBucket: string;
  readonly dropBucket: string;
  timeLeftMs(): number;
}

/** Why a removal ended. The state machine distinguishes the names. */
export class RemovalError extends Error {
  override readonly name: "NotConfirmed" | "NoGraphName" | "GraphIsServed" | "DropFailed" | "Unfinished";

  constructor(name: RemovalError["name"], message: string) {
    super(message);
    this.name = name;
  }
}

/** Time that is left for an answer when work is stopped to be continued by another attempt. */
const RESERVE_MS = 30_000;
/** The end of what the program said, for the error. */
const SAID_CHARACTERS = 2000;

/**
 * Removes a graph.
 *
 * @throws {RemovalError} `Unfinished` if the time is over, so that another attempt has to go on; `DropFailed` if the daemon's
 * command failed; the others if nothing was removed.
 */
export async function remove(event: Event, around: Surroundings): Promise<Removed> {
  const graph = checked(event, around.graphs);
  const wasInMap = await isInMap(graph, around);
  if (wasInMap) await drop(graph, around);
  const mayGoOn = (): void => {
    if (around.timeLeftMs() < RESERVE_MS)
      throw new RemovalError("Unfinished", `objects of ${graph} are left; another attempt removes them`);
  };
  let versions = 0;
  for (const [bucket, prefix] of [
    [around.dataBucket, `${folderOf(graph)}/`],
    [around.dropBucket, `drop/${graph}/`],
    [around.dropBucket, `reports/${graph}/`],
  ] as const)
    versions += await empty(around.s3, bucket, { prefix, mayGoOn });
  return { graph, wasInMap, versions };
}

/** Returns the name of the graph, or refuses to remove it. */
function checked({ graph, confirm }: Event, graphs: readonly string[]): string {
  if (typeof graph !== "string" || !GRAPH_NAME.test(graph)) {
    const said = JSON.stringify(graph) ?? "missing";
    throw new RemovalError("NoGraphName", `graph is ${said}, and has to be the name of a graph`);
  }
  if (confirm !== graph) {
    const said = JSON.stringify(confirm) ?? "missing";
    const wanted = JSON.stringify({ graph, confirm: graph });
    throw new RemovalError(
      "NotConfirmed",
      `confirm is ${said}: the input ${wanted} removes ${graph} with its data`,
    );
  }
  if (graphs.includes(graph)) {
    throw new RemovalError(
      "GraphIsServed",
      `${graph} is a graph of the deployment (${graphs.join(", ")}): take it out of graphs and deploy first`,
    );
  }
  return graph;
}

async function isInMap(graph: string, { dynamodb, table }: Surroundings): Promise<boolean> {
  const { Item } = await dynamodb.send(
    new GetItemCommand({
      TableName: table,
      Key: { graph: { S: graph }, item: { S: "map#graph" } },
      ProjectionExpression: "#name",
      ExpressionAttributeNames: { "#name": "item" },
      ConsistentRead: true,
    }),
  );
  return Item !== undefined;
}

/** Runs the daemon's command, and kills it when the time is over: it can be stopped anywhere. */
async function drop(graph: string, { program, timeLeftMs }: Surroundings): Promise<void> {
  const child = spawn(program, ["drop-graph", graph, "--confirm", graph], {
    stdio: ["ignore", "inherit", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    process.stderr.write(text);
    said = `${said}${text}`.slice(-SAID_CHARACTERS);
  });
  let isOver = false;
  const timer = setTimeout(
    () => {
      isOver = true;
      child.kill("SIGKILL");
    },
    Math.max(0, timeLeftMs() - RESERVE_MS),
  );
  try {
    const code = await new Promise<number | null>((done, fail) => {
      child.on("error", fail).on("close", done);
    });
    if (code === 0) return;
    if (isOver)
      throw new RemovalError("Unfinished", `${graph} is partly removed; another attempt goes on with it`);
    throw new RemovalError("DropFailed", `tidegraph-node drop-graph ended with ${code}: ${said.trim()}`);
  } finally {
    clearTimeout(timer);
  }
}

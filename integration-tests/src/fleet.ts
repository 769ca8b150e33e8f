/**
 * The graph of a test in a fleet: two storage nodes, each with a replica of four partitions. All tests of a run share
 * one Kafka and one table of maps. `TIDEGRAPH_TEST_CLUSTER` gives their addresses; without it the tests run against one
 * process.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const NODES = 2;
/** Longest run of a command that sets a graph up; `place` gives up earlier by itself. */
const COMMAND_LIMIT_MS = 180_000;
const execute = promisify(execFile);

/** What all tests of a run share. */
interface Shared {
  /** The path of the `tidegraph-node` binary. */
  readonly nodeBinary: string;
  /** The addresses of Kafka's brokers. */
  readonly brokers: string;
  /** The endpoint of DynamoDB Local. */
  readonly dynamodb: string;
}

/** Returns what all tests of a run share, if they run in a fleet. */
export function shared(): Shared | undefined {
  const text = process.env.TIDEGRAPH_TEST_CLUSTER;
  return text ? (JSON.parse(text) as Shared) : undefined;
}

/** The nodes with the graph of one test. */
export class Nodes {
  readonly #shared: Shared;
  readonly #home: string;
  readonly #graph = `t-${randomUUID()}`;
  #children: ChildProcess[] = [];
  #output = "";

  constructor(shared: Shared, home: string) {
    this.#shared = shared;
    this.#home = home;
  }

  #map(): string[] {
    return ["--graph", this.#graph, "--dynamodb-endpoint", this.#shared.dynamodb, "--dynamodb-local"];
  }

  #log(): string[] {
    return ["--kafka-brokers", this.#shared.brokers];
  }

  /** Creates the graph with these settings and starts its nodes; they serve when this returns. */
  async start(graph: readonly string[]): Promise<void> {
    const { nodeBinary } = this.#shared;
    await mkdir(join(this.#home, "objects"));
    await writeFile(join(this.#home, "fleet-token"), `${randomUUID()}\n`, { mode: 0o600 });
    const sizes = ["--partitions", "4", "--replication", String(NODES)];
    const once = ["--log-replication", "1", "--log-in-sync", "1"];
    const limit = { timeout: COMMAND_LIMIT_MS, killSignal: "SIGKILL" as const };
    await execute(nodeBinary, ["init", ...this.#map(), ...this.#log(), ...sizes, ...once, ...graph], limit);
    const files = ["--objects", join(this.#home, "objects"), "--token-file", join(this.#home, "fleet-token")];
    for (let number = 0; number < NODES; number += 1) {
      const args = ["serve", ...this.#map(), ...this.#log(), "--node", `node-${number}`, ...files];
      const child = spawn(nodeBinary, args, { stdio: ["ignore", "pipe", "pipe"] });
      const gather = (chunk: Buffer) => {
        this.#output += chunk.toString();
      };
      child.stdout.on("data", gather);
      child.stderr.on("data", gather);
      this.#children.push(child);
    }
    try {
      await execute(
        nodeBinary,
        ["place", ...this.#map(), "--nodes", String(NODES), "--timeout-s", "120"],
        limit,
      );
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : error}\n${this.#output}`);
    }
  }

  /** Returns the flags of a worker for this graph. */
  worker(): string[] {
    const token = join(this.#home, "fleet-token");
    return [
      "worker",
      ...this.#map(),
      "--objects",
      join(this.#home, "objects"),
      "--fleet-token-file",
      token,
      "--map-poll-ms",
      "300",
    ];
  }

  /** Kills the nodes at once. */
  kill(): void {
    for (const child of this.#children) child.kill("SIGKILL");
    this.#children = [];
  }
}

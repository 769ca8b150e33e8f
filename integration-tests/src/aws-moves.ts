/** Shared by the tests of moving replicas in a deployment: reading the maps of its graphs, and a load that detects failures. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { parseAs } from "@tidegraph/contracts";
import { type Answer, ask, deployed, plainItem, Signer } from "./aws.ts";
import { childrenOf, EXECUTION_MS, executions, stop } from "./aws-machines.ts";
import { eventually } from "./server.ts";

/** The number of replicas of each partition in the example. */
export const REPLICAS = 2;

/** The states of nodes and replicas. */
export interface Standing {
  /** States of the nodes. */
  readonly states: ReadonlyMap<string, string>;
  /** For each partition, the states of its replicas by node. */
  readonly replicas: ReadonlyMap<string, Readonly<Record<string, string>>>;
  /** For each partition, the nodes whose replicas serve. */
  readonly serving: ReadonlyMap<string, readonly string[]>;
}

/** Reads the map of a graph from the table. */
export async function standing(graph: string): Promise<Standing> {
  const answer = await ask("dynamodb", "DynamoDB_20120810.Scan", { TableName: deployed().table });
  assert.equal(answer.status, 200, answer.body);
  const items = (JSON.parse(answer.body).Items as Parameters<typeof plainItem>[0][])
    .map(plainItem)
    .filter((item) => item.graph === graph);
  const of = (beginning: string): [string, Record<string, unknown>][] =>
    items.flatMap((item) => {
      const name = String(item.item);
      return name.startsWith(beginning) ? [[name.slice(beginning.length), item] as const] : [];
    }) as [string, Record<string, unknown>][];
  const states = new Map(of("map#node#").map(([name, item]) => [name, String(item.state)]));
  const replicas = new Map(
    of("map#part#").map(([name, item]) => [name, item.replicas as Record<string, string>]),
  );
  const serving = new Map(
    [...replicas].map(([name, those]) => [
      name,
      Object.keys(those).filter((node) => those[node] === "serving"),
    ]),
  );
  return { states, replicas, serving };
}

/** Returns the number of a node's serving replicas. */
export function share({ serving }: Standing, node: string): number {
  return [...serving.values()].filter((nodes) => nodes.includes(node)).length;
}

/** Returns how many replicas the map assigns to a node, in any state. */
export function held({ replicas }: Standing, node: string): number {
  return [...replicas.values()].filter((those) => node in those).length;
}

/**
 * Returns the smallest number of replicas that answer reads, over all partitions: those that serve or are leaving, on
 * nodes that are up or draining.
 */
export function fewestAnswer({ states, replicas }: Standing): number {
  const isThere = (node: string) => ["up", "draining"].includes(states.get(node) ?? "");
  const answering = (those: Readonly<Record<string, string>>) =>
    Object.entries(those).filter(([node, state]) => ["serving", "leaving"].includes(state) && isThere(node));
  return Math.min(...[...replicas.values()].map((those) => answering(those).length));
}

/** Waits until the map of a graph fulfils a condition; returns the time that it took, in seconds. */
export async function until(graph: string, what: string, isSo: (map: Standing) => boolean): Promise<number> {
  const begun = performance.now();
  for (;;) {
    const map = await standing(graph);
    const seconds = (performance.now() - begun) / 1000;
    if (isSo(map)) return seconds;
    assert.ok(
      seconds * 1000 < EXECUTION_MS,
      `it is not so in the graph ${graph} that ${what}: ${JSON.stringify([...map.serving])}`,
    );
    await sleep(500);
  }
}

/** Returns the holder of a lease of a graph, or "" if there is none. */
async function holderOf(graph: string, lease: string): Promise<string> {
  const Key = { graph: { S: graph }, item: { S: `lease#${lease}` } };
  const answer = await ask("dynamodb", "DynamoDB_20120810.GetItem", { TableName: deployed().table, Key });
  assert.equal(answer.status, 200, answer.body);
  return String(plainItem(JSON.parse(answer.body).Item ?? {}).holder ?? "");
}

/** Returns the execution that may move replicas of a graph at the moment, or "" if there is none. */
export const rebalancer = (graph: string): Promise<string> => holderOf(graph, "rebalancer");

/**
 * Returns the node that is the sequencer of a graph at the moment. Its lease holds the node's name and a suffix that differs
 * between its processes.
 */
export async function sequencer(graph: string): Promise<string> {
  return (await holderOf(graph, "sequencer")).replace(/-[0-9a-f]{16}$/, "");
}

/**
 * Waits until nothing moves replicas of any graph. It stops executions that wait for a lease and have none, because they
 * would take it long after the event that started them.
 */
export async function still(): Promise<void> {
  const isStill = async () => {
    const all = (await Promise.all(["heal", "scaleOut", "drain"].map(executions))).flat();
    const running = all.filter(({ status }) => status === "RUNNING");
    const holders = new Set(await Promise.all(deployed().graphs.map(rebalancer)));
    for (const { executionArn } of running) {
      const children = await childrenOf(executionArn);
      const arns = [executionArn, ...children.map((child) => child.executionArn)];
      if (!arns.some((arn) => holders.has(arn))) await stop(executionArn, "what it was started for is over");
    }
    return running.length === 0;
  };
  await eventually("nobody moves replicas", isStill, EXECUTION_MS);
}

/** The part of an input that names a graph. A deployment of one graph takes none. */
export function named(graph: string): { readonly graph?: string } {
  return deployed().graphs.length > 1 ? { graph } : {};
}

/** What each graph has of its vertex `p1`, which earlier tests made. */
const KNOWN: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ["default", "Ada"],
  ["orders", 7],
]);

/** Reads and writes of a graph through the API, each one after another, until it is ended or its test has failed. */
export class Load {
  readonly acknowledged: number[] = [];
  readonly failedReads: string[] = [];
  reads = 0;
  refusedWrites = 0;
  readonly #signers: readonly Signer[];
  readonly #work: Promise<unknown>;
  readonly #label: string;
  readonly #graph: string;
  #isOver = false;

  constructor(test: TestContext, label: string, graph: string) {
    const { api } = deployed();
    this.#label = label;
    this.#graph = graph;
    const [reader, writer] = [new Signer(api), new Signer(api)];
    this.#signers = [reader, writer];
    this.#work = Promise.all([this.#read(reader), this.#write(writer)]);
    // Without this, the load and the test process would run forever after a failure.
    test.after(async () => {
      try {
        await this.#stop();
      } finally {
        for (const one of this.#signers) one.end();
      }
    });
  }

  /** Asks the graph: the first one by the paths without a name. */
  #ask(signer: Signer, request: object): Promise<Answer> {
    const path = this.#graph === deployed().graphs[0] ? "" : `/graph/${this.#graph}`;
    return signer.ask(`${path}/openCypher`, request);
  }

  async #stop(): Promise<void> {
    this.#isOver = true;
    await this.#work;
  }

  async #read(signer: Signer): Promise<void> {
    while (!this.#isOver) {
      const query = "MATCH (n) WHERE id(n) = 'p1' RETURN coalesce(n.name, n.number) AS known";
      const { status, body } = await this.#ask(signer, { query });
      this.reads += 1;
      const [row] = status === 200 ? parseAs("OpenCypherAnswer", JSON.parse(body)).results : [];
      if (row?.known !== KNOWN.get(this.#graph)) this.failedReads.push(`${status} ${body}`);
    }
  }

  async #write(signer: Signer): Promise<void> {
    for (let number = 0; !this.#isOver; number += 1) {
      const query = `CREATE (:${this.#label} {\`~id\`: $id, number: $number})`;
      const parameters = { id: `${this.#label}-${number}`, number };
      const { status } = await this.#ask(signer, { query, parameters });
      if (status === 200) this.acknowledged.push(number);
      else this.refusedWrites += 1;
    }
  }

  /** Ends the load. Every acknowledged write must be in the graph, and every read must have been answered. */
  async end(): Promise<void> {
    await this.#stop();
    const [signer] = this.#signers;
    assert.ok(signer);
    const query = `MATCH (n:${this.#label}) RETURN n.number AS number`;
    const { status, body } = await this.#ask(signer, { query });
    assert.equal(status, 200, body);
    const found = new Set(parseAs("OpenCypherAnswer", JSON.parse(body)).results.map(({ number }) => number));
    const lost = this.acknowledged.filter((number) => !found.has(number));
    console.log(
      `${this.#graph}: ${this.reads} reads, ${this.failedReads.length} failed; ${this.acknowledged.length} writes acknowledged, ${lost.length} lost, ${this.refusedWrites} refused`,
    );
    assert.deepEqual(this.failedReads, []);
    assert.deepEqual(lost, []);
    assert.ok(this.reads > 10 && this.acknowledged.length > 10);
  }
}

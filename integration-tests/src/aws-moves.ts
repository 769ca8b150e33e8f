/** Shared by the tests of moving replicas in a deployment: reading the map, and a load that detects failures. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { parseAs } from "@tidegraph/contracts";
import { ask, deployed, plainItem, Signer } from "./aws.ts";
import { EXECUTION_MS, executions, stop } from "./aws-machines.ts";
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

/** Reads the map of the graph from its table. */
export async function standing(): Promise<Standing> {
  const answer = await ask("dynamodb", "DynamoDB_20120810.Scan", { TableName: deployed().table });
  assert.equal(answer.status, 200, answer.body);
  const items = (JSON.parse(answer.body).Items as Parameters<typeof plainItem>[0][])
    .map(plainItem)
    .filter(({ graph }) => graph === "default");
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

/** Waits until the map fulfils a condition; returns the time that it took, in seconds. */
export async function until(what: string, isSo: (map: Standing) => boolean): Promise<number> {
  const begun = performance.now();
  for (;;) {
    const map = await standing();
    const seconds = (performance.now() - begun) / 1000;
    if (isSo(map)) return seconds;
    assert.ok(
      seconds * 1000 < EXECUTION_MS,
      `it is not so that ${what}: ${JSON.stringify([...map.serving])}`,
    );
    await sleep(500);
  }
}

/** Returns the holder of a lease, or "" if there is none. */
async function holderOf(lease: string): Promise<string> {
  const Key = { graph: { S: "default" }, item: { S: `lease#${lease}` } };
  const answer = await ask("dynamodb", "DynamoDB_20120810.GetItem", { TableName: deployed().table, Key });
  assert.equal(answer.status, 200, answer.body);
  return String(plainItem(JSON.parse(answer.body).Item ?? {}).holder ?? "");
}

/** Returns the execution that may move replicas at the moment, or "" if there is none. */
export const rebalancer = (): Promise<string> => holderOf("rebalancer");

/**
 * Returns the node that is the sequencer at the moment. Its lease holds the node's name and a suffix that differs
 * between its processes.
 */
export async function sequencer(): Promise<string> {
  return (await holderOf("sequencer")).replace(/-[0-9a-f]{16}$/, "");
}

/**
 * Waits until nothing moves replicas. It stops executions that wait for the lease, because they would take it long
 * after the event that started them.
 */
export async function still(): Promise<void> {
  const isStill = async () => {
    const all = (await Promise.all(["heal", "scaleOut", "drain"].map(executions))).flat();
    const running = all.filter(({ status }) => status === "RUNNING");
    const holder = await rebalancer();
    for (const { executionArn } of running)
      if (executionArn !== holder) await stop(executionArn, "what it was started for is over");
    return running.length === 0;
  };
  await eventually("nobody moves replicas", isStill, EXECUTION_MS);
}

/** Reads and writes through the API, each one after another, until it is ended or its test has failed. */
export class Load {
  readonly acknowledged: number[] = [];
  readonly failedReads: string[] = [];
  reads = 0;
  refusedWrites = 0;
  readonly #signers: readonly Signer[];
  readonly #work: Promise<unknown>;
  readonly #label: string;
  #isOver = false;

  constructor(test: TestContext, label: string) {
    const { api } = deployed();
    this.#label = label;
    const [reader, writer] = [new Signer(api), new Signer(api)];
    this.#signers = [reader, writer];
    this.#work = Promise.all([this.#read(reader), this.#write(writer)]);
    // Without this, the load and the test process would run forever after a failure.
    test.after(async () => {
      await this.#stop();
      for (const one of this.#signers) one.end();
    });
  }

  async #stop(): Promise<void> {
    this.#isOver = true;
    await this.#work;
  }

  async #read(signer: Signer): Promise<void> {
    while (!this.#isOver) {
      const query = "MATCH (n) WHERE id(n) = 'p1' RETURN n.name AS name";
      const { status, body } = await signer.ask("/openCypher", { query });
      this.reads += 1;
      const [row] = status === 200 ? parseAs("OpenCypherAnswer", JSON.parse(body)).results : [];
      if (row?.name !== "Ada") this.failedReads.push(`${status} ${body}`);
    }
  }

  async #write(signer: Signer): Promise<void> {
    for (let number = 0; !this.#isOver; number += 1) {
      const query = `CREATE (:${this.#label} {\`~id\`: $id, number: $number})`;
      const parameters = { id: `${this.#label}-${number}`, number };
      const { status } = await signer.ask("/openCypher", { query, parameters });
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
    const { status, body } = await signer.ask("/openCypher", { query });
    assert.equal(status, 200, body);
    const found = new Set(parseAs("OpenCypherAnswer", JSON.parse(body)).results.map(({ number }) => number));
    const lost = this.acknowledged.filter((number) => !found.has(number));
    console.log(
      `${this.reads} reads, ${this.failedReads.length} failed; ${this.acknowledged.length} writes acknowledged, ${lost.length} lost, ${this.refusedWrites} refused`,
    );
    assert.deepEqual(this.failedReads, []);
    assert.deepEqual(lost, []);
    assert.ok(this.reads > 10 && this.acknowledged.length > 10);
  }
}

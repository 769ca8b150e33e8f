/** What the tests of moving replicas on a deployment share: the map as it stands, and load that notices what goes wrong. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { parseAs } from "@tidegraph/contracts";
import { ask, deployed, plainItem, Signer } from "./aws.ts";
import { EXECUTION_MS, executions, stop } from "./aws-machines.ts";
import { eventually } from "./server.ts";

/** How many replicas of each partition the example has. */
export const REPLICAS = 2;

/** How nodes and replicas are. */
export interface Standing {
  /** Of nodes. */
  readonly states: ReadonlyMap<string, string>;
  /** States of a partition's replicas by their nodes, by partition. */
  readonly replicas: ReadonlyMap<string, Readonly<Record<string, string>>>;
  /** Replicas that serve, by partition. */
  readonly serving: ReadonlyMap<string, readonly string[]>;
}

/** What the map's table says. */
export async function standing(): Promise<Standing> {
  const answer = await ask("dynamodb", "DynamoDB_20120810.Scan", { TableName: "local-map" });
  assert.equal(answer.status, 200, answer.body);
  const items = (JSON.parse(answer.body).Items as Parameters<typeof plainItem>[0][]).map(plainItem);
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

/** How many replicas of a node serve. */
export function share({ serving }: Standing, node: string): number {
  return [...serving.values()].filter((nodes) => nodes.includes(node)).length;
}

/** How many replicas the map gives to a node, whatever their state. */
export function held({ replicas }: Standing, node: string): number {
  return [...replicas.values()].filter((those) => node in those).length;
}

/** Of the partition that has the fewest, how many replicas answer reads: those that serve or leave, on nodes that are there. */
export function fewestAnswer({ states, replicas }: Standing): number {
  const isThere = (node: string) => ["up", "draining"].includes(states.get(node) ?? "");
  const answering = (those: Readonly<Record<string, string>>) =>
    Object.entries(those).filter(([node, state]) => ["serving", "leaving"].includes(state) && isThere(node));
  return Math.min(...[...replicas.values()].map((those) => answering(those).length));
}

/** Waits until the map says something; answers after how many seconds. */
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

/** Who has a lease; nobody is "". */
async function holderOf(lease: string): Promise<string> {
  const Key = { graph: { S: "default" }, item: { S: `lease#${lease}` } };
  const answer = await ask("dynamodb", "DynamoDB_20120810.GetItem", { TableName: "local-map", Key });
  assert.equal(answer.status, 200, answer.body);
  return String(plainItem(JSON.parse(answer.body).Item ?? {}).holder ?? "");
}

/** The execution that may move replicas now; none is "". */
export const rebalancer = (): Promise<string> => holderOf("rebalancer");

/** The node that is the sequencer now. Its lease says its name, and what tells its processes apart. */
export async function sequencer(): Promise<string> {
  return (await holderOf("sequencer")).replace(/-[0-9a-f]{16}$/, "");
}

/** Waits until nobody moves replicas. Those that wait for the lease are stopped: they would take it long after whatever they were started for. */
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

/** Reads and writes through the API, one after the other each, until it is ended, or its test has failed. */
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
    // It would go on for ever after a failure, and the process of the test with it.
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

  /** Ends it; every write that was acknowledged has to be there, and every read was answered. */
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

/**
 * The partition map of a fleet that serves, as items of its table: nodes that send heartbeats, a sequencer that renews
 * its lease, replicas and checkpoints. Each item is checked against its schema before it is written.
 */
import {
  BatchWriteItemCommand,
  DeleteItemCommand,
  type DynamoDBClient,
  PutItemCommand,
} from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { wrongWith } from "../doctor/map-schemas.ts";

const PARTITIONS = 8;
export const VERSION = 4711;

type Item = { readonly item: string } & Readonly<Record<string, unknown>>;

export class FleetMap {
  readonly #client: DynamoDBClient;
  readonly #table: string;
  readonly #graph: string;
  #counter = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Nodes that send heartbeats. */
  readonly alive = new Set<string>();
  /** The node whose process renews the lease. */
  leader: string | undefined;

  constructor(client: DynamoDBClient, table: string, graph: string) {
    this.#client = client;
    this.#table = table;
    this.#graph = graph;
  }

  /** Writes one item. */
  async put(item: Item): Promise<void> {
    const Item = marshall(this.#checked(item));
    await this.#client.send(new PutItemCommand({ TableName: this.#table, Item }));
  }

  /** Writes an item as it is. */
  async spoil(item: Item): Promise<void> {
    const Item = marshall({ graph: this.#graph, ...item });
    await this.#client.send(new PutItemCommand({ TableName: this.#table, Item }));
  }

  /** Removes an item. */
  async remove(item: string): Promise<void> {
    const Key = marshall({ graph: this.#graph, item });
    await this.#client.send(new DeleteItemCommand({ TableName: this.#table, Key }));
  }

  /** Writes the map of nodes that all serve, each partition with two replicas. */
  async serve(nodes: readonly string[], release: string): Promise<void> {
    const items: Item[] = [
      {
        item: "map#graph",
        changedAt: 7,
        changes: 7,
        name: this.#graph,
        partitions: PARTITIONS,
        shards: 1,
        hashBits: 64,
        replicationFactor: 2,
      },
      ...nodes.map((id) => node(id, "up")),
      ...nodes.map((id) => ({ item: `release#${id}`, generation: 1, release })),
    ];
    for (let partition = 0; partition < PARTITIONS; partition += 1) {
      const [one = "", other = ""] = [nodes[partition % nodes.length], nodes[(partition + 1) % nodes.length]];
      items.push(part(partition, { [one]: "serving", [other]: "serving" }), checkpoint(partition, VERSION));
    }
    for (let at = 0; at < items.length; at += 25) {
      const requests = items
        .slice(at, at + 25)
        .map((item) => ({ PutRequest: { Item: marshall(this.#checked(item)) } }));
      await this.#client.send(new BatchWriteItemCommand({ RequestItems: { [this.#table]: requests } }));
    }
    for (const id of nodes) this.alive.add(id);
    this.leader = nodes[0];
    await this.tick();
    this.#timer = setInterval(() => void this.tick().catch(() => undefined), 100);
  }

  /** Sends the heartbeats of the nodes that live, and renews the lease. */
  async tick(): Promise<void> {
    this.#counter += 1;
    const counter = this.#counter;
    await Promise.all([
      ...[...this.alive].map((id) => this.put(beat(id, counter))),
      ...(this.leader === undefined ? [] : [this.put(lease(this.leader, counter))]),
    ]);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #checked(item: Item): object {
    const whole = { graph: this.#graph, ...item };
    const wrong = wrongWith(whole);
    if (wrong !== undefined) throw new Error(wrong);
    return whole;
  }
}

export const node = (id: string, state: string): Item => ({
  item: `map#node#${id}`,
  changedAt: 3,
  changes: 2,
  zone: "eu-west-1a",
  endpoint: "10.0.0.1:8183",
  capacityBytes: 1 << 30,
  roles: ["storage", "sequencer"],
  state,
  generation: 1,
});

const five = (partition: number): string => String(partition).padStart(5, "0");

export const part = (partition: number, replicas: Record<string, string>): Item => ({
  item: `map#part#${five(partition)}`,
  changedAt: 4,
  changes: 1,
  replicas,
});

export const checkpoint = (partition: number, version: number): Item => ({
  item: `checkpoint#${five(partition)}`,
  version,
  prefix: `checkpoints/p${five(partition)}/n-1-3`,
});

export const beat = (id: string, counter: number, further: Record<string, unknown> = {}): Item => ({
  item: `beat#${id}`,
  generation: 1,
  counter,
  diskFull: false,
  usedBytes: 1 << 20,
  applied: `${VERSION}:0-${PARTITIONS - 1}`,
  ...further,
});

export const lease = (id: string, counter: number): Item => ({
  item: "lease#sequencer",
  holder: `${id}-0123456789abcdef`,
  endpoint: "10.0.0.1:8183",
  epoch: 3,
  counter,
  ttlMs: 1500,
});

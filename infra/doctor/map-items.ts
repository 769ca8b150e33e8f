/** The items of the partition map (docs/partition-map.md), read with one consistent query for each look. */
import { paginateQuery } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import type { Context } from "./context.ts";

/** An item, whose attributes the schemas `contracts/schemas/map-*.schema.json` describe. */
// biome-ignore lint/suspicious/noExplicitAny: attributes of items have no types here
export type Item = any;

/** A node with what the map has of it. */
export interface Node {
  readonly id: string;
  readonly state: string;
  readonly zone: string;
  readonly generation: number;
  /** Absent before the first heartbeat. */
  readonly beat?: Item;
  /** The release of its process; absent if the process of this generation did not state one. */
  readonly release?: string;
}

/** Most items that are read: the largest map has 32,768 partitions, each with a checkpoint. */
const MOST_ITEMS = 100_000;

/** The map of a graph, as it was at one look. */
export class MapItems {
  readonly #items = new Map<string, Item>();

  constructor(items: readonly Item[]) {
    for (const item of items) this.#items.set(item.item, item);
  }

  /** All items that were read. */
  get all(): Item[] {
    return [...this.#items.values()];
  }

  get graph(): Item | undefined {
    return this.#items.get("map#graph");
  }

  get upgrade(): Item | undefined {
    return this.#items.get("upgrade");
  }

  lease(role: string): Item | undefined {
    return this.#items.get(`lease#${role}`);
  }

  /** The nodes, without those that left. */
  get nodes(): Node[] {
    return this.below("map#node#").flatMap(([id, { state, zone, generation }]) => {
      if (state === "gone") return [];
      const beat = this.#items.get(`beat#${id}`);
      const release = this.#items.get(`release#${id}`);
      return [
        {
          id,
          state,
          zone,
          generation,
          ...(beat && { beat }),
          ...(release?.generation === generation && { release: release.release }),
        },
      ];
    });
  }

  /** The replicas of each partition: states by node. */
  get partitions(): Map<number, Record<string, string>> {
    return new Map(this.below("map#part#").map(([number, { replicas }]) => [Number(number), replicas]));
  }

  /** The newest checkpoint of each partition. */
  get checkpoints(): Map<number, { readonly version: number; readonly prefix: string }> {
    return new Map(this.below("checkpoint#").map(([number, item]) => [Number(number), item]));
  }

  private below(prefix: string): [string, Item][] {
    return [...this.#items].flatMap(([name, item]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), item] as [string, Item]] : [],
    );
  }
}

/** Reads the whole map. */
export async function readMap({ clients }: Context, table: string, graph: string): Promise<MapItems> {
  return new MapItems(await query(clients.dynamodb, table, graph, ""));
}

/** Reads the items whose names begin with one of the prefixes. */
export async function readItems(
  { clients }: Context,
  table: string,
  graph: string,
  prefixes: readonly string[],
): Promise<MapItems> {
  const read = prefixes.map((prefix) => query(clients.dynamodb, table, graph, prefix));
  return new MapItems((await Promise.all(read)).flat());
}

async function query(
  client: Context["clients"]["dynamodb"],
  TableName: string,
  graph: string,
  prefix: string,
): Promise<Item[]> {
  const items: Item[] = [];
  const begins = prefix === "" ? "" : " AND begins_with(#item, :prefix)";
  const pages = paginateQuery(
    { client },
    {
      TableName,
      ConsistentRead: true,
      KeyConditionExpression: `#graph = :graph${begins}`,
      ExpressionAttributeNames: { "#graph": "graph", ...(prefix !== "" && { "#item": "item" }) },
      ExpressionAttributeValues: {
        ":graph": { S: graph },
        ...(prefix !== "" && { ":prefix": { S: prefix } }),
      },
    },
  );
  for await (const { Items = [] } of pages) {
    items.push(...Items.map((item) => unmarshall(item)));
    if (items.length > MOST_ITEMS) throw new Error(`the map of ${graph} has more than ${MOST_ITEMS} items`);
  }
  return items;
}

/**
 * Returns the versions that replicas have applied, by partition: the attribute `applied` of a heartbeat, such as
 * `4711:0-15,32;4709:16`.
 */
export function applied(text: string): Map<number, number> {
  const versions = new Map<number, number>();
  for (const part of text.split(";").filter(Boolean)) {
    const [, version, ranges = ""] = /^(\d+):(\d[\d,-]*)$/.exec(part) ?? [];
    for (const range of ranges.split(",").filter(Boolean)) {
      const [first = NaN, last = first] = range.split("-").map(Number);
      for (let partition = first; partition <= last && last < 65_536; partition += 1)
        versions.set(partition, Number(version));
    }
  }
  return versions;
}

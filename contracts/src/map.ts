/**
 * Checks items of the partition map's table (docs/partition-map.md). An item is given as the plain values that
 * DynamoDB's document clients return.
 */
import { loadSchemas } from "./validate.ts";

/** Schemas of items, by the beginning of the key. */
const SCHEMAS = {
  "map#graph": "map-graph",
  "map#node#": "map-node",
  "map#part#": "map-partition",
  "beat#": "map-beat",
  "checkpoint#": "map-checkpoint",
  "lease#": "map-lease",
  "release#": "map-release",
  upgrade: "map-upgrade",
  snapshot: "map-snapshot",
} as const;

let schemas: ReturnType<typeof loadSchemas> | undefined;

/** Returns what is wrong with an item, and where; `undefined` if the item is valid. */
export function mapItemProblem(item: Readonly<Record<string, unknown>>): string | undefined {
  const key = String(item.item);
  const found = Object.entries(SCHEMAS).find(([beginning]) => key.startsWith(beginning));
  if (found === undefined) return `no item of a map has the key ${key}`;
  schemas ??= loadSchemas({ strict: true });
  const validate = schemas.getSchema(`${found[1]}.schema.json`);
  if (validate === undefined) throw new Error(`schemas/${found[1]}.schema.json is missing`);
  if (validate(item)) return undefined;
  const [first] = validate.errors ?? [];
  return `${key}: ${first?.instancePath || "/"} ${first?.message}: ${JSON.stringify(item).slice(0, 400)}`;
}

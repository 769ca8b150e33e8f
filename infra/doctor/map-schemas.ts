/** The schemas of the map's items (`contracts/schemas`), by the beginning of their names. */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import beat from "../../contracts/schemas/map-beat.schema.json" with { type: "json" };
import checkpoint from "../../contracts/schemas/map-checkpoint.schema.json" with { type: "json" };
import graph from "../../contracts/schemas/map-graph.schema.json" with { type: "json" };
import lease from "../../contracts/schemas/map-lease.schema.json" with { type: "json" };
import node from "../../contracts/schemas/map-node.schema.json" with { type: "json" };
import partition from "../../contracts/schemas/map-partition.schema.json" with { type: "json" };
import release from "../../contracts/schemas/map-release.schema.json" with { type: "json" };
import snapshot from "../../contracts/schemas/map-snapshot.schema.json" with { type: "json" };
import upgrade from "../../contracts/schemas/map-upgrade.schema.json" with { type: "json" };

const SCHEMAS: readonly (readonly [prefix: string, schema: object])[] = [
  ["map#graph", graph],
  ["map#node#", node],
  ["map#part#", partition],
  ["beat#", beat],
  ["checkpoint#", checkpoint],
  ["lease#", lease],
  ["release#", release],
  ["upgrade", upgrade],
  ["snapshot", snapshot],
];

let compiled: readonly (readonly [prefix: string, validate: ValidateFunction])[] | undefined;

function compileAll(): NonNullable<typeof compiled> {
  const ajv = new Ajv2020();
  return SCHEMAS.map(([prefix, schema]) => [prefix, ajv.compile(schema)] as const);
}

/** Returns what is wrong with an item, or nothing. */
export function wrongWith(item: { readonly item: string }): string | undefined {
  compiled ??= compileAll();
  const { item: name } = item;
  const [, validate] = compiled.find(([prefix]) => name.startsWith(prefix)) ?? [];
  if (validate === undefined) return `${name}: no item of the map has such a name`;
  if (validate(item)) return undefined;
  const [first] = validate.errors ?? [];
  const { additionalProperty: extra } = (first?.params ?? {}) as { additionalProperty?: string };
  const where = first?.instancePath ? `${first.instancePath.slice(1)} ` : "";
  return `${name}: ${where}${first?.message}${extra === undefined ? "" : ` (${extra})`}`;
}

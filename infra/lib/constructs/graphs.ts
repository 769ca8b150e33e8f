/**
 * The graphs of a deployment. The state names the first one, which has the root of the data bucket, as it has in a
 * deployment of one graph; the objects of each further one are below `graphs/NAME/`. All share brokers, nodes, functions
 * and workers (docs/fleet.md#several-graphs).
 */
import { Token } from "aws-cdk-lib";
import { graphName, InvalidProp, powerOfTwo, text, whole } from "../check.ts";

/** What Gremlin means. */
export interface GremlinProps {
  /**
   * Types of ids: `strings`, as in Neptune; `typed`, which are strings, integers and UUIDs; or `longs`, the same with
   * each integer as a `Long`, as in JanusGraph.
   *
   * @default strings
   */
  readonly ids?: string;
  /**
   * Cardinality of a vertex property that is written without one: `set`, as in Neptune; `single`, as in TinkerGraph
   * and JanusGraph; or `list`.
   *
   * @default set
   */
  readonly defaultCardinality?: string;
}

/** A further graph of a deployment. */
export interface GraphProps {
  /** Name of the graph, other than that of the state. It is part of paths (`/graph/NAME/…`), of topics and of keys. */
  readonly name: string;
  /**
   * Number of partitions of the graph, a power of two. It is fixed when the graph is created.
   *
   * @default 64
   */
  readonly partitions?: number;
  /**
   * Number of shards of the log. It is fixed when the graph is created.
   *
   * @default 1
   */
  readonly shards?: number;
  /**
   * Number of replicas of each partition, at most one for each zone. It is fixed when the graph is created.
   *
   * @default that of the first graph
   */
  readonly replication?: number;
  /**
   * What Gremlin means by ids and by properties without a cardinality. It is fixed when the graph is created.
   *
   * @default what Neptune means, or the settings with which the graph was created
   */
  readonly gremlin?: GremlinProps;
  /**
   * Part of the nodes' memory for replicas that this graph may use, above 0 and below 1. All of them together leave some
   * for the first graph.
   *
   * @default the same as other graphs without a share, out of what is left
   */
  readonly share?: number;
  /**
   * Largest part of each worker's running queries, and of its memory for queries, that this graph may have at once, from
   * 0.01 to 1.
   *
   * @default all of the memory, and about three quarters of the running queries
   */
  readonly quota?: number;
}

/** A graph with its checked settings. */
export interface Graph {
  readonly name: string;
  readonly partitions: number;
  readonly shards: number;
  readonly replication: number;
  /** What Gremlin means, as variables of the daemon's command that creates the graph. */
  readonly gremlin: Readonly<Record<string, string>>;
}

/**
 * Most graphs of a deployment, the first one included. The user data of machines and the policies of roles name every graph,
 * and both have a limit of bytes.
 */
const MOST = 8;
/** Parts of the whole that the daemon divides memory into; it takes at most 1,000 for a graph. */
const PARTS = 1000;

/** Limits that nodes set. */
interface Limits {
  readonly zones: number;
  readonly nodes: number;
}

/** Checks the settings of a graph; `prefix` is the path of its props. */
export function checkedGraph(
  prefix: string,
  name: string,
  props: Omit<GraphProps, "name" | "share" | "quota">,
  { zones, nodes }: Limits,
): Graph {
  const partitions = powerOfTwo(`${prefix}partitions`, props.partitions ?? 64, 32_768);
  const shards = whole(`${prefix}shards`, props.shards ?? 1, 1);
  // A number of partitions that is known only at deployment compares with nothing.
  if (!Token.isUnresolved(partitions) && shards > partitions)
    throw new InvalidProp(`${prefix}shards`, shards, `at most partitions, ${partitions}`);
  const replication = whole(`${prefix}replication`, props.replication ?? 2, 1);
  if (replication > zones) {
    throw new InvalidProp(`${prefix}replication`, replication, `at most the number of zones, ${zones}`);
  }
  if (replication > nodes) {
    throw new InvalidProp(`${prefix}replication`, replication, `at most nodes.count, ${nodes}`);
  }
  return { name, partitions, shards, replication, gremlin: gremlinVariables(prefix, props.gremlin ?? {}) };
}

/** Returns the settings as variables of the daemon's command that creates the graph. */
function gremlinVariables(prefix: string, { ids, defaultCardinality }: GremlinProps): Record<string, string> {
  const variables: Record<string, string> = {};
  if (ids !== undefined) {
    const prop = `${prefix}gremlin.ids`;
    variables.TIDEGRAPH_IDS = text(prop, ids, /^(strings|typed|longs)$/, "strings, typed or longs");
  }
  if (defaultCardinality !== undefined) {
    const prop = `${prefix}gremlin.defaultCardinality`;
    const form = /^(single|set|list)$/;
    variables.TIDEGRAPH_DEFAULT_CARDINALITY = text(prop, defaultCardinality, form, "single, set or list");
  }
  return variables;
}

/** The graphs of a deployment, in their order. */
export class Graphs {
  readonly first: Graph;
  /** The graphs besides the first one. */
  readonly others: readonly Graph[];
  private readonly shares: ReadonlyMap<string, number>;
  private readonly quotas: ReadonlyMap<string, number>;

  constructor(first: Graph, others: readonly GraphProps[], limits: Limits) {
    this.first = first;
    if (others.length >= MOST) {
      throw new InvalidProp("graphs", others.length, `at most ${MOST - 1} graphs besides ${first.name}`);
    }
    const shares = new Map<string, number>();
    const quotas = new Map<string, number>();
    this.others = others.map((props, index) => {
      const prefix = `graphs[${index}].`;
      const name = graphName(`${prefix}name`, props.name);
      if (name === first.name) {
        const other =
          "another name: the graph of the state has this one, and its settings are props of the service";
        throw new InvalidProp(`${prefix}name`, name, other);
      }
      if (others.findIndex((one) => one.name === name) < index) {
        throw new InvalidProp(`${prefix}name`, name, "a name that is not given before");
      }
      const { share, quota } = props;
      if (quota !== undefined) {
        if (!(quota >= 0.01 && quota <= 1)) throw new InvalidProp(`${prefix}quota`, quota, "from 0.01 to 1");
        quotas.set(name, quota);
      }
      if (share !== undefined) {
        if (!(share >= 1 / PARTS && share < 1)) {
          throw new InvalidProp(`${prefix}share`, share, `from ${1 / PARTS} to less than 1`);
        }
        shares.set(name, share);
      }
      return checkedGraph(prefix, name, { replication: first.replication, ...defined(props) }, limits);
    });
    const sum = [...shares.values()].reduce((before, share) => before + share, 0);
    if (Math.round(sum * PARTS) >= PARTS) {
      const below = `below 1, so that ${first.name} and graphs without a share have some memory: lower the shares`;
      throw new InvalidProp("graphs", `shares of ${Number(sum.toFixed(3))}`, below);
    }
    this.shares = shares;
    this.quotas = quotas;
  }

  get all(): readonly Graph[] {
    return [this.first, ...this.others];
  }

  get names(): string[] {
    return this.all.map(({ name }) => name);
  }

  /** Whether there are others besides the first one. */
  get areSeveral(): boolean {
    return this.others.length > 0;
  }

  /** The value of `TIDEGRAPH_GRAPH`. */
  get variable(): string {
    return this.names.join(",");
  }

  /** The graphs as part of a sentence. */
  get words(): string {
    const { first, others } = this;
    return this.areSeveral ? `the graph ${first.name} and ${others.length} more` : `the graph ${first.name}`;
  }

  /** The flags of a worker that name the graphs and their quotas. */
  get workerFlags(): string[] {
    const quotas = [...this.quotas].map(([name, quota]) => `${name}=${Math.round(quota * 100)}`);
    return [
      ...this.names.flatMap((name) => ["--graph", name]),
      ...quotas.flatMap((quota) => ["--graph-quota", quota]),
    ];
  }

  /** The value of `TIDEGRAPH_GRAPH_SHARE`; `undefined` if all graphs have the same part. */
  get shareVariable(): string | undefined {
    if (this.shares.size === 0) return undefined;
    const given = [...this.shares.values()].reduce((before, share) => before + share, 0);
    const rest = (1 - given) / (this.names.length - this.shares.size);
    const part = (name: string): number => Math.max(1, Math.round((this.shares.get(name) ?? rest) * PARTS));
    return this.names.map((name) => `${name}=${part(name)}`).join(",");
  }

  /** Returns a path in the data bucket of each graph, without the slashes around it. */
  paths(...below: string[]): string[] {
    const folders = ["", ...this.others.map(({ name }) => `${folderOf(name)}/`)];
    return folders.flatMap((folder) => below.map((path) => `${folder}${path}`));
  }
}

/** Returns the folder of a further graph in the data bucket (`engine-core/cluster/src/model.rs`). */
export function folderOf(graph: string): string {
  return `graphs/${graph}`;
}

/** Returns props without those that are `undefined`, which other languages pass. */
function defined<T extends object>(props: T): Partial<T> {
  return Object.fromEntries(Object.entries(props).filter(([, value]) => value !== undefined)) as Partial<T>;
}

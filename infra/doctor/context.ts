/** What the checks share: the clients, the deployment, and answers that several of them need, each asked for once. */
import type { Clients } from "./clients.ts";
import type { Deployment } from "./deployment.ts";

export class Context {
  readonly clients: Clients;
  readonly deployment: Deployment;
  /** The graph that is looked at: the first one, or one that `of` chose. `undefined` without a service. */
  readonly graph: string | undefined;
  readonly region: string;
  /** The release of this command. */
  readonly release: string;
  /** Pause between the two looks that tell whether a counter grows, in milliseconds. */
  readonly pauseMs: number;
  readonly #known = new Map<string, Promise<unknown>>();

  constructor(parts: {
    clients: Clients;
    deployment: Deployment;
    region: string;
    release: string;
    pauseMs: number;
    graph?: string | undefined;
  }) {
    this.graph = parts.graph ?? parts.deployment.graphs[0];
    this.clients = parts.clients;
    this.deployment = parts.deployment;
    this.region = parts.region;
    this.release = parts.release;
    this.pauseMs = parts.pauseMs;
  }

  /** Returns what checks of one graph share. */
  of(graph: string): Context {
    const { clients, deployment, region, release, pauseMs } = this;
    return new Context({ clients, deployment, region, release, pauseMs, graph });
  }

  /** Asks once for all checks: later calls with the name get the same answer, or the same failure. */
  once<T>(name: string, ask: () => Promise<T>): Promise<T> {
    const known = this.#known.get(name);
    if (known !== undefined) return known as Promise<T>;
    const asked = ask();
    this.#known.set(name, asked);
    return asked;
  }
}

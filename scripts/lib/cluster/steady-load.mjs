/** Clients of the workers of a fleet that read and write without a pause: no request may fail, whatever is changed. */

/** Longest wait for an answer, so that a request that is never answered is told by its text. */
const ANSWER_MS = 60_000;

/** The query of reads: it counts vertices that nobody changes. */
export const READ = "MATCH (s:Start) RETURN count(s) AS n";

export class SteadyLoad {
  constructor() {
    /** Endpoints that clients ask in turn. @type {string[]} */
    this.endpoints = [];
    this.answered = { reads: 0, writes: 0 };
    /** @type {string[]} */
    this.failed = [];
    this.stopping = false;
    /** The newest version that a worker has answered with: another worker may be some milliseconds behind it. */
    this.newest = 0n;
    /** @type {Promise<void>[]} */
    this.clients = [];
  }

  /** A header with which a worker or function waits for the newest version before it answers. */
  bookmark() {
    return { "Tidegraph-Version": String(this.newest) };
  }

  /** @param {string} endpoint @param {string} query @param {Record<string, string>} [headers] */
  async ask(endpoint, query, headers = {}) {
    const body = new URLSearchParams({ query });
    const signal = AbortSignal.timeout(ANSWER_MS);
    const response = await fetch(`${endpoint}/openCypher`, { method: "POST", headers, body, signal });
    const version = BigInt(response.headers.get("tidegraph-version") ?? 0);
    if (version > this.newest) this.newest = version;
    return { status: response.status, body: await response.json() };
  }

  /** Asks all endpoints in turn; each fourth request writes. @param {number} client */
  async run(client) {
    for (let number = 0; !this.stopping; number += 1) {
      const endpoint = this.endpoints[number % this.endpoints.length] ?? "";
      const writes = number % 4 === 0;
      const query = writes ? `CREATE (:Made {client: ${client}, number: ${number}}) RETURN 1 AS n` : READ;
      const answer = await this.ask(endpoint, query).catch((error) => ({ status: 0, body: String(error) }));
      if (answer.status !== 200) this.failed.push(`${query} at ${endpoint}: ${JSON.stringify(answer)}`);
      else if (writes) this.answered.writes += 1;
      else this.answered.reads += 1;
    }
  }

  /** @param {number} count of clients */
  start(count) {
    this.clients = Array.from({ length: count }, (_, client) => this.run(client));
  }

  /** Waits until the last requests are answered. */
  async stop() {
    this.stopping = true;
    await Promise.all(this.clients);
  }
}

/**
 * Transactions and reads against a service while faults happen, and a check of their outcome.
 *
 * A transaction creates three vertices and two edges that carry its number. An acknowledged one must be complete
 * afterwards, whichever processes died; one without an acknowledgement must be complete or absent.
 */
import { setTimeout as sleep } from "node:timers/promises";

const WRITE =
  "CREATE (a:Tx {txn: $txn, part: 1}), (b:Tx {txn: $txn, part: 2}), (c:Tx {txn: $txn, part: 3}), " +
  "(a)-[:STEP {txn: $txn}]->(b), (b)-[:STEP {txn: $txn}]->(c)";
const READ = "MATCH (a:Tx {txn: $txn})-[:STEP]->(b) RETURN count(b) AS n";
/** Longest wait for an answer. */
const ANSWER_MS = 60_000;

export class Load {
  /** @param {string} endpoint */
  constructor(endpoint) {
    this.endpoint = endpoint;
    this.running = true;
    this.next = 1;
    /** @type {Set<number>} */
    this.acknowledged = new Set();
    /**
     * For acknowledged transactions, the endpoint that wrote it and the version. At another endpoint a read has to ask for
     * the version: another worker may be behind for some milliseconds.
     * @type {Map<number, { endpoint: string, version: string }>}
     */
    this.written = new Map();
    /**
     * Numbers of transactions without an acknowledgement, because of an error or a missing answer; they may be in the
     * graph.
     * @type {Set<number>}
     */
    this.open = new Set();
    /** @type {{ at: number, ms: number }[]} */
    this.writes = [];
    /** @type {{ at: number, ms: number }[]} */
    this.reads = [];
    /** @type {string[]} */
    this.readErrors = [];
    /** @type {string[]} */
    this.writeErrors = [];
    /** @type {string[]} */
    this.wrong = [];
    /** @type {Promise<void>[]} */
    this.clients = [];
  }

  /**
   * @param {string} query
   * @param {Record<string, unknown>} parameters
   */
  async ask(query, parameters = {}) {
    return (await this.answer(this.endpoint, query, parameters)).rows;
  }

  /**
   * @param {string} endpoint
   * @param {string} query
   * @param {Record<string, unknown>} parameters
   * @param {string} [version] the oldest version that the query may read
   */
  async answer(endpoint, query, parameters, version) {
    const answer = await fetch(`${endpoint}/openCypher`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(version && { "tidegraph-version": version }) },
      body: JSON.stringify({ query, parameters }),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${answer.status} ${text}`);
    return { rows: JSON.parse(text).results, version: answer.headers.get("tidegraph-version") ?? "" };
  }

  /**
   * @param {number} writers
   * @param {number} readers
   */
  start(writers, readers) {
    for (let n = 0; n < writers; n += 1) this.clients.push(this.write());
    for (let n = 0; n < readers; n += 1) this.clients.push(this.read());
  }

  async write() {
    while (this.running) {
      const txn = this.next;
      this.next += 1;
      this.open.add(txn);
      const begin = performance.now();
      const { endpoint } = this;
      try {
        const { version } = await this.answer(endpoint, WRITE, { txn });
        this.written.set(txn, { endpoint, version });
        this.acknowledged.add(txn);
        this.open.delete(txn);
        this.writes.push({ at: begin, ms: performance.now() - begin });
      } catch (error) {
        this.writeErrors.push(String(error));
        await sleep(20);
      }
    }
  }

  async read() {
    while (this.running) {
      const known = this.acknowledged.size;
      if (known === 0) {
        await sleep(10);
        continue;
      }
      const txn = [...this.acknowledged][Math.floor(Math.random() * known)] ?? 1;
      const begin = performance.now();
      const { endpoint } = this;
      const by = this.written.get(txn);
      const atLeast = by && by.endpoint !== endpoint ? by.version : undefined;
      try {
        const { rows } = await this.answer(endpoint, READ, { txn }, atLeast);
        const [row] = rows;
        if (row.n !== 2) this.wrong.push(`transaction ${txn} has ${row.n} of 2 steps`);
        this.reads.push({ at: begin, ms: performance.now() - begin });
      } catch (error) {
        this.readErrors.push(String(error));
        await sleep(20);
      }
    }
  }

  async stop() {
    this.running = false;
    await Promise.all(this.clients);
  }

  /** Compares the graph with the acknowledged transactions. */
  async verify() {
    const parts = await this.ask("MATCH (n:Tx) RETURN n.txn AS txn, count(n) AS n");
    const steps = await this.ask("MATCH ()-[s:STEP]->() RETURN s.txn AS txn, count(s) AS n");
    const vertices = new Map(parts.map((/** @type {any} */ row) => [row.txn, row.n]));
    const edges = new Map(steps.map((/** @type {any} */ row) => [row.txn, row.n]));
    let lost = 0;
    let half = 0;
    for (const txn of this.acknowledged) if (!vertices.has(txn)) lost += 1;
    for (const txn of new Set([...vertices.keys(), ...edges.keys()])) {
      if (vertices.get(txn) !== 3 || edges.get(txn) !== 2) half += 1;
    }
    const foreign = [...vertices.keys()].filter(
      (txn) => !this.acknowledged.has(txn) && !this.open.has(txn),
    ).length;
    return { lost, half, foreign };
  }

  /** Returns the longest time without an acknowledged write, from `since` on, in milliseconds. */
  pause(since = 0) {
    const ends = this.writes.map(({ at, ms }) => at + ms).filter((end) => end >= since);
    ends.sort((a, b) => a - b);
    let longest = 0;
    let last = since;
    for (const end of ends) {
      longest = Math.max(longest, end - last);
      last = end;
    }
    return Math.round(longest);
  }

  /**
   * Returns the latency of reads that started between two times.
   *
   * @param {number} from
   * @param {number} to
   */
  readLatency(from, to) {
    const some = this.reads
      .filter(({ at }) => at >= from && at < to)
      .map(({ ms }) => ms)
      .sort((a, b) => a - b);
    const at = (/** @type {number} */ part) =>
      Math.round((some[Math.floor(some.length * part)] ?? 0) * 10) / 10;
    return { reads: some.length, p50: at(0.5), p99: at(0.99) };
  }
}

/**
 * kill -9 in the middle of writes (invariants LOG-1, LOG-2 and LOAD-1): after a restart every acknowledged transaction
 * is complete, and no transaction is there in part. Each transaction creates three vertices and two edges that carry
 * its number, and so does each bulk load as a whole.
 */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { cypher, cypherValue, post } from "../src/client.ts";
import { manyVertices, writeSource } from "../src/data.ts";
import { eventually, Server } from "../src/server.ts";

const ROUNDS = 4;
const WRITERS = 6;
const LOADED_ROWS = 30_000;

const IN_CYPHER =
  "CREATE (a:Tx {txn: $txn, part: 1}), (b:Tx {txn: $txn, part: 2}), (c:Tx {txn: $txn, part: 3}), " +
  "(a)-[:STEP {txn: $txn}]->(b), (b)-[:STEP {txn: $txn}]->(c)";

function inGremlin(txn: number): string {
  const vertex = (part: number, as: string) =>
    `addV('Tx').property('txn',${txn}).property('part',${part}).as('${as}')`;
  return (
    `g.${vertex(1, "a")}.${vertex(2, "b")}.${vertex(3, "c")}` +
    `.addE('STEP').from('a').to('b').property('txn',${txn}).addE('STEP').from('b').to('c').property('txn',${txn})`
  );
}

/** Writes transactions one after another until the server is gone; records the acknowledged ones. */
async function write(server: Server, next: () => number, acknowledged: Set<number>): Promise<void> {
  for (;;) {
    const txn = next();
    try {
      const answer =
        txn % 3 === 0
          ? await post(server, "/gremlin", { gremlin: inGremlin(txn) })
          : await post(server, "/openCypher", { query: IN_CYPHER, parameters: { txn } });
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
      acknowledged.add(txn);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      return;
    }
  }
}

/** Returns the number of elements of each transaction. */
async function found(server: Server, query: string): Promise<Map<unknown, unknown>> {
  return new Map((await cypher(server, query)).map((row) => [row.txn, row.n]));
}

test("kill -9 in the middle of writes", { timeout: 900_000 }, (t) => survives(t, []));

test("kill -9 in the middle of writes that the disk does not have yet", { timeout: 900_000 }, (t) =>
  survives(t, ["--sync-log-every-ms", "60000"]),
);

async function survives(t: TestContext, args: string[]): Promise<void> {
  const server = await Server.start(t, { args });
  const acknowledged = new Set<number>();
  let last = 0;
  let largest = 0;
  for (let round = 1; round <= ROUNDS; round += 1) {
    const source = await writeSource(
      server.home,
      `in/load-${round}.csv`,
      manyVertices(`r${round}-`, LOADED_ROWS, `Load${round}`),
    );
    const delayMs = randomInt(150, 900);
    const before = acknowledged.size;
    const writers = Array.from({ length: WRITERS }, () => {
      return write(
        server,
        () => {
          last += 1;
          return last;
        },
        acknowledged,
      );
    });
    const started = post(server, "/loader", { source, format: "csv" }).catch(() => undefined);
    // The time of the kill is random, but never before the first acknowledgement, even on a slow machine.
    await eventually("a write is acknowledged", async () => acknowledged.size > before);
    await sleep(delayMs);
    await server.kill();
    await Promise.all([...writers, started]);
    await server.start({ args });

    const where = `round ${round}, killed after ${delayMs} ms, ${acknowledged.size - before} acknowledged in it`;
    assert.ok(acknowledged.size > before, where);
    const vertices = await found(server, "MATCH (n:Tx) RETURN n.txn AS txn, count(n) AS n");
    const edges = await found(server, "MATCH (:Tx)-[r:STEP]->(:Tx) RETURN r.txn AS txn, count(r) AS n");
    const lost = [...acknowledged].filter((txn) => !vertices.has(txn));
    assert.deepEqual(lost, [], `acknowledged and lost; ${where}`);
    const half = [...vertices].filter(([txn, n]) => n !== 3 || edges.get(txn) !== 2);
    assert.deepEqual(half, [], `half applied; ${where}`);
    assert.equal(edges.size, vertices.size, `edges without vertices; ${where}`);
    const loaded = await cypherValue(server, `MATCH (n:Load${round}) RETURN count(n)`);
    assert.ok(loaded === 0 || loaded === LOADED_ROWS, `half a load: ${loaded}; ${where}`);
    largest = Math.max(largest, vertices.size);
    t.diagnostic(
      `${where}; ${vertices.size} found, ${lost.length} lost, ${half.length} half applied; load: ${loaded} rows`,
    );
  }
  assert.ok(largest >= acknowledged.size);
}

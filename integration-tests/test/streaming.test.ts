/**
 * Answers that would not fit into the service's memory, through HTTP and unmodified drivers: rows leave while their query
 * runs, and a query ends with its client.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { cypherValue, post } from "../src/client.ts";
import { shared } from "../src/fleet.ts";
import { eventually, Server } from "../src/server.ts";

/** Longest time of one driver's checks; generous, since other programs may keep the machine busy. */
const PATIENCE_MS = 600_000;
const MIB = 1 << 20;
/** Far less than the answers below take whole. */
const ARGS = [
  ["--query-memory-bytes", String(48 * MIB)],
  ["--query-memory-total", String(64 * MIB)],
  ["--concurrent-queries", "4"],
  // A client takes as long as the machine lets it.
  ["--query-timeout-ms", String(PATIENCE_MS)],
].flat();
const ENDLESS = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN a, b";

/** Waits until no query runs and no memory is held. */
function becomesFree(server: Server): Promise<boolean> {
  return eventually("no query runs", async () => {
    const [languages, status] = await Promise.all([
      Promise.all(["openCypher", "gremlin"].map((of) => fetch(`${server.endpoint}/${of}/status`))),
      fetch(`${server.endpoint}/status`),
    ]);
    const running = (await Promise.all(languages.map((each) => each.json()))) as {
      runningQueryCount: number;
    }[];
    const { queryMemory } = (await status.json()) as { queryMemory: { usedBytes: number } };
    return running.every((each) => each.runningQueryCount === 0) && queryMemory.usedBytes === 0;
  });
}

async function client(t: TestContext, name: string): Promise<void> {
  const server = await Server.start(t, { args: ARGS });
  const program = fileURLToPath(new URL(`../clients/${name}`, import.meta.url));
  const child = spawn(process.execPath, [program, `127.0.0.1:${server.port}`], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: PATIENCE_MS,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  const code = await new Promise((done) => child.on("close", done));
  assert.equal(code, 0, output);
  await becomesFree(server);
}

test("Neo4j's driver for JavaScript", (t) => client(t, "neo4j_stream.mjs"));
test("TinkerPop's driver for JavaScript", (t) => client(t, "gremlin_stream.mjs"));

test("over HTTP", async (t) => {
  const server = await Server.start(t, { args: ARGS });
  for (let from = 0; from < 100_000; from += 10_000) {
    const text = `UNWIND range(${from}, ${from + 9_999}) AS i CREATE (:P {i: i, text: 'a text of a vertex'})`;
    assert.equal((await post(server, "/openCypher", { query: text })).status, 200);
  }
  const answers: [string, string, number][] = [
    ["UNWIND range(1, 1000000) AS i RETURN i, toString(i) AS text", '{"i":', 1_000_000],
    ["MATCH (p:P) RETURN p, [p.i, p.text] AS list, properties(p) AS found", '{"p":', 100_000],
  ];
  for (const [query, row, expected] of answers) {
    const answer = await fetch(`${server.endpoint}/openCypher`, {
      method: "POST",
      headers: { "content-type": "application/json", "accept-encoding": "identity" },
      body: JSON.stringify({ query }),
    });
    assert.equal(answer.status, 200);
    let rows = 0;
    let rest = "";
    for await (const chunk of answer.body ?? []) {
      const text = rest + Buffer.from(chunk).toString("latin1");
      rows += text.split(row).length - 1;
      rest = text.slice(1 - row.length);
    }
    assert.deepEqual([rows, rest.slice(-3)], [expected, "}]}"], query);
  }
  // Resident memory, where the system says what a process took at most.
  const status = await readFile(`/proc/${server.pid}/status`, "utf8").catch(() => "");
  const peak = /VmHWM:\s+(\d+) kB/.exec(status)?.[1];
  if (peak !== undefined && shared() === undefined)
    t.diagnostic(`at most ${Math.round(Number(peak) / 1024)} MiB were resident`);

  // Compressed, the same.
  const packed = await fetch(`${server.endpoint}/openCypher`, {
    method: "POST",
    headers: { "content-type": "application/json", "accept-encoding": "gzip" },
    body: JSON.stringify({ query: "UNWIND range(1, 100000) AS i RETURN i" }),
  });
  assert.equal(packed.headers.get("content-encoding"), "gzip");
  const { results } = (await packed.json()) as { results: unknown[] };
  assert.deepEqual([results.length, results.at(-1)], [100_000, { i: 100_000 }]);

  // The first rows come while the query runs, and it ends with its client.
  const leaves = new AbortController();
  const endless = await fetch(`${server.endpoint}/openCypher`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query: ENDLESS, queryId: "endless" }),
    signal: leaves.signal,
  });
  const first = await endless.body?.getReader().read();
  assert.match(Buffer.from(first?.value ?? []).toString(), /^\{"results":\[\{"a":1,"b":1\}/);
  assert.equal((await fetch(`${server.endpoint}/openCypher/status/endless`)).status, 200);
  leaves.abort();
  await becomesFree(server);

  // An error after rows.
  const failing = await post(server, "/openCypher", {
    query: "UNWIND range(1, 100000) AS i RETURN 1 / (90000 - i)",
  });
  assert.equal(failing.status, 200);
  await assert.rejects(failing.text());
  assert.equal(await cypherValue(server, "MATCH (p:P) RETURN count(p)"), 100_000);
});

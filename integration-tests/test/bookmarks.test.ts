/** Versions in answers and requests: a client sees its own writes, and any version that it was told. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { refusal, resultsOf, rowsOf } from "../src/client.ts";
import { Server } from "../src/server.ts";

/** Sends a query in either language, with headers. */
function ask(server: Server, path: string, body: object, headers: Record<string, string> = {}) {
  return fetch(`${server.endpoint}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

/** Returns the version of an answer. */
function versionOf(answer: Response): bigint {
  const version = answer.headers.get("tidegraph-version");
  assert.match(version ?? "none", /^\d+$/);
  return BigInt(version ?? "");
}

test("an answer says which version it is of, and a request may ask for one", async (t) => {
  const server = await Server.start(t);
  const write = await ask(server, "/openCypher", { query: "CREATE (:Person {name: 'Ada'})" });
  const written = versionOf(write);
  await rowsOf(write);
  assert.ok(written > 0n);
  const headers = { "Tidegraph-Version": String(written) };
  const count = { query: "MATCH (p:Person) RETURN count(p) AS n" };
  // Twice, because the server may answer the second one without queueing.
  for (let turn = 0; turn < 2; turn += 1) {
    const read = await ask(server, "/openCypher", count, headers);
    assert.ok(versionOf(read) >= written);
    assert.deepEqual(await rowsOf(read), [{ n: 1 }]);
  }
  const steps = await ask(server, "/gremlin", { gremlin: "g.V().count()" }, headers);
  assert.ok(versionOf(steps) >= written);
  assert.deepEqual(await resultsOf(steps), [1]);
  const next = await ask(server, "/gremlin", { gremlin: "g.addV('Person')" }, headers);
  assert.ok(versionOf(next) > written);
  const inAddress = await fetch(`${server.endpoint}/openCypher?query=RETURN%201%20AS%20one`, { headers });
  assert.ok(versionOf(inAddress) > written);
});

test("a version that is not there is waited for, and comes", async (t) => {
  const server = await Server.start(t);
  const before = versionOf(await ask(server, "/openCypher", { query: "CREATE (:A {n: 1})" }));
  const query = "MATCH (a:A) RETURN max(a.n) AS n";
  const next = ask(server, "/openCypher", { query }, { "Tidegraph-Version": String(before + 1n) });
  await ask(server, "/openCypher", { query: "MATCH (a:A) SET a.n = 2" });
  const read = await next;
  assert.ok(versionOf(read) > before);
  assert.deepEqual(await rowsOf(read), [{ n: 2 }]);
});

test("a version that does not come in time can be asked for again", async (t) => {
  const server = await Server.start(t);
  const body = { query: "MATCH (n) RETURN count(n)", queryTimeoutMilliseconds: 3_000 };
  const late = await ask(server, "/openCypher", body, { "Tidegraph-Version": "1000000" });
  assert.equal(late.status, 503);
  assert.match(await refusal(late, "ServiceUnavailableException"), /version 1000000/);
});

test("what is no version is refused by name", async (t) => {
  const server = await Server.start(t);
  for (const wrong of ["-1", "x", "1.5", "18446744073709551616", "1, 2"]) {
    for (const [path, body] of [
      ["/openCypher", { query: "RETURN 1" }],
      ["/gremlin", { gremlin: "g.V()" }],
    ] as const) {
      const answer = await ask(server, path, body, { "Tidegraph-Version": wrong });
      assert.equal(answer.status, 400, wrong);
      const message = await refusal(answer, "InvalidParameterException");
      assert.ok(message.includes(wrong), message);
    }
  }
});

/** Bad requests get Neptune's error body, the right status, the position and what was expected, and never a 500. */
import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { cypherValue, post, refusal } from "../src/client.ts";
import { Server } from "../src/server.ts";

/** Sends headers that announce a body of this length, but no body. */
function promise(server: Server, path: string, bytes: number): Promise<{ status: number; body: string }> {
  return new Promise((done, fail) => {
    const headers = { "content-type": "application/json", "content-length": bytes };
    const asked = request(`${server.endpoint}${path}`, { method: "POST", headers }, (answer) => {
      let body = "";
      answer.on("data", (chunk) => {
        body += chunk;
      });
      answer.on("end", () => {
        asked.destroy();
        done({ status: answer.statusCode ?? 0, body });
      });
    });
    asked.on("error", fail);
    asked.flushHeaders();
  });
}

test("bad requests", async (t) => {
  const server = await Server.start(t);
  const { endpoint } = server;
  const inCypher = (query: string, parameters?: unknown) =>
    post(server, "/openCypher", { query, parameters });
  const inGremlin = (gremlin: string) => post(server, "/gremlin", { gremlin });

  await t.test("a syntax error names line and column", async () => {
    const first = await refusal(await inCypher("MATCH (n) RETRUN n"), "MalformedQueryException");
    assert.match(first, / at 1:11$/);
    const second = await refusal(
      await inCypher("MATCH (n)\nWHERE n.x = = 1\nRETURN n"),
      "MalformedQueryException",
    );
    assert.match(second, /line 2|2:13/);
    const third = await refusal(await inGremlin("g.V().out('x'"), "MalformedQueryException");
    assert.match(third, /line 1|1:14/);
    const fourth = await refusal(await inGremlin("g.V().flyAway()"), "MalformedQueryException");
    assert.match(fourth, /flyAway/);
    assert.match(fourth, /line 1|1:7/);
  });

  await t.test("an unknown variable is an error of the query", async () => {
    assert.match(await refusal(await inCypher("RETURN nobody"), "MalformedQueryException"), /nobody/);
  });

  await t.test("what is not there yet is refused by name and place", async () => {
    const message = await refusal(
      await inCypher("CALL neptune.algo.pageRank() YIELD node RETURN node"),
      "UnsupportedOperationException",
    );
    assert.match(message, /not supported yet/);
    assert.match(message, /neptune\.algo\.pageRank at 1:6$/);
    const step = await refusal(await inGremlin("g.io('/a.json').write()"), "UnsupportedOperationException");
    assert.match(step, /not supported yet: write\(\) of io\(\) at 1:17$/);
    // A file is named by its address.
    const place = await refusal(await inGremlin("g.io('a.json').read()"), "BadRequestException");
    assert.match(place, /^io\(\): source a\.json: it is no address of a file/);
  });

  await t.test("a wrong type names the value and the place", async () => {
    const message = await refusal(await inCypher("RETURN 1 + {a: 1}"), "InvalidArgumentException");
    assert.match(message, /1:\d+|line 1|\+/);
  });

  await t.test("missing and wrong parameters", async () => {
    assert.match(await refusal(await post(server, "/openCypher", {}), "MissingParameterException"), /query/);
    assert.match(await refusal(await post(server, "/gremlin", {}), "MissingParameterException"), /gremlin/);
    assert.match(
      await refusal(await inCypher("RETURN $least", { other: 1 }), "MissingParameterException"),
      /least/,
    );
    assert.match(await refusal(await inCypher("RETURN 1", "[1"), "InvalidParameterException"), /parameters/);
    assert.match(await refusal(await inCypher("RETURN 1", 7), "InvalidParameterException"), /parameters/);
    await refusal(await fetch(`${endpoint}/openCypher`), "MissingParameterException");
    await refusal(await fetch(`${endpoint}/gremlin`), "MissingParameterException");
  });

  await t.test("a body that is not what it says", async () => {
    const send = (type: string, body: string | Uint8Array<ArrayBuffer>) =>
      fetch(`${endpoint}/openCypher`, { method: "POST", headers: { "content-type": type }, body });
    await refusal(await send("application/json", '{"query": '), "BadRequestException");
    await refusal(await send("application/json", "[1]"), "BadRequestException");
    await refusal(await send("application/xml", "<query/>"), "BadRequestException");
    const notUtf8 = new Uint8Array([0x7b, 0x22, 0x71, 0x22, 0x3a, 0x22, 0xff, 0xfe, 0x22, 0x7d]);
    await refusal(await send("application/json", notUtf8), "BadRequestException");
  });

  await t.test("unknown paths and wrong methods", async () => {
    assert.match(await refusal(await fetch(`${endpoint}/nowhere`), "NotFoundException"), /\/nowhere/);
    await refusal(await fetch(`${endpoint}/`), "NotFoundException");
    await refusal(
      await fetch(`${endpoint}/openCypher`, { method: "PUT", body: "x" }),
      "MethodNotAllowedException",
    );
    await refusal(await fetch(`${endpoint}/status`, { method: "DELETE" }), "MethodNotAllowedException");
    for (const [method, path, allowed] of [
      ["PUT", "/openCypher", ["GET", "HEAD", "POST"]],
      ["DELETE", "/gremlin", ["GET", "HEAD", "POST"]],
      ["POST", "/status", ["GET", "HEAD"]],
      ["PUT", "/loader", ["DELETE", "GET", "HEAD", "POST"]],
      ["PUT", "/gremlin/status/some-query", ["DELETE", "GET", "HEAD"]],
    ] as const) {
      const answer = await fetch(`${endpoint}${path}`, { method });
      const named = answer.headers.get("allow")?.split(/, */).sort();
      assert.deepEqual(named, allowed, `${method} ${path}`);
      assert.match(await refusal(answer, "MethodNotAllowedException"), new RegExp(method));
    }
  });

  await t.test("a body over the limit is refused before it is read, and while it is", async () => {
    const promised = await promise(server, "/openCypher", 50_000_000_000);
    assert.equal(promised.status, 413, promised.body);
    assert.equal(JSON.parse(promised.body).code, "RequestTooLargeException");
    // Twice the limit. A stream without an end would make the client produce chunks that nobody reads.
    let chunks = 32;
    const unknownLength = new ReadableStream({
      pull(controller) {
        if (chunks-- > 0) controller.enqueue(new Uint8Array(1 << 20).fill(0x20));
        else controller.close();
      },
    });
    const streamed = { method: "POST", body: unknownLength, duplex: "half" } as RequestInit;
    // The client sends all of it before it reads, and finds the answer.
    await refusal(await fetch(`${endpoint}/openCypher`, streamed), "RequestTooLargeException");
    const whole = { method: "POST", body: new Uint8Array(32 << 20).fill(0x20) };
    await refusal(await fetch(`${endpoint}/openCypher`, whole), "RequestTooLargeException");
  });

  await t.test("hostile queries are refused or answered, and the service goes on", async () => {
    const deep = `RETURN ${"(".repeat(20_000)}1${")".repeat(20_000)}`;
    const list = `RETURN ${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    const not = `RETURN ${"NOT ".repeat(20_000)}true`;
    const steps = `g.V()${".out()".repeat(20_000)}`;
    const nested = `g.V().where(${"__.where(".repeat(5_000)}__.out()${")".repeat(5_000)})`;
    for (const query of [deep, list, not]) assert.notEqual((await inCypher(query)).status, 500);
    for (const query of [steps, nested]) assert.notEqual((await inGremlin(query)).status, 500);
    assert.equal(await cypherValue(server, "RETURN 1"), 1);
  });

  await t.test("a load that cannot be", async () => {
    const start = (body: unknown) => post(server, "/loader", body);
    assert.match(await refusal(await start({ format: "csv" }), "MissingParameterException"), /source/);
    assert.match(await refusal(await start({ source: "file:///x" }), "MissingParameterException"), /format/);
    assert.match(
      await refusal(await start({ source: "file:///x", format: "xls" }), "InvalidParameterException"),
      /xls/,
    );
    const mode = { source: "file:///x", format: "csv", mode: "LATER" };
    assert.match(await refusal(await start(mode), "InvalidParameterException"), /LATER/);
    const id = "00000000-0000-4000-8000-000000000000";
    await refusal(await fetch(`${endpoint}/loader/${id}`), "BulkLoadIdNotFoundException");
    await refusal(
      await fetch(`${endpoint}/loader/${id}`, { method: "DELETE" }),
      "BulkLoadIdNotFoundException",
    );
  });
});

test("limits of a query", async (t) => {
  const server = await Server.start(t, { args: ["--query-memory-bytes", String(64 << 20)] });

  await t.test("a query over its time is stopped", async () => {
    const query =
      "UNWIND range(1, 100000) AS x UNWIND range(1, 100000) AS y WITH x, y WHERE x + y < 0 RETURN count(*)";
    const answer = await post(server, "/openCypher", { query, queryTimeoutMilliseconds: 300 });
    assert.match(await refusal(answer, "TimeLimitExceededException"), /300/);
  });

  await t.test("a query over its memory is stopped, and the service goes on", async () => {
    const query =
      "UNWIND range(1, 100000) AS x UNWIND range(1, 100000) AS y WITH collect(toString(x) + '-' + toString(y)) AS everything RETURN size(everything)";
    const answer = await post(server, "/openCypher", { query });
    await refusal(answer, "QueryLimitExceededException");
    assert.equal(await cypherValue(server, "RETURN 1"), 1);
  });
});

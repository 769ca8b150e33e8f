/** HTTP/2 with Node's client: without TLS, over TLS, and at the end of the service. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { type ClientHttp2Session, connect } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { PATIENCE_MS, Server } from "../src/server.ts";

function client(t: TestContext, address: string, ca?: Buffer): ClientHttp2Session {
  const session = connect(address, ca ? { ca } : {});
  session.on("error", () => {});
  t.after(() => session.destroy());
  return session;
}

/** Sends a body, and returns the status and the text of the answer. */
function post(session: ClientHttp2Session, path: string, body: object): Promise<[number, string]> {
  return new Promise((done, fail) => {
    const headers = { ":method": "POST", ":path": path, "content-type": "application/json" };
    const request = session.request(headers, { signal: AbortSignal.timeout(PATIENCE_MS) });
    let [status, text] = [0, ""];
    request.setEncoding("utf8");
    request.on("response", (head) => {
      status = Number(head[":status"]);
    });
    request.on("data", (chunk) => {
      text += chunk;
    });
    request.on("error", fail);
    request.on("end", () => done([status, text]));
    request.end(JSON.stringify(body));
  });
}

test("queries of both languages run beside each other on one connection", async (t) => {
  const server = await Server.start(t);
  const session = client(t, server.endpoint);
  const [created] = await post(session, "/openCypher", {
    query: "UNWIND range(0, 99) AS i CREATE (:Number {i: i})",
  });
  assert.equal(created, 200);
  const answers = Array.from({ length: 100 }, async (_, i) => {
    const [status, text] =
      i % 2 === 0
        ? await post(session, "/openCypher", {
            query: "MATCH (n:Number {i: $i}) RETURN n.i AS i",
            parameters: { i },
          })
        : await post(session, "/gremlin", { gremlin: `g.V().has('Number', 'i', ${i}).values('i')` });
    assert.equal(status, 200, text);
    const answer = JSON.parse(text);
    assert.equal(i % 2 === 0 ? answer.results[0].i : answer.result.data["@value"][0]["@value"], i);
  });
  await Promise.all(answers);
  const [status, text] = await post(session, "/openCypher", { query: "RETURN" });
  assert.equal(status, 400);
  assert.equal(JSON.parse(text).code, "MalformedQueryException");
});

test("a client with TLS gets HTTP/2 if it offers it", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tidegraph-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const certificate = join(folder, "certificate.pem");
  const server = await Server.start(t, { args: ["--listen-tls-self-signed", certificate] });
  const session = client(t, `https://127.0.0.1:${server.port}`, await readFile(certificate));
  const [status, text] = await post(session, "/gremlin", { gremlin: "g.inject(7)" });
  assert.equal(status, 200, text);
  assert.equal(session.alpnProtocol, "h2");
});

test("at the end of the service a client is told, and its query is answered", async (t) => {
  const server = await Server.start(t, { args: ["--grace-ms", "100000"] });
  const session = client(t, server.endpoint);
  const other = client(t, server.endpoint);
  /** Starts a query that runs until its time is over, and returns while it runs: with more time if that was over before. */
  const running = async (limitMs = 4_000): Promise<{ endless: Promise<[number, string]> }> => {
    let ended = false;
    const endless = post(session, "/openCypher", {
      query: "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b RETURN count(*)",
      queryTimeoutMilliseconds: limitMs,
    }).finally(() => {
      ended = true;
    });
    for (; !ended; await sleep(20)) {
      const [, text] = await post(other, "/openCypher/status", {});
      if (!ended && JSON.parse(text).runningQueryCount > 0) return { endless };
    }
    await endless;
    return running(2 * limitMs);
  };
  const { endless } = await running();
  const told = once(session, "goaway", { signal: AbortSignal.timeout(PATIENCE_MS) });
  process.kill(server.pid, "SIGTERM");
  const [code] = await told;
  assert.equal(code, 0);
  const [status, text] = await endless;
  assert.equal(JSON.parse(text).code, "TimeLimitExceededException", `${status} ${text}`);
});

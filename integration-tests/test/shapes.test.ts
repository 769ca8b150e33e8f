/** The requests that clients send over plain HTTP: graph-notebook, graph-explorer, awswrangler. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { parseAs } from "@tidegraph/contracts";
import { cypherValue, finishedLoad, post, refusal, rowsOf } from "../src/client.ts";
import { dataUri, LIBRARY } from "../src/data.ts";
import { eventually, Server } from "../src/server.ts";

/** A query that takes far longer than any test. */
const ENDLESS = {
  openCypher:
    "UNWIND range(1, 1000000) AS x UNWIND range(1, 1000) AS y WITH x, y WHERE x + y < 0 RETURN count(*)",
  gremlin: "g.inject(1).repeat(identity()).until(is(2))",
};

const form = (fields: Record<string, string>) => ({ method: "POST", body: new URLSearchParams(fields) });

/** Starts a very long query under an id and waits until it is listed; its answer is still pending. */
async function endless(server: Server, language: "openCypher" | "gremlin", queryId: string) {
  const text = ENDLESS[language];
  const asked =
    language === "gremlin"
      ? post(server, "/gremlin", { gremlin: text, queryId })
      : fetch(`${server.endpoint}/openCypher`, form({ query: text, queryId }));
  await eventually("the query is listed", async () => {
    const list = await (await fetch(`${server.endpoint}/${language}/status`)).json();
    const { queries } = list as { queries: { queryId: string; queryString: string }[] };
    return queries.some((query) => query.queryId === queryId && query.queryString === text);
  });
  return { asked };
}

async function cancels(
  t: TestContext,
  language: "openCypher" | "gremlin",
  cancel: (address: string, id: string) => Promise<Response>,
) {
  const server = await Server.start(t);
  const address = `${server.endpoint}/${language}/status`;
  const { asked } = await endless(server, language, "long-one");
  const answer = await cancel(address, "long-one");
  assert.equal(answer.status, 200, await answer.text());
  await refusal(await asked, "CancelledByUserException");
  const after = (await (await fetch(address)).json()) as { runningQueryCount: number; queries: unknown[] };
  assert.deepEqual([after.runningQueryCount, after.queries], [0, []]);
}

test("graph-notebook cancels with a form", (t) =>
  cancels(t, "openCypher", (address, queryId) =>
    fetch(address, form({ cancelQuery: "True", queryId, silent: "False" })),
  ));

test("graph-explorer cancels with a bare name in the address", (t) =>
  cancels(t, "gremlin", (address, queryId) => fetch(`${address}?cancelQuery&queryId=${queryId}`)));

test("the SDK cancels with DELETE", (t) =>
  cancels(t, "openCypher", (address, queryId) => fetch(`${address}/${queryId}`, { method: "DELETE" })));

test("what cannot be cancelled", async (t) => {
  const { endpoint } = await Server.start(t);
  for (const language of ["openCypher", "opencypher", "gremlin"]) {
    const address = `${endpoint}/${language}/status`;
    const gone = { cancelQuery: "true", queryId: "gone" };
    assert.match(await refusal(await fetch(address, form(gone)), "InvalidParameterException"), /gone/);
    const silent = await fetch(address, form({ ...gone, silent: "true" }));
    assert.equal(silent.status, 200, await silent.text());
    const one = await fetch(`${address}/gone?silent=true`, { method: "DELETE" });
    assert.equal(one.status, 200, await one.text());
    await refusal(await fetch(`${address}/gone`, { method: "DELETE" }), "InvalidParameterException");
    await refusal(await fetch(`${address}?cancelQuery`), "MissingParameterException");
    await refusal(await fetch(`${address}?cancelQuery=perhaps&queryId=x`), "InvalidParameterException");
  }
});

test("graph-notebook ends paths with a slash", async (t) => {
  const { endpoint } = await Server.start(t);
  for (const [path, query] of [
    ["openCypher/", { query: "RETURN 1" }],
    ["opencypher/", { query: "RETURN 1" }],
    ["gremlin/", { gremlin: "g.inject(1)" }],
  ] as const) {
    const answer = await fetch(`${endpoint}/${path}`, form(query));
    assert.equal(answer.status, 200, await answer.text());
  }
});

test("awswrangler loads and asks", async (t) => {
  const server = await Server.start(t);
  const { endpoint } = server;
  const request = {
    source: dataUri("gremlin/"),
    format: "csv",
    iamRoleArn: "arn:aws:iam::000000000000:role/none",
    mode: "AUTO",
    region: "eu-central-1",
    failOnError: "TRUE",
    parallelism: "HIGH",
    updateSingleCardinalityProperties: "FALSE",
    queueRequest: "TRUE",
  };
  const json = await post(server, "/loader", {
    ...request,
    parserConfiguration: { namedGraphUri: "http://aws.amazon.com/neptune/vocab/v01/DefaultNamedGraph" },
    dependencies: [],
  });
  const first = parseAs("LoaderStarted", await json.json()).payload.loadId;
  assert.equal((await finishedLoad(server, first)).overallStatus.status, "LOAD_COMPLETED");
  const dependencies = JSON.stringify([first]);
  const asForm = await fetch(`${endpoint}/loader`, form({ ...request, mode: "NEW", dependencies }));
  const second = parseAs("LoaderStarted", await asForm.json()).payload.loadId;
  assert.equal((await finishedLoad(server, second)).overallStatus.status, "LOAD_COMPLETED");
  const byQuery = await fetch(`${endpoint}/loader?loadId=${second}&details=true&errors=TRUE`);
  assert.equal(parseAs("LoaderStatus", await byQuery.json()).payload.overallStatus.fullUri, request.source);
  const ended = await fetch(`${endpoint}/loader?loadId=${second}`, { method: "DELETE" });
  assert.match(await refusal(ended, "BadRequestException"), /LOAD_COMPLETED/);

  const asked = await fetch(`${endpoint}/openCypher`, form({ query: "MATCH (n) RETURN count(n) AS n" }));
  assert.deepEqual(await rowsOf(asked), [{ n: LIBRARY.vertices }]);
  assert.equal(await cypherValue(server, "MATCH ()-[r]->() RETURN count(r)"), LIBRARY.edges);
  const status = parseAs("Status", await (await fetch(`${endpoint}/status`)).json());
  assert.equal(status.status, "healthy");
});

test("graph-explorer asks in Gremlin with an id and its type", async (t) => {
  const server = await Server.start(t);
  const accept = "application/vnd.gremlin-v3.0+json";
  const answer = await fetch(`${server.endpoint}/gremlin`, {
    method: "POST",
    headers: { "content-type": "application/json", accept },
    body: JSON.stringify({ gremlin: "g.inject(1)", queryId: "00000000-0000-4000-8000-00000000000a" }),
  });
  assert.equal(answer.headers.get("content-type"), accept);
  const message = parseAs("GremlinAnswer", await answer.json());
  assert.equal(message.requestId, "00000000-0000-4000-8000-00000000000a");
});

test("explanations are text, HTML or JSON", async (t) => {
  const { endpoint } = await Server.start(t);
  const explained = (path: string, fields: Record<string, string>, accept: string) =>
    fetch(`${endpoint}/${path}`, { ...form(fields), headers: { accept } });
  const query = "UNWIND [1, 2] AS n WITH n WHERE n < 2 RETURN n";
  const text = await explained("openCypher", { query, explain: "dynamic" }, "*/*");
  assert.match(text.headers.get("content-type") ?? "", /^text\/plain/);
  assert.match(await text.text(), /^operator +calls +rows +estimatedRows +milliseconds +requests +bytes\n/);
  const html = await explained("openCypher", { query, explain: "static" }, "text/html");
  assert.match(await html.text(), /^<pre>\n[^<]*&lt; 2[^<]*<\/pre>\n$/);
  const json = await explained("openCypher/explain", { query, explain: "details" }, "application/json");
  const { results } = parseAs("OpenCypherAnswer", JSON.parse(await json.text()));
  assert.deepEqual(results.at(-1)?.rows, 1);
  await refusal(await explained("openCypher", { query, explain: "all" }, "*/*"), "InvalidParameterException");
  const traversal = await explained("gremlin/profile", { gremlin: "g.inject(1, 2)" }, "*/*");
  assert.match(await traversal.text(), /answer/);
});

test("statements of a script run one after the other", async (t) => {
  const { endpoint } = await Server.start(t);
  const gremlin = "g.addV('a').iterate()\ng.addV('b').iterate();\ng.V().count()";
  const answer = await fetch(`${endpoint}/gremlin`, form({ gremlin }));
  const { result } = parseAs("GremlinAnswer", JSON.parse(await answer.text()));
  assert.deepEqual(result.data["@value"], [{ "@type": "g:Int64", "@value": 2 }]);
});

test("gzip, both ways", async (t) => {
  const { endpoint } = await Server.start(t);
  const query = "UNWIND range(1, 20000) AS n RETURN n";
  const body = gzipSync(JSON.stringify({ query }));
  const headers = {
    "content-type": "application/json",
    "content-encoding": "gzip",
    "accept-encoding": "gzip",
  };
  const answer = await fetch(`${endpoint}/openCypher`, { method: "POST", headers, body });
  assert.equal(answer.headers.get("content-encoding"), "gzip");
  assert.equal(parseAs("OpenCypherAnswer", JSON.parse(await answer.text())).results.length, 20_000);
  // Not the answer of a query: on a busy machine it may begin before its length is known, and is compressed then.
  const short = await fetch(`${endpoint}/status`);
  assert.equal(short.headers.get("content-encoding"), null);
  // Small as sent, and larger than a body may be.
  const bomb = gzipSync(JSON.stringify({ query: `RETURN '${" ".repeat(40 << 20)}'` }));
  const large = await fetch(`${endpoint}/openCypher`, { method: "POST", headers, body: bomb });
  await refusal(large, "RequestTooLargeException");
  const other = { ...headers, "content-encoding": "br" };
  const brotli = await fetch(`${endpoint}/openCypher`, { method: "POST", headers: other, body });
  await refusal(brotli, "BadRequestException");
  const cut = await fetch(`${endpoint}/openCypher`, { method: "POST", headers, body: body.subarray(0, 20) });
  await refusal(cut, "BadRequestException");
});

/** The metrics endpoint, as Prometheus reads it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { post } from "../src/client.ts";
import { Server } from "../src/server.ts";

test("requests are counted under their routes, and nothing of what clients send is named", async (t) => {
  const server = await Server.start(t, {});
  const ask = (path: string) => fetch(`${server.endpoint}${path}`);
  await post(server, "/openCypher", { query: "CREATE (:Secret {name: 'hush'})" });
  await ask("/openCypher?query=RETURN%20nonsense");
  await ask("/loader/no-such-load");
  await ask("/no/such/path");
  const answer = await ask("/metrics");
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  const text = await answer.text();
  const value = (metric: string) => {
    const line = text.split("\n").find((line) => line.startsWith(`${metric} `));
    assert.ok(line, `no ${metric} in\n${text}`);
    return Number(line.slice(metric.length + 1));
  };
  assert.equal(value('tidegraph_http_requests_total{path="/openCypher",status="200"}'), 1);
  assert.equal(value('tidegraph_http_requests_total{path="/openCypher",status="400"}'), 1);
  assert.equal(value('tidegraph_http_requests_total{path="/loader/{id}",status="404"}'), 1);
  assert.equal(value('tidegraph_http_request_duration_seconds_count{path="/openCypher"}'), 2);
  assert.equal(value("tidegraph_writable"), 1);
  assert.ok(value("tidegraph_version") > 0);
  assert.ok(value("tidegraph_memory_bytes") > 0);
  for (const theirs of ["hush", "Secret", "nonsense", "no-such-load", "/no/such"]) {
    assert.ok(!text.includes(theirs), `${theirs} in\n${text}`);
  }
});

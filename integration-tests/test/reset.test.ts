/** The fast reset: its two requests, what is refused, and kill -9 after it was acknowledged. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { cypherValue, finishedLoad, post, refusal, startLoad } from "../src/client.ts";
import { manyVertices, writeSource } from "../src/data.ts";
import { Server } from "../src/server.ts";

const form = (fields: Record<string, string>) => ({ method: "POST", body: new URLSearchParams(fields) });

interface System {
  readonly status: string;
  readonly payload?: { readonly token: string };
}

async function answered(answer: Response): Promise<System> {
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const body = JSON.parse(text) as System;
  assert.equal(body.status, "200 OK", text);
  return body;
}

/** Returns a token, asked for with JSON. */
async function token(server: Server): Promise<string> {
  const { payload } = await answered(await post(server, "/system", { action: "initiateDatabaseReset" }));
  assert.match(payload?.token ?? "", /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  return payload?.token ?? "";
}

async function reset(server: Server): Promise<void> {
  await answered(
    await post(server, "/system", { action: "performDatabaseReset", token: await token(server) }),
  );
}

test("a graph is reset with JSON and with forms, and can be filled again", async (t) => {
  const server = await Server.start(t);
  const count = "MATCH (n) RETURN count(n)";
  const system = `${server.endpoint}/system`;
  for (let round = 0; round < 2; round += 1) {
    const source = await writeSource(server.home, `in/${round}.csv`, manyVertices("v", 2_000, "Loaded"));
    await finishedLoad(server, await startLoad(server, { source, format: "csv" }));
    await cypherValue(server, "CREATE (a:A {`~id`: 'a'})-[e:E {`~id`: 'e'}]->(:B) RETURN 1");
    assert.equal(await cypherValue(server, count), 2_002);
    const initiated = await answered(await fetch(`${system}/`, form({ action: "initiateDatabaseReset" })));
    const fields = { action: "performDatabaseReset", token: initiated.payload?.token ?? "" };
    await answered(await fetch(system, form(fields)));
    assert.equal(await cypherValue(server, count), 0);
    await refusal(await fetch(system, form(fields)), "PreconditionsFailedException");
  }
});

test("what is no reset is refused, and changes nothing", async (t) => {
  const server = await Server.start(t);
  await cypherValue(server, "CREATE (:A) RETURN 1");
  const perform = (token: unknown) => post(server, "/system", { action: "performDatabaseReset", token });
  await refusal(await post(server, "/system", {}), "MissingParameterException");
  await refusal(await post(server, "/system", { action: "dropDatabase" }), "InvalidParameterException");
  await refusal(await perform(undefined), "MissingParameterException");
  for (const wrong of [
    "x",
    "../../graph",
    "00000000-0000-4000-8000-000000000000",
    7,
    [],
    "é".repeat(9_999),
  ]) {
    await refusal(await perform(wrong), "InvalidParameterException");
  }
  await refusal(await fetch(`${server.endpoint}/system`), "MethodNotAllowedException");
  assert.equal(await cypherValue(server, "MATCH (n) RETURN count(n)"), 1);
});

test("kill -9 after a reset, before and after a write", async (t) => {
  const server = await Server.start(t);
  const numbers = "MATCH (n:N) RETURN coalesce(sum(n.i), 0)";
  const write = (from: number) =>
    cypherValue(server, `UNWIND range(${from}, ${from + 99}) AS i CREATE (n:N {i: i}) RETURN count(n)`);
  for (let round = 1; round <= 3; round += 1) {
    await write(0);
    await reset(server);
    if (round > 1) await write(1_000);
    const expected = round > 1 ? 104_950 : 0;
    assert.equal(await cypherValue(server, numbers), expected);
    await server.kill();
    await server.start();
    assert.equal(await cypherValue(server, numbers), expected, `round ${round}`);
    // A stop writes a checkpoint, from which the next start goes on.
    await reset(server);
    await server.stop();
    await server.start();
    assert.equal(await cypherValue(server, numbers), 0, `round ${round}`);
  }
});

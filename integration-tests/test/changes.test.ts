/** The change stream: a reader that polls gets each change once and in order, across kill -9. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { cypherValue, refusal } from "../src/client.ts";
import { eventually, Server } from "../src/server.ts";

const ARGS = ["--streams"];

interface Event {
  readonly commitNum: number;
  readonly opNum: number;
}

interface Page {
  readonly lastEventId: Event;
  readonly totalRecords: number;
  readonly records: readonly {
    readonly eventId: Event;
    readonly op: string;
    readonly data: { readonly id: string; readonly key: string; readonly value: { readonly value: unknown } };
  }[];
}

/** Reads a page. A fleet that has just begun has no sequencer yet, and says to ask again. */
async function read(server: Server, parameters: Record<string, string>): Promise<Response> {
  let answer: Response | undefined;
  await eventually("a sequencer answers", async () => {
    answer = await fetch(`${server.endpoint}/propertygraph/stream?${new URLSearchParams(parameters)}`);
    return answer.status !== 503;
  });
  assert(answer !== undefined);
  return answer;
}

/** Reads on behind an event, or from the beginning. Waits until there is something. */
async function next(server: Server, after: Event | undefined): Promise<Page> {
  const place =
    after === undefined
      ? { iteratorType: "TRIM_HORIZON" }
      : {
          iteratorType: "AFTER_SEQUENCE_NUMBER",
          commitNum: String(after.commitNum),
          opNum: String(after.opNum),
        };
  let page: Page | undefined;
  await eventually("there are changes", async () => {
    const answer = await read(server, { ...place, limit: "3" });
    const text = await answer.text();
    if (answer.status === 404) return false;
    assert.equal(answer.status, 200, text);
    page = JSON.parse(text) as Page;
    return page.totalRecords > 0;
  });
  assert(page !== undefined);
  return page;
}

test("a reader gets each change once and in order, also after kill -9", async (t) => {
  const server = await Server.start(t, { args: ARGS });
  const expected: string[] = [];
  const found: string[] = [];
  let last: Event | undefined;
  for (let round = 0; round < 3; round += 1) {
    for (let at = 0; at < 4; at += 1) {
      const n = 10 * round + at;
      await cypherValue(server, `CREATE (:A {\`~id\`: 'v${n}', n: ${n}}) RETURN 1`);
      expected.push(`ADD v${n} label "A"`, `ADD v${n} n ${n}`);
    }
    await cypherValue(server, `MATCH (a:A {n: ${10 * round}}) SET a.n = -1 RETURN 1`);
    expected.push(`REMOVE v${10 * round} n ${10 * round}`, `ADD v${10 * round} n -1`);
    while (found.length < expected.length) {
      const page = await next(server, last);
      for (const { op, data } of page.records) {
        found.push(`${op} ${data.id} ${data.key} ${JSON.stringify(data.value.value)}`);
      }
      last = page.lastEventId;
    }
    assert.deepEqual(found, expected);
    await server.kill();
    await server.start({ args: ARGS });
  }
  const newest = (await (await read(server, { iteratorType: "LATEST" })).json()) as Page;
  assert.deepEqual(newest.lastEventId, last);
});

test("what the stream does not have is refused by name", async (t) => {
  const server = await Server.start(t, { args: ARGS });
  await refusal(await read(server, { iteratorType: "LATEST" }), "StreamRecordsNotFoundException");
  await cypherValue(server, "CREATE (:A) RETURN 1");
  await refusal(await read(server, { iteratorType: "SOMEWHERE" }), "InvalidParameterException");
  const beyond = { iteratorType: "AT_SEQUENCE_NUMBER", commitNum: "1000000" };
  await refusal(await read(server, beyond), "StreamRecordsNotFoundException");
});

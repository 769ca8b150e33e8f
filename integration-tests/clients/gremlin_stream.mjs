/**
 * Long answers with TinkerPop's JavaScript driver. Argument: the address. The service has less memory than the answers
 * would take whole. It ends with an assertion if something is not as Gremlin Server would do it.
 */
import assert from "node:assert/strict";
import gremlin from "gremlin";

const [address] = process.argv.slice(2);
const id = "11111111-2222-3333-4444-555555555555";
/** Yields two to the power of `times` values. */
const many = (times) => `g.inject('a value')${".union(identity(), identity())".repeat(times)}`;

for (const mimeType of ["application/vnd.gremlin-v3.0+json", "application/vnd.graphbinary-v1.0"]) {
  const client = new gremlin.driver.Client(`ws://${address}/gremlin`, { traversalSource: "g", mimeType });
  let values = 0;
  let messages = 0;
  for await (const batch of client.stream(many(20), {}, { batchSize: 1_000 })) {
    values += batch.length;
    messages += 1;
  }
  assert.deepEqual([values, messages], [2 ** 20, Math.ceil(2 ** 20 / 1_000)]);

  // An error after values: somebody cancels the traversal.
  let before = 0;
  const cancelled = async () => {
    for await (const batch of client.stream(many(50), {}, { requestId: id })) {
      if (before === 0) await fetch(`http://${address}/gremlin/status/${id}`, { method: "DELETE" });
      before += batch.length;
    }
  };
  await assert.rejects(cancelled, (error) => error.statusCode === 597 && /Cancelled/.test(error.message));
  assert.ok(before > 0);
  assert.deepEqual((await client.submit("g.inject(7)")).toArray(), [7]);
  await client.close();
}

// A client that leaves.
const client = new gremlin.driver.Client(`ws://${address}/gremlin`, { traversalSource: "g" });
for await (const _ of client.stream(many(50))) break;
await client.close();

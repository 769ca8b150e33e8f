/**
 * Long answers with Neo4j's JavaScript driver. Argument: the address. The service has less memory than the answers would
 * take whole. It ends with an assertion if something is not as Neo4j's server would do it.
 */
import assert from "node:assert/strict";
import neo4j from "neo4j-driver";

const [address] = process.argv.slice(2);
const rows = 1_000_000;
const endless = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN a, b";
const driver = neo4j.driver(`bolt://${address}`, undefined, { disableLosslessIntegers: true });

const session = driver.session({ fetchSize: 10_000 });
let expected = 1;
const text = "UNWIND range(1, $rows) AS n RETURN n, toString(n) AS text, [n, n] AS list";
for await (const record of session.run(text, { rows: neo4j.int(rows) })) {
  assert.equal(record.get("n"), expected);
  expected += 1;
}
assert.equal(expected, rows + 1);

const columns = Array.from({ length: 100 }, (_, column) => `n + ${column} AS c${column}`);
let wide = 0;
for await (const record of session.run(`UNWIND range(1, 100000) AS n RETURN ${columns.join(", ")}`)) {
  wide += 1;
  assert.equal(record.get("c99"), wide + 99);
}
assert.equal(wide, 100_000);

// The same in transactions, as programs use the driver most.
for (const fetchSize of [1_000, 100_000]) {
  const inside = driver.session({ fetchSize });
  const counted = await inside.executeRead(async (transaction) => {
    let at = 0;
    for await (const record of transaction.run(text, { rows: neo4j.int(rows) })) {
      at += 1;
      assert.equal(record.get("n"), at);
    }
    return at;
  });
  assert.equal(counted, rows);
  await inside.close();
}
{
  const inside = driver.session({ fetchSize: 100 });
  // Another query for some rows of a long answer, whose rest the service keeps meanwhile; and answers that are left.
  const transaction = inside.beginTransaction();
  let at = 0;
  for await (const record of transaction.run("UNWIND range(1, 50000) AS n RETURN n")) {
    at += 1;
    assert.equal(record.get("n"), at);
    if (at % 20_000 === 0) await transaction.run("CREATE (:Seen {at: $at})", { at: neo4j.int(at) });
  }
  assert.equal(at, 50_000);
  for await (const record of transaction.run(endless)) if (record.get("b") === 1_000) break;
  const created = await transaction.run("UNWIND range(1, 5000) AS i CREATE (s:Seen {at: i}) RETURN s.at");
  assert.equal(created.summary.counters.updates().nodesCreated, 5_000);
  assert.equal(created.summary.counters.updates().labelsAdded, 5_000);
  await transaction.commit();
  const seen = await inside.run("MATCH (s:Seen) RETURN count(s) AS n");
  assert.equal(seen.records[0]?.get("n"), 5_002);

  // An error after rows ends the transaction.
  const work = inside.executeWrite(async (failing) => {
    await failing.run("CREATE (:Never)");
    for await (const _ of failing.run("UNWIND range(1, 100000) AS i RETURN 1 / (90000 - i)"));
  });
  await assert.rejects(work, { code: "Neo.ClientError.Statement.TypeError" });
  const never = await inside.run("MATCH (n:Never) RETURN count(n) AS n");
  assert.equal(never.records[0]?.get("n"), 0);
  await inside.close();
}

// An error after rows.
let before = 0;
const failing = async () => {
  for await (const _ of session.run("UNWIND range(1, 100000) AS i RETURN 1 / (90000 - i)")) before += 1;
};
await assert.rejects(failing, { code: "Neo.ClientError.Statement.TypeError" });
assert.ok(before > 0 && before < 90_000, `${before} rows`);

// A client that has seen enough.
let seen = 0;
for await (const _ of session.run(endless)) {
  seen += 1;
  if (seen === 50_000) break;
}
await session.close();

// Many results that are not read to their end, more than the service runs queries at once.
const sessions = Array.from({ length: 8 }, () => driver.session({ fetchSize: 100 }));
const iterators = sessions.map((each) => each.run(endless)[Symbol.asyncIterator]());
for (const iterator of iterators) assert.equal((await iterator.next()).value.get("b"), 1);
const between = driver.session();
const counted = await between.run("MATCH (n:Nobody) RETURN count(n) AS n");
assert.equal(counted.records[0]?.get("n"), 0);
// And those that are left open in transactions.
const transactions = Array.from({ length: 8 }, () => driver.session({ fetchSize: 100 }).beginTransaction());
for (const each of transactions) {
  const first = await each.run(endless)[Symbol.asyncIterator]().next();
  assert.equal(first.value.get("b"), 1);
}
const after = await between.run("MATCH (n:Nobody) RETURN count(n) AS n");
assert.equal(after.records[0]?.get("n"), 0);
await driver.close();

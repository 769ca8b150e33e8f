/**
 * Neo4j's JavaScript driver against the service. Arguments: the address, the password or an empty text, and
 * the file of the certificate if the service speaks TLS.
 *
 * It ends with an assertion if something is not as Neo4j's server would do it.
 */
import assert from "node:assert/strict";
import neo4j from "neo4j-driver";

const [address, password, certificate] = process.argv.slice(2);
const config = certificate
  ? { encrypted: true, trust: "TRUST_CUSTOM_CA_SIGNED_CERTIFICATES", trustedCertificates: [certificate] }
  : {};
const auth = password ? neo4j.auth.basic("any name", password) : undefined;
const rows = 100_000;

/** @param {import("neo4j-driver").Driver} driver */
async function values(driver) {
  const sent = {
    none: null,
    yes: true,
    small: neo4j.int(-17),
    half: 0.5,
    text: "Zoë 🌊",
    list: ["a", ["b"]],
    map: { k: "v" },
  };
  const { records } = await driver.executeQuery("RETURN $sent AS sent", { sent });
  assert.deepEqual(records[0]?.get("sent"), sent);
  const when = neo4j.types.DateTime.fromStandardDate(new Date("2024-05-06T07:08:09.123Z"));
  const answer = await driver.executeQuery("RETURN $when AS got", { when });
  assert.equal(answer.records[0]?.get("got").toStandardDate().getTime(), when.toStandardDate().getTime());
}

/** @param {import("neo4j-driver").Driver} driver */
async function elements(driver) {
  const text =
    "CREATE (a:JsPerson {`~id`: 'js-ada', name: 'Ada'})-[k:JS_KNOWS {since: 1842}]->(b:JsPerson) RETURN a, k, b";
  const { records, summary } = await driver.executeQuery(text);
  const [a, k] = [records[0]?.get("a"), records[0]?.get("k")];
  assert.deepEqual([a.elementId, a.labels, a.properties], ["js-ada", ["JsPerson"], { name: "Ada" }]);
  assert.deepEqual([k.type, k.startNodeElementId], ["JS_KNOWS", "js-ada"]);
  assert.equal(summary.counters.updates().nodesCreated, 2);
  const path = await driver.executeQuery("MATCH p = (a:JsPerson {name: 'Ada'})-[:JS_KNOWS]->() RETURN p");
  const [segment] = path.records[0]?.get("p").segments ?? [];
  assert.equal(segment.relationship.elementId, k.elementId);
}

/** @param {import("neo4j-driver").Driver} driver */
async function transactions(driver) {
  const session = driver.session();
  const transaction = session.beginTransaction();
  await transaction.run("CREATE (:Js)");
  await transaction.rollback();
  await session.executeWrite(async (work) => {
    await work.run("CREATE (:Js)");
  });
  const counted = await session.executeRead((work) => work.run("MATCH (t:Js) RETURN count(t) AS n"));
  assert.equal(counted.records[0]?.get("n").toNumber(), 1);
  assert.match(session.lastBookmarks()[0] ?? "", /^\d+$/);
  await session.close();
  // A transaction that conflicts once is run again.
  await driver.executeQuery("CREATE (:JsCounter {n: 0})");
  const [one, other] = [driver.session(), driver.session()];
  let tries = 0;
  await one.executeWrite(async (work) => {
    tries += 1;
    await work.run("MATCH (c:JsCounter) SET c.n = c.n + 1");
    if (tries === 1) await other.run("MATCH (c:JsCounter) SET c.n = c.n + 1");
  });
  assert.equal(tries, 2);
  const n = await other.run("MATCH (c:JsCounter) RETURN c.n AS n", {}, {});
  assert.equal(n.records[0]?.get("n").toNumber(), 2);
  await Promise.all([one.close(), other.close()]);
}

/** @param {import("neo4j-driver").Driver} driver */
async function errors(driver) {
  await assert.rejects(driver.executeQuery("RETURN 1 +"), { code: "Neo.ClientError.Statement.SyntaxError" });
  const session = driver.session({ defaultAccessMode: neo4j.session.READ });
  await assert.rejects(async () => await session.run("CREATE ()"), {
    code: "Neo.ClientError.Statement.AccessMode",
  });
  await session.close();
}

/** @param {import("neo4j-driver").Driver} driver */
async function stream(driver) {
  const session = driver.session({ fetchSize: 1_000 });
  let expected = 1;
  for await (const record of session.run("UNWIND range(1, $rows) AS n RETURN n", { rows: neo4j.int(rows) })) {
    assert.equal(record.get("n").toNumber(), expected);
    expected += 1;
  }
  assert.equal(expected, rows + 1);
  await session.close();
}

for (const scheme of ["bolt", "neo4j"]) {
  const driver = neo4j.driver(`${scheme}://${address}`, auth, config);
  await driver.verifyConnectivity();
  await values(driver);
  await driver.close();
}
const driver = neo4j.driver(`bolt://${address}`, auth, config);
for (const check of [elements, transactions, errors, stream]) await check(driver);
await driver.close();
if (password) {
  const wrong = neo4j.driver(`bolt://${address}`, neo4j.auth.basic("any name", "wrong"), config);
  await assert.rejects(wrong.verifyConnectivity(), { code: "Neo.ClientError.Security.Unauthorized" });
  await wrong.close();
}

/**
 * TinkerPop's JavaScript driver against the service. Arguments: the package of the driver, the address, the password or
 * an empty text, and anything if the service speaks TLS. It ends with an assertion if something is not as Gremlin Server would do it.
 */
import assert from "node:assert/strict";

const [name, address, password, certificate] = process.argv.slice(2);
const { default: gremlin } = await import(name);
const { driver, process: steps, structure } = gremlin;
const { statics: __, t: T, P, TextP, order, merge, cardinality } = steps;

const authenticator = password ? new driver.auth.PlainTextSaslAuthenticator("any name", password) : undefined;
const FORMATS = [
  "application/vnd.gremlin-v3.0+json",
  "application/vnd.gremlin-v2.0+json",
  "application/vnd.graphbinary-v1.0",
];
const options = (mimeType) => ({
  traversalSource: "g",
  mimeType,
  ...(authenticator ? { authenticator } : {}),
});
const url = `${certificate ? "wss" : "ws"}://${address}/gremlin`;

async function merges(g) {
  const merged = new Map([
    [T.id, "carl"],
    [T.label, "person"],
    ["name", "Carl"],
  ]);
  await g
    .mergeV(merged)
    .option(merge.onMatch, new Map([["name", "Carl again"]]))
    .iterate();
  await g
    .mergeV(new Map([[T.id, "carl"]]))
    .option(merge.onMatch, new Map([["name", "Carl again"]]))
    .iterate();
  // Another value of the key: as in Neptune, a key has a set of them.
  assert.deepEqual((await g.V("carl").values("name").toList()).sort(), ["Carl", "Carl again"]);
}

async function traversals(g, typedMaps) {
  await g.V().drop().iterate();
  const ada = (
    await g.addV("person").property(T.id, "ada").property("name", "Ada").property("age", 36).next()
  ).value;
  assert.ok(ada instanceof structure.Vertex);
  assert.equal(ada.id, "ada");
  assert.equal(ada.label, "person");
  await g.addV("person").property(T.id, "bob").property(cardinality.single, "name", "Bob 🌊").iterate();
  const knows = (await g.V("ada").addE("knows").to(__.V("bob")).property("since", 1842).next()).value;
  assert.equal(knows.outV.id, "ada");
  assert.equal(knows.inV.id, "bob");
  assert.deepEqual(await g.V("ada").out("knows").values("name").toList(), ["Bob 🌊"]);
  assert.equal((await g.V().has("name", P.within("Ada", "nobody")).count().next()).value, 1);
  assert.equal(
    (
      await g
        .V()
        .has("person", "age", P.gt(30).and(P.lt(40)))
        .count()
        .next()
    ).value,
    1,
  );
  assert.equal((await g.V().has("name", TextP.startingWith("A")).count().next()).value, 1);
  const names = await g.V().order().by("name", order.desc).values("name").toList();
  assert.deepEqual(names, ["Bob 🌊", "Ada"]);
  const counts = (await g.V().group().by(T.label).by(__.count()).next()).value;
  assert.equal(counts.get ? counts.get("person") : counts.person, 2);
  const path = (await g.V("ada").outE().inV().path().next()).value;
  assert.equal(path.objects.length, 3);
  assert.equal((await g.V("ada").repeat(__.out()).times(1).values("name").next()).value, "Bob 🌊");
  assert.equal(await g.V("nobody").hasNext(), false);
  if (typedMaps) await merges(g);
  // Many requests on one connection.
  const all = await Promise.all(Array.from({ length: 200 }, (_, at) => g.inject(at).next()));
  assert.deepEqual(
    all.map(({ value }) => value),
    Array.from({ length: 200 }, (_, at) => at),
  );
  await assert.rejects(g.V().id().pageRank().toList(), /UnsupportedOperationException/);
}

for (const mimeType of FORMATS) {
  const connection = new driver.DriverRemoteConnection(url, options(mimeType));
  const g = steps.AnonymousTraversalSource.traversal().withRemote(connection);
  try {
    // This driver writes no maps of T in GraphSON 2.
    await traversals(g, mimeType !== FORMATS[1]);
  } catch (error) {
    throw new Error(`${mimeType}: ${error.stack}`);
  }
  await connection.close();
}

const client = new driver.Client(url, options(FORMATS[0]));
const answer = await client.submit("g.V().has('name', name).values('age')", { name: "Ada" });
assert.deepEqual(answer.toArray(), [36]);
await assert.rejects(client.submit("g.V("), (error) => error.statusCode === 597);
await client.close();

const connection = new driver.DriverRemoteConnection(url, options(FORMATS[0]));
const g = steps.AnonymousTraversalSource.traversal().withRemote(connection);
const tx = g.tx();
const gtx = tx.begin();
await gtx.addV("inTransaction").iterate();
assert.equal((await gtx.V().hasLabel("inTransaction").count().next()).value, 1);
assert.equal((await g.V().hasLabel("inTransaction").count().next()).value, 0);
await tx.commit();
assert.equal((await g.V().hasLabel("inTransaction").count().next()).value, 1);
const second = g.tx();
await second.begin().addV("inTransaction").iterate();
await second.rollback();
assert.equal((await g.V().hasLabel("inTransaction").count().next()).value, 1);
await connection.close();

if (password) {
  const wrong = new driver.auth.PlainTextSaslAuthenticator("any name", "wrong");
  const refused = new driver.Client(url, { traversalSource: "g", authenticator: wrong });
  await assert.rejects(refused.submit("g.V().count()"), (error) => error.statusCode === 401);
  await refused.close();
}

"""llama-index: the property graph stores of Neptune and of Neptune Analytics."""

from checks import Checks, arguments, port_of
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, Relation
from llama_index.graph_stores.neptune import (
    NeptuneAnalyticsPropertyGraphStore,
    NeptuneDatabaseGraphStore,
    NeptuneDatabasePropertyGraphStore,
)

CHUNK = ChunkNode(id_="chunk-1", text="Ada wrote to Charles.", properties={"page": 7})
ADA = EntityNode(name="Ada", label="Person", properties={"born": 1815, "triplet_source_id": "chunk-1"})
CHARLES = EntityNode(name="Charles", label="Person", properties={"born": 1791})
LETTER = Relation(label="WROTE_TO", source_id="Ada", target_id="Charles", properties={"year": 1843})


def property_graph(tls):
    checks = Checks("llama-index `NeptuneDatabasePropertyGraphStore`", "llama-index-graph-stores-neptune")
    store = checks.step(
        "connect", lambda: NeptuneDatabasePropertyGraphStore(host="127.0.0.1", port=port_of(tls))
    )
    checks.step("upsert nodes", lambda: store.upsert_nodes([CHUNK, ADA, CHARLES]))
    checks.step("upsert relations", lambda: store.upsert_relations([LETTER]))
    found = checks.step("get", lambda: store.get(ids=["Ada"]))
    assert [(node.name, node.properties["born"]) for node in found] == [("Ada", 1815)], found
    triplets = checks.step("get triplets", lambda: store.get_triplets(entity_names=["Ada"]))
    assert [(a.name, r.label, r.properties, b.name) for a, r, b in triplets] == [
        ("Ada", "WROTE_TO", {"year": 1843}, "Charles")
    ], triplets
    around = checks.step("relations around nodes", lambda: store.get_rel_map([ADA], depth=2))
    assert ("Ada", "WROTE_TO", "Charles") in [(a.name, r.label, b.name) for a, r, b in around], around
    schema = checks.step("schema", lambda: store.get_schema(refresh=True))
    assert "(:`Author`)-[:`WROTE`]->(:`Book`)" in schema["triples"], schema
    counted = checks.step(
        "query with parameters",
        lambda: store.structured_query("MATCH (n:Person) WHERE n.born > $year RETURN count(n) AS n", {"year": 1800}),
    )
    assert counted == [{"n": 1}], counted
    checks.step("delete", lambda: store.delete(ids=["Ada", "Charles", "chunk-1"]))
    assert store.get(ids=["Ada"]) == []
    checks.report()


def graph(tls):
    checks = Checks("llama-index `NeptuneDatabaseGraphStore`", "llama-index-graph-stores-neptune")
    store = checks.step("connect", lambda: NeptuneDatabaseGraphStore(host="127.0.0.1", port=port_of(tls)))
    checks.step("upsert a triplet", lambda: store.upsert_triplet("ada", "knows well", "charles"))
    around = checks.step("relations around nodes", lambda: store.get_rel_map(["ada"]))
    assert around == {"ada": [["KNOWS_WELL", "charles"]]}, around
    store.query("MATCH (n:Entity) DETACH DELETE n")
    checks.report()


def analytics():
    checks = Checks("llama-index `NeptuneAnalyticsPropertyGraphStore`", "llama-index-graph-stores-neptune")
    # The endpoint is in the environment: the store has no parameter for it.
    store = checks.step("connect", lambda: NeptuneAnalyticsPropertyGraphStore(graph_identifier="g-0123456789"))
    schema = checks.step("schema", lambda: store.get_schema(refresh=True))
    assert "(:`Author`)-[:`WROTE`]->(:`Book`)" in schema["triples"], schema
    create = "CREATE (:__Entity__:Person {id: 'Grace', name: 'Grace', born: $born})"
    checks.step("query with parameters", lambda: store.structured_query(create, {"born": 1906}))
    found = checks.step("get", lambda: store.get(ids=["Grace"]))
    assert [(node.name, node.label, node.properties["born"]) for node in found] == [("Grace", "Person", 1906)], found
    checks.step("delete", lambda: store.delete(ids=["Grace"]))
    checks.refusal("upsert nodes with embeddings", "UnsupportedOperationException", lambda: store.upsert_nodes([CHUNK]))
    checks.report()


if __name__ == "__main__":
    _, tls, _ = arguments()
    property_graph(tls)
    graph(tls)
    analytics()

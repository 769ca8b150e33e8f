"""TinkerPop's Python driver against a graph whose ids have types, in all formats. Argument: the address of the service.

It ends with an assertion if something is not as TinkerGraph or JanusGraph would do it.
"""

import sys
import uuid

from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.driver.serializer import (
    GraphBinarySerializersV1,
    GraphSONSerializersV2d0,
    GraphSONSerializersV3d0,
)
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.traversal import Direction, P, T
from gremlin_python.statics import long

URL = f"ws://{sys.argv[1]}/gremlin"
FAR = long(2**40)


def refused(work, text):
    try:
        work()
    except GremlinServerError as error:
        assert text in str(error), error
        return
    raise AssertionError(f"not refused: {text}")


def ids(g, has_map_keys):
    g.V().drop().iterate()
    key = uuid.UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")
    chosen = [1, "1", FAR, key, str(key)]
    for number, id_ in enumerate(chosen):
        made = g.add_v("t").property(T.id, id_).property("n", number).next()
        assert made.id == id_ and type(made.id) is type(id_) or id_ == FAR, made.id
    assert sorted(map(repr, g.V().id_().to_list())) == sorted(map(repr, chosen))
    for number, id_ in enumerate(chosen):
        assert g.V(id_).values("n").to_list() == [number], id_
        assert g.V().has_id(id_).values("n").to_list() == [number], id_
        assert g.V().identity().has_id(id_).values("n").to_list() == [number], id_
        assert g.V().identity().has(T.id, P.within(id_, "no one")).values("n").to_list() == [number], id_
    assert g.V(long(1)).values("n").to_list() == [0]
    assert g.V().has_id(1, key).count().next() == 2
    # A vertex of an answer is an argument of the next request.
    first = g.V(1).next()
    assert g.V(first).values("n").next() == 0
    edge = g.V(first).add_e("e").to(__.V("1")).property(T.id, 7).next()
    assert (edge.id, edge.outV.id, edge.inV.id) == (7, 1, "1")
    assert g.E(7).count().next() == 1 and g.E("7").count().next() == 0 and g.E(edge).count().next() == 1
    path = g.V(1).out_e().in_v().path().next()
    assert [element.id for element in path] == [1, 7, "1"]
    generated = g.add_v("made").next()
    assert isinstance(generated.id, uuid.UUID) and g.V(generated.id).count().next() == 1
    tied = g.V(1).add_e("e").to(__.V(key)).next()
    assert isinstance(tied.id, str) and g.E(tied.id).count().next() == 1
    if has_map_keys:
        shown = g.E(7).element_map().next()
        assert shown[T.id] == 7 and shown[Direction.OUT][T.id] == 1 and shown[Direction.IN][T.id] == "1"
        assert g.merge_v({T.id: 1}).values("n").next() == 0
        assert g.merge_v({T.id: 2, T.label: "t"}).id_().next() == 2
        merged = {T.id: 8, T.label: "e", Direction.OUT: 1, Direction.IN: "1"}
        assert [g.merge_e(merged).id_().next() for _ in range(2)] == [8, 8]
    refused(lambda: g.add_v().property(T.id, 1.5).iterate(), "1.5")
    refused(lambda: g.add_v().property(T.id, True).iterate(), "true")
    refused(lambda: g.add_v().property(T.id, [1]).iterate(), "list")
    refused(lambda: g.V(1.5).to_list(), "1.5")
    refused(lambda: g.add_v().property(T.id, long(1)).iterate(), "1")
    g.V(1).property("n", 9).iterate()
    assert g.V(1).values("n").to_list() == [9], "the default cardinality is single"


for serializer in [GraphBinarySerializersV1(), GraphSONSerializersV3d0(), GraphSONSerializersV2d0()]:
    connection = DriverRemoteConnection(URL, "g", message_serializer=serializer)
    ids(traversal().with_remote(connection), not isinstance(serializer, GraphSONSerializersV2d0))
    connection.close()

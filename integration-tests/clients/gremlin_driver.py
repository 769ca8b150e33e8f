"""TinkerPop's Python driver against the service. Arguments: the address, the password or an empty text, and the file of
the certificate if the service speaks TLS.

It ends with an assertion if something is not as Gremlin Server would do it.
"""

import ssl
import sys
import threading
import uuid
from datetime import datetime

from gremlin_python.driver.aiohttp.transport import AiohttpHTTPTransport, AiohttpTransport
from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.driver.serializer import (
    GraphBinarySerializersV1,
    GraphSONSerializersV2d0,
    GraphSONSerializersV3d0,
)
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.traversal import (
    Cardinality,
    CardinalityValue,
    Merge,
    Order,
    P,
    T,
    TextP,
    WithOptions,
)
from gremlin_python.statics import long

ADDRESS, PASSWORD, CERTIFICATE = sys.argv[1], sys.argv[2], sys.argv[3:]
URL = f"{'wss' if CERTIFICATE else 'ws'}://{ADDRESS}/gremlin"
AUTH = {"username": "any name", "password": PASSWORD} if PASSWORD else {}
if CERTIFICATE:
    context = ssl.create_default_context(cafile=CERTIFICATE[0])
    AUTH["transport_factory"] = lambda: AiohttpTransport(ssl_options=context)
ROWS = 100_000


def connect(serializer=None):
    connection = DriverRemoteConnection(URL, "g", message_serializer=serializer, **AUTH)
    return connection, traversal().with_remote(connection)


def fails(work, status, text):
    try:
        work()
    except GremlinServerError as error:
        assert error.status_code == status, error
        assert text in str(error), error
        return
    raise AssertionError(f"not refused: {text}")


def traversals(g, typed_maps):
    g.V().drop().iterate()
    ada = g.add_v("person").property(T.id, "ada").property("name", "Ada").property("age", 36).next()
    assert (ada.id, ada.label) == ("ada", "person")
    assert {(p.key, p.value) for p in ada.properties} == {("name", "Ada"), ("age", 36)}
    g.add_v("person").property(T.id, "bob").property(Cardinality.single, "name", "Bob's 🌊").iterate()
    knows = g.V(ada).add_e("knows").to(__.V("bob")).property("since", 1842).next()
    assert (knows.outV.id, knows.inV.id, knows.label) == ("ada", "bob", "knows")
    assert [(p.key, p.value) for p in knows.properties] == [("since", 1842)]
    assert g.V(ada).out("knows").values("name").to_list() == ["Bob's 🌊"]
    assert g.V("ada", "bob").count().next() == 2
    assert g.V().has("name", P.within("Ada", "nobody")).count().next() == 1
    assert g.V().has("name", P.within([])).count().next() == 0
    assert g.V().has("name", P.without("Ada")).values("name").to_list() == ["Bob's 🌊"]
    assert g.V().has("person", "age", P.gt(30).and_(P.lt(40))).count().next() == 1
    assert g.V().has("age", P.not_(P.between(0, 10))).count().next() == 1
    assert g.V().has("name", TextP.starting_with("A")).count().next() == 1
    assert g.V().values("age").is_(36).to_list() == [36]
    assert g.V().order().by("name", Order.desc).values("name").to_list() == ["Bob's 🌊", "Ada"]
    assert g.V().order().by("name").limit(1).values("name").to_list() == ["Ada"]
    path = g.V("ada").as_("a").out_e().as_("b").in_v().path().next()
    assert [type(o).__name__ for o in path.objects] == ["Vertex", "Edge", "Vertex"]
    assert [set(labels) for labels in path.labels] == [{"a"}, {"b"}, set()]
    assert g.V().group().by(T.label).by(__.count()).next() == {"person": 2}
    if typed_maps:
        shown = g.V("ada").value_map().with_(WithOptions.tokens).next()
        assert shown == {T.id: "ada", T.label: "person", "name": ["Ada"], "age": [36]}, shown
        merged = {T.id: "carl", T.label: "person", "name": "Carl"}
        again = {"name": CardinalityValue.single("Carl again")}
        g.merge_v(merged).option(Merge.on_match, again).iterate()
        g.merge_v({T.id: "carl"}).option(Merge.on_match, again).iterate()
        assert g.V("carl").values("name").next() == "Carl again"
    property = g.V("ada").properties("name").next()
    assert (property.key, property.value) == ("name", "Ada")
    values = [1, long(2**40), 0.5, "x", True, [1, [2]], {"a": {"b": 1}}]
    assert g.inject(*values).to_list() == values
    when = datetime(2024, 5, 6, 7, 8, 9)
    assert g.inject(when).next() == when
    assert g.with_("evaluationTimeout", 100_000).V().has_label("person").count().next() >= 2
    assert g.V().has("name", uuid.UUID(int=7)).count().next() == 0
    fails(lambda: g.V().id_().page_rank().to_list(), 597, "UnsupportedOperationException")
    fails(lambda: g.V().map(lambda: ("x: 1", "gremlin-groovy")).to_list(), 499, "never evaluated")
    fails(lambda: g.add_v("person").property(T.id, "ada").iterate(), 597, "ConstraintViolationException")
    doubled = __.union(__.identity(), __.identity())
    endless = g.with_("evaluationTimeout", 1).inject(0).repeat(doubled).times(22).count()
    fails(endless.next, 598, "TimeLimit")


def transactions(g):
    transaction = g.tx()
    inside = transaction.begin()
    inside.add_v("inside").iterate()
    assert inside.V().has_label("inside").count().next() == 1
    assert g.V().has_label("inside").count().next() == 0
    transaction.commit()
    assert g.V().has_label("inside").count().next() == 1
    transaction = g.tx()
    transaction.begin().add_v("inside").iterate()
    transaction.rollback()
    assert g.V().has_label("inside").count().next() == 1
    # A conflict: this driver does not wait for the answer to a commit, so only the graph tells.
    g.add_v("counter").property(T.id, "counter").property("n", 0).iterate()
    transaction = g.tx()
    inside = transaction.begin()
    n = inside.V("counter").values("n").next()
    inside.V("counter").property(Cardinality.single, "n", n + 1).iterate()
    g.V("counter").property(Cardinality.single, "n", 2).iterate()
    transaction.commit()
    assert g.V("counter").values("n").next() == 2


def scripts(serializer):
    client = Client(URL, "g", message_serializer=serializer, **AUTH)
    answer = client.submit("g.V().has('name', name).values('age')", {"name": "Ada"})
    assert answer.all().result() == [36]
    assert client.submit("g.inject(1).toList();").all().result() == [1]
    fails(lambda: client.submit("g.V(").all().result(), 597, "MalformedQueryException")
    fails(lambda: client.submit("System.exit(1)").all().result(), 597, "MalformedQueryException")
    fails(lambda: client.submit("other.V()").all().result(), 597, "MalformedQueryException")
    client.close()


def over_http(serializer):
    """The same driver sends its messages in bodies of requests, too."""
    options = {"headers": {"Authorization": f"Bearer {PASSWORD}"}} if PASSWORD else {}
    if CERTIFICATE:
        options["transport_factory"] = lambda: AiohttpHTTPTransport(ssl_options=context)
    url = f"{'https' if CERTIFICATE else 'http'}://{ADDRESS}"
    connection = DriverRemoteConnection(url, "g", message_serializer=serializer, **options)
    g = traversal().with_remote(connection)
    g.V("over http").drop().iterate()
    added = g.add_v("person").property(T.id, "over http").property("age", 7).next()
    assert (added.id, added.label) == ("over http", "person")
    assert g.V("over http").has("age", P.gt(6)).values("age").to_list() == [7]
    assert g.with_("evaluationTimeout", 100_000).inject(*range(1_000)).count().next() == 1_000
    assert g.V("nobody").to_list() == []
    fails(lambda: g.V().map(lambda: ("x: 1", "gremlin-groovy")).to_list(), 400, "never evaluated")
    connection.close()
    client = Client(url, "g", message_serializer=serializer, **options)
    assert client.submit("g.V(x).values('age')", {"x": "over http"}).all().result() == [7]
    fails(lambda: client.submit("System.exit(1)").all().result(), 400, "at 1:1")
    client.close()


def many_rows(client):
    numbers = client.submit(f"g.inject(0).repeat(union(identity(), identity())).times(17).limit({ROWS})")
    batches = 0
    total = 0
    for batch in numbers:
        batches += 1
        total += len(batch)
    assert (total, batches > 100) == (ROWS, True), (total, batches)


def sessions():
    client = Client(URL, "g", session=str(uuid.uuid4()), **AUTH)
    client.submit("g.addV('scripted')").all().result()
    client.submit("g.addV('scripted')").all().result()
    # Closing a session of scripts commits it, as Neptune does.
    client.close()
    connection, g = connect()
    assert g.V().has_label("scripted").count().next() == 2
    client = Client(URL, "g", session=str(uuid.uuid4()), **AUTH)
    client.submit("g.addV('scripted')").all().result()
    client.submit("g.tx().rollback()").all().result()
    client.close()
    assert g.V().has_label("scripted").count().next() == 2
    connection.close()


def threads():
    connection = DriverRemoteConnection(URL, "g", pool_size=16, max_workers=16, **AUTH)
    g = traversal().with_remote(connection)
    wrong = []

    def work(at):
        for _ in range(20):
            if g.inject(at).next() != at:
                wrong.append(at)

    all = [threading.Thread(target=work, args=(at,)) for at in range(16)]
    for thread in all:
        thread.start()
    for thread in all:
        thread.join()
    assert not wrong
    connection.close()


for serializer in (None, GraphSONSerializersV3d0(), GraphSONSerializersV2d0(), GraphBinarySerializersV1()):
    connection, g = connect(serializer)
    traversals(g, typed_maps=not isinstance(serializer, GraphSONSerializersV2d0))
    connection.close()
    scripts(serializer)
    over_http(serializer)
connection, g = connect()
transactions(g)
connection.close()
sessions()
threads()
client = Client(URL, "g", **AUTH)
many_rows(client)
client.close()
if PASSWORD:
    refused = Client(URL, "g", **{**AUTH, "password": "wrong"})
    fails(lambda: refused.submit("g.V()").all().result(), 401, "AccessDeniedException")
    refused.close()

"""Drivers of Neo4j and TinkerPop against a service that knows users, and whose users have roles.

Usage: user_access.py PORT PASSWORD

The users are named after their roles: reader, writer. Fails with the first thing that is not as it should be.
"""

import sys

import neo4j
from gremlin_python.driver.client import Client
from gremlin_python.driver.protocol import GremlinServerError

PORT, PASSWORD = sys.argv[1:]
HOST = f"127.0.0.1:{PORT}"


def bolt():
    def connect(name, password=PASSWORD):
        return neo4j.GraphDatabase.driver(f"bolt://{HOST}", auth=(name, password))

    with connect("writer") as driver:
        driver.execute_query("CREATE (:Made {by: 'bolt'})")
    with connect("reader") as driver:
        assert driver.execute_query("MATCH (m:Made) RETURN count(m) AS n").records[0]["n"] == 1
        for text in ("CREATE (:Never)", "CREATE INDEX FOR (n:Made) ON (n.by)"):
            try:
                with driver.session() as session:
                    session.run(text).consume()
                raise AssertionError(f"a reader may not: {text}")
            except neo4j.exceptions.ClientError as error:
                assert error.code == "Neo.ClientError.Security.Forbidden", error
                assert "user:reader lacks the role" in error.message, error
    for name, password in (("reader", "wrong"), ("nobody", PASSWORD)):
        with connect(name, password) as driver:
            try:
                driver.verify_connectivity()
                raise AssertionError("a wrong password was accepted")
            except neo4j.exceptions.AuthError as error:
                assert error.code == "Neo.ClientError.Security.Unauthorized", error


def websocket():
    def connect(name, password=PASSWORD):
        return Client(f"ws://{HOST}/gremlin", "g", username=name, password=password)

    def fails(client, text, status):
        try:
            client.submit(text).all().result()
            raise AssertionError(f"not refused: {text}")
        except GremlinServerError as error:
            assert error.status_code == status, error

    writer = connect("writer")
    writer.submit("g.addV('Made')").all().result()
    writer.close()
    reader = connect("reader")
    assert reader.submit("g.V().hasLabel('Made').count()").all().result() == [2]
    fails(reader, "g.addV('Never')", 403)
    reader.close()
    stranger = connect("reader", "wrong")
    fails(stranger, "g.V()", 401)
    stranger.close()


def http():
    """TinkerPop's driver over HTTP, which sends name and password in HTTP's scheme Basic."""

    def connect(name, password=PASSWORD):
        return Client(f"http://{HOST}", "g", username=name, password=password)

    def fails(client, *said):
        try:
            client.submit("g.addV('Never')").all().result()
        # Where the refusal comes before the request is read, the driver misses its own id.
        except (GremlinServerError, KeyError) as error:
            assert all(part in str(error) for part in said), error
        else:
            raise AssertionError("not refused")
        finally:
            client.close()

    writer = connect("writer")
    writer.submit("g.addV('Made')").all().result()
    writer.close()
    reader = connect("reader")
    assert reader.submit("g.V().hasLabel('Made').count()").all().result() == [3]
    fails(reader, "403", "lacks the role write")
    fails(connect("reader", "wrong"))
    fails(Client(f"http://{HOST}", "g"))
    writer = connect("writer")
    assert writer.submit("g.V().hasLabel('Never').count()").all().result() == [0]
    writer.close()


bolt()
websocket()
http()

"""Neo4j's Python driver against the service. Arguments: the address, the password or an empty text, and the file of
the certificate if the service speaks TLS.

It ends with an assertion if something is not as Neo4j's server would do it.
"""

import resource
import sys
import threading
from datetime import datetime, timezone

import neo4j
import pytz
from neo4j import GraphDatabase
from neo4j.exceptions import (
    AuthError,
    ClientError,
    ConstraintError,
    CypherSyntaxError,
    Neo4jError,
    TransientError,
)
from neo4j.spatial import CartesianPoint, WGS84Point
from neo4j.time import Date, DateTime, Duration, Time

ADDRESS, PASSWORD, CERTIFICATE = sys.argv[1], sys.argv[2], sys.argv[3:]
TLS = {}
if CERTIFICATE:
    TLS = {"encrypted": True, "trusted_certificates": neo4j.TrustCustomCAs(CERTIFICATE[0])}
AUTH = ("any name", PASSWORD) if PASSWORD else None
ROWS = 1_000_000
# What the driver may hold at once of those rows, which take over 100 MB as objects of Python.
MOST_MEMORY_KIB = 50 << 10


def values(driver):
    when = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=timezone.utc)
    sent = {
        "null": None,
        "true": True,
        "small": -17,
        "large": -(2**63),
        "half": 0.5,
        "text": "Zoë 🌊",
        "long": "x" * 70_000,
        "when": when,
        "list": [1, [2, []], {"k": [None]}],
        "map": {"a": {"b": 1}},
    }
    record = driver.execute_query("RETURN $sent AS sent", sent=sent).records[0]
    got = record["sent"]
    assert got.pop("when").to_native() == sent.pop("when")
    assert got == sent, got
    try:
        driver.execute_query("RETURN $refused", refused=b"bytes")
        raise AssertionError("bytes were accepted")
    except ClientError as error:
        assert error.code == "Neo.ClientError.Statement.UnsupportedOperationError", error


def temporal_values(driver):
    """Values go and come back as they were, through a property of the graph."""
    # The driver's own types of time take zones of pytz, on which it depends.
    east = pytz.FixedOffset(120)
    sent = {
        "date": Date(1815, 12, 10),
        "localtime": Time(12, 34, 56, 789),
        "time": Time(12, 34, 56, 789, tzinfo=east),
        "local": DateTime(1815, 12, 10, 12, 34, 56, 789),
        "offset": east.localize(DateTime(2024, 3, 31, 2, 30)),
        "zone": pytz.timezone("Europe/Berlin").localize(DateTime(2024, 3, 31, 3, 30)),
        "duration": Duration(months=14, days=-3, seconds=-4, nanoseconds=-500_000_000),
        "plane": CartesianPoint((1.5, -2.0)),
        "earth": WGS84Point((12.5, 55.7, 3.0)),
        "dates": [Date(2024, 2, 29)],
        "numbers": [],
    }
    driver.execute_query("CREATE (n:Values) SET n = $sent", sent=sent)
    (record,) = driver.execute_query("MATCH (n:Values) RETURN properties(n) AS got").records
    got = record["got"]
    for key, value in sent.items():
        assert type(got[key]) is type(value) and got[key] == value, (key, got[key], value)
    assert got["zone"].iso_format() == "2024-03-31T03:30:00.000000000+02:00", got["zone"].iso_format()
    assert str(got["zone"].tzinfo) == "Europe/Berlin", got["zone"].tzinfo
    (record,) = driver.execute_query(
        "MATCH (n:Values) RETURN n.date + duration('P1M') AS later, n.zone.epochMillis AS at,"
        " toString(n.duration) AS text, n.earth.height AS height"
    ).records
    assert record.values() == [Date(1816, 1, 10), 1_711_848_600_000, "P1Y2M-3DT-4.5S", 3.0], record
    driver.execute_query("MATCH (n:Values) DETACH DELETE n")


def elements(driver):
    text = """
        CREATE (a:Person:Writer {`~id`: 'ada', name: 'Ada'})-[k:KNOWS {since: 1842}]->(b:Person {`~id`: 'charles'})
        RETURN a, k, b
    """
    records, summary, keys = driver.execute_query(text)
    a, k, b = records[0]
    assert keys == ["a", "k", "b"]
    assert (a.element_id, a.labels, dict(a)) == ("ada", {"Person", "Writer"}, {"name": "Ada"})
    assert (k.type, dict(k), k.start_node.element_id, k.end_node.element_id) == (
        "KNOWS",
        {"since": 1842},
        "ada",
        "charles",
    )
    counters = summary.counters
    assert (counters.nodes_created, counters.relationships_created) == (2, 1)
    assert (counters.labels_added, counters.labels_removed) == (3, 0)
    assert summary.query_type == "rw" and summary.database == "neo4j"
    path = driver.execute_query(
        "MATCH p = (:Person {name: 'Ada'})-[:KNOWS]->(b)<-[:KNOWS]-(a) RETURN p"
    ).records
    assert path == []
    path = driver.execute_query("MATCH p = (a)<-[:KNOWS]-(b) RETURN p").records[0]["p"]
    assert [node.element_id for node in path.nodes] == ["charles", "ada"]
    assert [edge.element_id for edge in path.relationships] == [k.element_id]
    again = driver.execute_query(
        "MATCH (n) WHERE id(n) = $id RETURN n", id=a.element_id
    ).records[0]["n"]
    assert (again.element_id, again.labels, dict(again)) == (a.element_id, a.labels, dict(a))
    assert b.element_id == "charles"


def errors(driver):
    def raises(kind, code, text, **options):
        try:
            with driver.session(**options) as session:
                session.run(text).consume()
        except kind as error:
            assert error.code == code, error
            return error
        raise AssertionError(f"{text} did not fail")

    error = raises(
        CypherSyntaxError, "Neo.ClientError.Statement.SyntaxError", "RETURN 1 +"
    )
    assert "1:11" in error.message, error.message
    raises(
        ClientError,
        "Neo.ClientError.Statement.AccessMode",
        "CREATE ()",
        default_access_mode=neo4j.READ_ACCESS,
    )
    raises(
        ClientError,
        "Neo.ClientError.Database.DatabaseNotFound",
        "RETURN 1",
        database="other",
    )
    with driver.session() as session:
        session.run("CREATE CONSTRAINT names FOR (n:Name) REQUIRE n.text IS UNIQUE").consume()
    driver.execute_query("CREATE (:Name {text: 'one'})")
    raises(
        ConstraintError,
        "Neo.ClientError.Schema.ConstraintValidationFailed",
        "CREATE (:Name {text: 'one'})",
    )
    with driver.session() as session:
        transaction = session.begin_transaction()
        transaction.run("CREATE (:Name {text: 'two'})").consume()
        try:
            transaction.run("CREATE (:Name {text: 'one'})").consume()
            raise AssertionError("the name is there")
        except ConstraintError as error:
            assert error.code == "Neo.ClientError.Schema.ConstraintValidationFailed", error
        transaction.close()
        assert session.run("MATCH (n:Name) RETURN count(n) AS n").single()["n"] == 1
        try:
            endless = "UNWIND range(1, 100000000) AS a UNWIND range(1, 100000) AS b WITH a, b WHERE a + b < 0 RETURN a"
            session.run(neo4j.Query(endless, timeout=0.1)).consume()
            raise AssertionError("it has an end")
        except ClientError as error:
            assert error.code == "Neo.ClientError.Transaction.TransactionTimedOut", error


def transactions(driver):
    def count(session):
        return session.run("MATCH (t:T) RETURN count(t) AS n").single()["n"]

    with driver.session() as session, driver.session() as other:
        with session.begin_transaction() as transaction:
            transaction.run("CREATE (:T)")
            assert count(transaction) == 1
            assert count(other) == 0
            transaction.rollback()
        assert count(session) == 0
        with session.begin_transaction() as transaction:
            transaction.run("CREATE (:T)").consume()
            transaction.commit()
        (bookmark,) = session.last_bookmarks().raw_values
        assert bookmark.isdigit()
        with driver.session(bookmarks=session.last_bookmarks()) as later:
            assert count(later) == 1
        # Two results at once.
        with session.begin_transaction() as transaction:
            one = transaction.run("UNWIND range(1, 5000) AS n RETURN n")
            two = transaction.run("UNWIND range(1, 5000) AS n RETURN -n AS n")
            assert all(a["n"] == -b["n"] for a, b in zip(one, two, strict=True))


def commands(driver):
    """Commands work in the transactions of `execute_query`, and one session ends the transaction of another."""
    made = driver.execute_query("CREATE INDEX made FOR (n:Made) ON (n.id)").summary.counters
    assert made.indexes_added == 1, made
    shown = "SHOW INDEXES YIELD name, state WHERE name = 'made'"
    (index,) = driver.execute_query(shown).records
    assert index["state"] == "ONLINE", index
    driver.execute_query("DROP INDEX made")
    assert driver.execute_query(shown).records == []
    with driver.session() as session:
        transaction = session.begin_transaction()
        transaction.run("CREATE (:Terminated)").consume()
        listed = driver.execute_query("SHOW TRANSACTIONS").records
        assert list(listed[0].keys()) == [
            "database",
            "transactionId",
            "currentQueryId",
            "clientAddress",
            "username",
            "currentQuery",
            "startTime",
            "status",
            "elapsedTime",
        ]
        # The one of `execute_query` runs the command itself.
        assert sorted(one["currentQuery"] for one in listed) == ["", "SHOW TRANSACTIONS"], listed
        (idle,) = [one["transactionId"] for one in listed if one["currentQuery"] == ""]
        ended = driver.execute_query("TERMINATE TRANSACTIONS $ids", ids=[idle, "none"]).records
        assert [(one["transactionId"], one["message"]) for one in ended] == [
            (idle, "Transaction terminated."),
            ("none", "Transaction not found."),
        ]
        shown = "SHOW TRANSACTIONS $id YIELD status, protocol, currentQueryId"
        assert driver.execute_query(shown, id=idle).records[0].values() == [
            "Terminated with reason: a client asked for it",
            "bolt",
            "",
        ]
        try:
            transaction.commit()
            raise AssertionError("it was terminated")
        except Neo4jError as error:
            assert error.code.endswith(".Transaction.Terminated"), error
    assert driver.execute_query("MATCH (n:Terminated) RETURN n").records == []


def retries(driver):
    """Threads that conflict: the driver runs a transaction again until it has written."""
    driver.execute_query("CREATE (:Counter {n: 0})")
    tried = []

    def add(transaction):
        tried.append(1)
        n = transaction.run("MATCH (c:Counter) RETURN c.n AS n").single()["n"]
        transaction.run("MATCH (c:Counter) SET c.n = $n", n=n + 1).consume()

    def work():
        with driver.session() as session:
            for _ in range(10):
                session.execute_write(add)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    n = driver.execute_query("MATCH (c:Counter) RETURN c.n AS n").records[0]["n"]
    assert n == 40, n
    # Provoked, so that it does not depend on the threads.
    with driver.session() as session, driver.session() as other:
        transaction = session.begin_transaction()
        transaction.run("MATCH (c:Counter) SET c.n = c.n + 1").consume()
        other.run("MATCH (c:Counter) SET c.n = c.n + 1").consume()
        try:
            transaction.commit()
            raise AssertionError("it conflicts")
        except TransientError as error:
            assert error.code == "Neo.TransientError.Transaction.Outdated", error
            assert error.is_retryable()


def rows(driver):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = "UNWIND range(1, $rows) AS n RETURN n"

    def read(runs):
        expected = 1
        for record in runs.run(text, rows=ROWS):
            assert record["n"] == expected
            expected += 1
        return expected - 1

    with driver.session(fetch_size=1000) as session:
        assert read(session) == ROWS
        assert session.execute_read(read) == ROWS
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MOST_MEMORY_KIB, grown


def sessions(driver):
    """64 sessions at once, each with an open transaction."""
    opened = [driver.session() for _ in range(64)]
    transactions = [session.begin_transaction() for session in opened]
    for number, transaction in enumerate(transactions):
        assert transaction.run("RETURN $number AS n", number=number).single()["n"] == number
    for transaction, session in zip(transactions, opened, strict=True):
        transaction.commit()
        session.close()


def main():
    for scheme in ("bolt", "neo4j"):
        with GraphDatabase.driver(f"{scheme}://{ADDRESS}", auth=AUTH, **TLS) as driver:
            driver.verify_connectivity()
            assert driver.get_server_info().protocol_version == (5, 8)
            values(driver)
            temporal_values(driver)
    # Threads that conflict try again for as long as a busy machine takes.
    patient = {"max_transaction_retry_time": 600}
    with GraphDatabase.driver(f"bolt://{ADDRESS}", auth=AUTH, **patient, **TLS) as driver:
        for check in (elements, errors, transactions, commands, retries, rows, sessions):
            check(driver)
    if PASSWORD:
        for wrong in (("any name", "wrong"), None):
            try:
                GraphDatabase.driver(f"bolt://{ADDRESS}", auth=wrong, **TLS).verify_connectivity()
                raise AssertionError("the password is wrong")
            except AuthError:
                pass
        bearer = neo4j.bearer_auth(PASSWORD)
        GraphDatabase.driver(f"bolt://{ADDRESS}", auth=bearer, **TLS).verify_connectivity()


main()

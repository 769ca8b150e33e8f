"""graph-notebook: the requests of its magics, and its seeds."""

import json
import os
import time

from checks import Checks, arguments, port_of
from graph_notebook.neptune.client import ClientBuilder
from graph_notebook.seed import load_query

QUERY = "MATCH (b:Book) WHERE b.pages > 400 RETURN count(*) AS n"
# The seeds of one request each, and of a request for each line.
CYPHER_SEEDS = ["airports", "epl"]
GREMLIN_SEEDS = ["epl", "dining_by_friends", "security-graph"]


def answered(response):
    assert response.ok, f"{response.status_code}: {response.text[:500]}"
    return response


def build(tls, serializer="GraphSONMessageSerializerV3"):
    builder = ClientBuilder().with_host("127.0.0.1").with_port(port_of(tls)).with_tls(True)
    builder = builder.with_ssl_verify(os.environ["REQUESTS_CA_BUNDLE"]).with_region(os.environ["AWS_REGION"])
    builder = builder.with_gremlin_serializer(serializer).with_gremlin_traversal_source("g")
    client = builder.with_custom_neptune_hosts(["127.0.0.1"]).build()
    # Some of its requests do not name the certificate.
    client._ensure_http_session()
    client._http_session.verify = client.ssl_verify
    return client


def queries(checks, client, tls):
    assert answered(checks.step("`%status`", client.status)).json()["status"] == "healthy"
    rows = answered(checks.step("`%%oc`", lambda: client.opencypher_http(QUERY))).json()
    assert rows == {"results": [{"n": 3}]}, rows
    rows = answered(
        checks.step(
            "`%%oc` with parameters and `--plan-cache`",
            lambda: client.opencypher_http("RETURN $x AS x", query_params={"x": 7}, plan_cache="enabled"),
        )
    ).json()
    assert rows == {"results": [{"x": 7}]}, rows
    bolt = checks.step("`%%oc bolt`", lambda: client.opencyper_bolt("MATCH (b:Book) RETURN b ORDER BY b.name LIMIT 1"))
    assert bolt[0]["b"]["~labels"] == ["Book"], bolt
    for mode in ["static", "dynamic", "details"]:
        page = answered(checks.step(f"`%%oc explain={mode}`", lambda: client.opencypher_http(QUERY, explain=mode)))
        assert "<pre>" in page.text or "<table" in page.text, page.text
    for serializer in ["GraphSONMessageSerializerV2", "GraphSONMessageSerializerV3", "GraphBinaryMessageSerializerV1"]:
        over = build(tls, serializer)
        found = checks.step(
            f"`%%gremlin` over WebSocket, {serializer}", lambda: over.gremlin_query("g.V().hasLabel('Book').count()")
        )
        assert found == [9], found
    answer = answered(checks.step("`%%gremlin` over HTTP", lambda: client.gremlin_http_query("g.V().count()"))).json()
    assert answer["status"]["code"] == 200, answer
    plan = answered(checks.step("`%%gremlin explain`", lambda: client.gremlin_explain("g.V().out()")))
    assert "expand" in plan.text, plan.text
    profile = answered(
        checks.step(
            "`%%gremlin profile`",
            lambda: client.gremlin_profile("g.V().out()", args={"profile.results": True}),
        )
    )
    assert "expand" in profile.text, profile.text


def administration(checks, client, source):
    for name, call in [
        ("`%opencypher_status`", lambda: client.opencypher_status(include_waiting=True)),
        ("`%gremlin_status`", lambda: client.gremlin_status(include_waiting=True)),
        ("`%opencypher_status --cancelQuery`", lambda: client.opencypher_cancel("no-such-query", silent=True)),
    ]:
        answered(checks.step(name, call))
    statistics = answered(checks.step("`%statistics`", lambda: client.statistics("propertygraph"))).json()
    assert statistics["payload"]["active"], statistics
    for mode in ["basic", "detailed"]:
        summary = answered(
            checks.step(f"`%summary {mode}`", lambda: client.statistics("propertygraph", True, mode))
        ).json()
        assert "Book" in summary["payload"]["graphSummary"]["nodeLabels"], summary
    role = "arn:aws:iam::000000000000:role/none"
    load_id = answered(
        checks.step("`%load`", lambda: client.load(source, "csv", role, failOnError="TRUE", parallelism="HIGH"))
    ).json()["payload"]["loadId"]
    deadline = time.monotonic() + 300
    while True:
        status = answered(client.load_status(load_id, details=True)).json()["payload"]["overallStatus"]["status"]
        if status == "LOAD_COMPLETED":
            break
        assert time.monotonic() < deadline, status
        time.sleep(0.1)
    checks.works.append("`%load_status`")
    assert load_id in answered(checks.step("`%load_ids`", client.load_status)).json()["payload"]["loadIds"]
    answer = client.cancel_load(load_id)
    assert not answer.ok and answer.json()["code"], answer.text
    checks.refused.append(["`%cancel_load` of a load that has ended", answer.json()["code"]])
    answer = client.sparql_query("SELECT * WHERE { ?s ?p ?o }")
    assert answer.json()["code"] == "UnsupportedOperationException", answer.text
    checks.refused.append(["`%%sparql`", "UnsupportedOperationException"])


def seeds(checks, client):
    for name in CYPHER_SEEDS:
        def seed(name=name):
            for query in load_query.get_queries("opencypher", name, "samples"):
                answered(client.opencypher_http(query["content"]))
        checks.step(f"`%seed` {name} in openCypher", seed)
    rows = client.opencypher_http("MATCH (:airport)-[r:route]->(:airport) RETURN count(r) AS n").json()
    assert rows["results"][0]["n"] > 50_000, rows
    client.opencypher_http("MATCH (n) WHERE NOT (n:Book OR n:Author) DETACH DELETE n")
    for name in GREMLIN_SEEDS:
        def seed(name=name):
            for query in load_query.get_queries("gremlin", name, "samples"):
                for line in query["content"].splitlines():
                    if line:
                        client.gremlin_query(line)
        checks.step(f"`%seed` {name} in Gremlin", seed)


def main():
    _, tls, source = arguments()
    checks = Checks("graph-notebook", "graph-notebook")
    client = build(tls)
    queries(checks, client, tls)
    administration(checks, client, source)
    seeds(checks, client)
    checks.report()


if __name__ == "__main__":
    main()

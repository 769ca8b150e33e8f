"""The package tidegraph-neptune with graph-notebook, before signatures of API Gateway.

Usage: gateway_notebook.py GATEWAY REGION. The keys are those of `api_gateway.py`.
"""

import os
import sys

import boto3
from botocore.exceptions import NoCredentialsError
from botocore.session import get_session
from checks import Checks
from graph_notebook.neptune.client import ClientBuilder
from tidegraph_neptune import Endpoint, RequestRefused, attach, register

GATEWAY, REGION = sys.argv[1:]
PLACE = Endpoint.parse(GATEWAY, REGION)
QUERY = "MATCH (b:Book) WHERE b.pages > 400 RETURN count(*) AS n"


def answered(response):
    assert response.ok, f"{response.status_code}: {response.text[:500]}"
    return response


def build(session=None):
    """Makes a client as the magics do for a host of Neptune."""
    builder = ClientBuilder().with_host(PLACE.host).with_port(PLACE.port).with_tls(True).with_region("us-east-1")
    builder = builder.with_ssl_verify(os.environ["REQUESTS_CA_BUNDLE"]).with_iam(session or get_session())
    client = builder.with_gremlin_serializer("GraphSONMessageSerializerV3").build()
    # Some of its requests do not name the certificate.
    client._ensure_http_session()
    client._http_session.verify = client.ssl_verify
    return client


def queries(checks, client):
    assert client.is_neptune_domain()
    assert answered(checks.step("`%status`", client.status)).json()["status"] == "healthy"
    rows = answered(checks.step("`%%oc`", lambda: client.opencypher_http(QUERY))).json()
    assert rows == {"results": [{"n": 3}]}, rows
    step = lambda: client.opencypher_http("RETURN $x AS x", query_params={"x": "a b+c"})
    assert answered(checks.step("`%%oc` with parameters", step)).json() == {"results": [{"x": "a b+c"}]}
    plan = answered(checks.step("`%%oc explain=static`", lambda: client.opencypher_http(QUERY, explain="static")))
    assert "<pre>" in plan.text or "<table" in plan.text, plan.text
    answer = answered(checks.step("`%%gremlin` over HTTP", lambda: client.gremlin_http_query("g.V().count()"))).json()
    assert answer["status"]["code"] == 200, answer
    # The magic with `connection_protocol` of WebSocket, which the package answers over HTTP.
    count = "g.V().hasLabel('Book').count()"
    assert checks.step("`%%gremlin` with `websockets`", lambda: client.gremlin_query(count)) == [9]
    answered(checks.step("`%%gremlin explain`", lambda: client.gremlin_explain("g.V().out()")))
    answered(
        checks.step(
            "`%%gremlin profile`", lambda: client.gremlin_profile("g.V().out()", args={"profile.results": True})
        )
    )
    answered(checks.step("`%opencypher_status`", lambda: client.opencypher_status(include_waiting=True)))
    answered(checks.step("`%gremlin_status`", lambda: client.gremlin_status(include_waiting=True)))
    answered(checks.step("`%statistics`", lambda: client.statistics("propertygraph")))
    answered(checks.step("`%summary detailed`", lambda: client.statistics("propertygraph", True, "detailed")))
    checks.refusal("`%%oc bolt`", "API Gateway does not pass on Bolt", lambda: client.opencyper_bolt(QUERY))


def refused(run, kind, part):
    try:
        run()
    except kind as error:
        assert part in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


def main():
    # Without the package, the server refuses its signature.
    assert "Missing Authentication Token" in build().status().text
    one = attach(build(), GATEWAY, region=REGION)
    queries(Checks("", "graph-notebook"), one)
    assert "Missing Authentication Token" in build().status().text

    register(GATEWAY, region=REGION)
    checks = Checks("graph-notebook", "graph-notebook")
    queries(checks, build())
    checks.report()

    yesterday = boto3.Session("ASIAEXPIRED", "a-secret-of-yesterday", "a-token-of-yesterday")
    refused(build(yesterday).status, RequestRefused, "sign in again")
    refused(lambda: build(yesterday).gremlin_query("g.V()"), RequestRefused, "is expired")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        os.environ.pop(name, None)
    refused(build(boto3.Session()).status, NoCredentialsError, "Unable to locate credentials")


if __name__ == "__main__":
    main()

"""The package tidegraph-neptune with boto3, awswrangler, gremlin-python and langchain-aws, as before API Gateway.

Usage: gateway_frameworks.py GATEWAY REGION. The keys are those of `api_gateway.py`.
"""

import os
import sys

import awswrangler as wr
import boto3
import pandas as pd
import tidegraph_neptune
from botocore.config import Config
from botocore.exceptions import ClientError, NoCredentialsError
from checks import Checks
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.driver.serializer import GraphBinarySerializersV1
from langchain_aws.graphs import NeptuneGraph
from tidegraph_neptune import Endpoint, RequestRefused, attach, gremlin_client, register

GATEWAY, REGION = sys.argv[1:]
PLACE = Endpoint.parse(GATEWAY, REGION)
ADDRESS = f"https://{PLACE.host}:{PLACE.port}"
CONFIG = Config(retries={"total_max_attempts": 1})
EXPIRED = {
    "aws_access_key_id": "ASIAEXPIRED",
    "aws_secret_access_key": "a-secret-of-yesterday",
    "aws_session_token": "a-token-of-yesterday",
}
COUNT = "MATCH (b:Book) RETURN count(b) AS n"
# A query and a parameter in which a space, a plus and other characters must arrive as they are.
ODD = "RETURN 'a b+c&d=ü' AS text"


def raised(run, kind, *parts):
    """Runs what has to fail with an error that has these parts in its message."""
    try:
        run()
    except kind as error:
        for part in parts:
            assert part in str(error), f"{part!r} is not in: {error}"
    else:
        raise AssertionError(f"no {kind.__name__}")


def boto3_client(session=None, url=ADDRESS):
    return (session or boto3).client("neptunedata", endpoint_url=url, config=CONFIG)


def wrangler(session=None):
    client = wr.neptune.connect(PLACE.host, PLACE.port, iam_enabled=True, boto3_session=session)
    client._http_session.verify = os.environ["REQUESTS_CA_BUNDLE"]
    return client


def urls():
    """Which URLs are those of an API."""
    api = "https://abc123.execute-api.eu-central-1.amazonaws.com/graph"
    assert Endpoint.parse(f"{api}/") == Endpoint(api, "eu-central-1")
    assert Endpoint.parse("https://x-vpce-1.execute-api.cn-north-1.amazonaws.com.cn/graph").region == "cn-north-1"
    assert (
        Endpoint.parse("https://graph.example.com", "us-east-1")
        .place("https://graph.example.com/status")
        .endswith(".com/status")
    )
    end = Endpoint.parse(api)
    for asked in (":443/openCypher", ":8182/openCypher", "/graph/openCypher", "/openCypher"):
        url = "https://abc123.execute-api.eu-central-1.amazonaws.com" + asked
        assert end.covers(url) and end.place(url) == f"{api}/openCypher", url
    assert end.place(f"{api[:-6]}/graphs/g-1?x=1") == f"{api}/graphs/g-1?x=1"
    assert not end.covers("https://other.execute-api.eu-central-1.amazonaws.com/graph")
    for url, region, part in (
        (api, "us-east-1", "is in the region eu-central-1, not in 'us-east-1'"),
        ("https://abc123.execute-api.eu-central-1.amazonaws.com", None, "lacks the stage"),
        ("https://graph.example.com/graph", None, "pass region="),
        ("https://graph.example.com/graph", "nowhere", "'nowhere' is not the name of a region"),
        ("http://graph.example.com/graph", "us-east-1", "must begin with https://"),
        ("https://graph.example.com:port/graph", "us-east-1", "cannot be read"),
        ("graph.example.com/graph", "us-east-1", "is not an https:// URL"),
        (f"{api}?x=1", None, "must end after its path"),
    ):
        raised(lambda: Endpoint.parse(url, region), ValueError, part)
    secret = "https://ada:a-password@graph.example.com/graph"
    try:
        Endpoint.parse(secret, "us-east-1")
        raise AssertionError("a URL with a password")
    except ValueError as error:
        assert "a-password" not in str(error), error


def before():
    """Without the package, API Gateway refuses what these clients send."""
    raised(
        lambda: boto3_client(url=GATEWAY).execute_open_cypher_query(openCypherQuery=COUNT),
        ClientError,
        "AccessDeniedException",
        "scoped to correct service: 'execute-api'",
    )
    raised(
        lambda: wr.neptune.execute_opencypher(wrangler(), COUNT),
        wr.exceptions.QueryFailed,
        "Missing Authentication Token",
    )


def with_boto3(checks, client):
    neptune = checks.step("connect", client)
    answer = checks.step("openCypher", lambda: neptune.execute_open_cypher_query(openCypherQuery=COUNT))
    assert answer["results"] == [{"n": 9}], answer
    assert neptune.execute_open_cypher_query(openCypherQuery=ODD)["results"] == [{"text": "a b+c&d=ü"}]
    checks.step("Gremlin", lambda: neptune.execute_gremlin_query(gremlinQuery="g.V().hasLabel('Book').count()"))
    # A query string in the URL.
    checks.step("`ListOpenCypherQueries`", lambda: neptune.list_open_cypher_queries(includeWaiting=True))
    checks.step("`GetPropertygraphSummary`", lambda: neptune.get_propertygraph_summary(mode="basic"))
    checks.refusal(
        "query that does not parse",
        "MalformedQueryException",
        lambda: neptune.execute_open_cypher_query(openCypherQuery="MATCH (n RETURN n"),
    )


def with_analytics(checks):
    client = boto3.client("neptune-graph", endpoint_url=ADDRESS, config=CONFIG.merge(Config(inject_host_prefix=False)))
    graph = "g-0123456789"
    answer = checks.step(
        "`ExecuteQuery` of `neptune-graph`",
        lambda: client.execute_query(graphIdentifier=graph, queryString=COUNT, language="OPEN_CYPHER"),
    )
    assert b'"n":9' in answer["payload"].read()
    # A path that begins as the stage does.
    checks.step("`GetGraph` of `neptune-graph`", lambda: client.get_graph(graphIdentifier=graph))


def with_wrangler(checks, make):
    client = checks.step("connect", make)
    assert checks.step("status", client.status)["status"] == "healthy"
    frame = checks.step("openCypher to a data frame", lambda: wr.neptune.execute_opencypher(client, COUNT))
    assert list(frame["n"]) == [9], frame
    assert list(wr.neptune.execute_opencypher(client, ODD)["text"]) == ["a b+c&d=ü"]
    books = "g.V().hasLabel('Book').valueMap('name').limit(2)"
    frame = checks.step("Gremlin to a data frame", lambda: wr.neptune.execute_gremlin(client, books))
    assert len(frame) == 2 and "name" in frame.columns, frame
    vertices = pd.DataFrame(
        [{"~id": "w-1", "~label": "Ship", "name": "Vasa"}, {"~id": "w-2", "~label": "Ship", "name": "Mary Rose"}]
    )
    edges = pd.DataFrame([{"~id": "w-e", "~label": "LATER_THAN", "~from": "w-1", "~to": "w-2", "years": 116}])
    checks.step("vertices of a data frame", lambda: wr.neptune.to_property_graph(client, vertices))
    checks.step("edges of a data frame", lambda: wr.neptune.to_property_graph(client, edges))
    written = wr.neptune.execute_opencypher(
        client, "MATCH (a:Ship)-[e]->(b) RETURN a.name AS a, e.years AS years, b.name AS b"
    )
    assert written.to_dict("records") == [{"a": "Vasa", "years": 116, "b": "Mary Rose"}], written
    wr.neptune.execute_opencypher(client, "MATCH (n:Ship) DETACH DELETE n")
    checks.refusal(
        "query that does not parse",
        "MalformedQueryException",
        lambda: wr.neptune.execute_opencypher(client, "MATCH (n RETURN n"),
    )
    raised(lambda: wr.neptune.execute_gremlin(client, "g.V("), wr.exceptions.QueryFailed, "MalformedQueryException")


def with_gremlin(checks):
    for name, options in (("GraphSON 3", {}), ("GraphBinary", {"message_serializer": GraphBinarySerializersV1()})):
        client = gremlin_client(GATEWAY, region=REGION, **options)
        # More than the connections of its pool.
        found = checks.step(
            f"queries in {name} over HTTP",
            lambda: [client.submit("g.V().hasLabel(name).count()", {"name": "Book"}).all().result() for _ in range(10)],
        )
        assert found == [[9]] * 10, found
        client.close()
    client = gremlin_client(GATEWAY, region=REGION)
    checks.refusal("query that does not parse", "MalformedQueryException", lambda: client.submit("g.V(").all().result())
    raised(lambda: client.submit("g.V(").all().result(), GremlinServerError, "1:5")
    client.close()


def with_errors():
    expired = boto3.Session(**EXPIRED)
    register(GATEWAY, region=REGION, session=expired)

    def of_boto3(session):
        return lambda: boto3_client(session).execute_open_cypher_query(openCypherQuery=COUNT)

    def of_wrangler(session):
        return lambda: wr.neptune.execute_opencypher(wrangler(session), COUNT)

    def of_gremlin(session, region=REGION):
        return lambda: gremlin_client(GATEWAY, region=region, session=session).submit("g.V()").all().result()

    said = "The security token included in the request is expired"
    raised(of_boto3(expired), ClientError, "AccessDeniedException", said)
    raised(of_wrangler(expired), RequestRefused, said, "sign in again")
    # It returns whatever the service answers, also to a caller whom API Gateway refuses.
    raised(wrangler(expired).status, RequestRefused, said)
    raised(of_gremlin(expired), RequestRefused, said)
    raised(of_gremlin(None, "us-east-1"), RequestRefused, "valid region", "region=")
    wrong = attach(wrangler(), f"https://{PLACE.host}:{PLACE.port}/nowhere", region=REGION)
    unknown = ("Missing Authentication Token", "look at the URL")
    raised(lambda: wr.neptune.execute_opencypher(wrong, COUNT), RequestRefused, *unknown)
    raised(lambda: attach(object(), GATEWAY, region=REGION), TypeError, "object is no client")

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        os.environ.pop(name, None)
    none = boto3.Session()
    for without in (of_boto3, of_wrangler, of_gremlin):
        raised(without(none), NoCredentialsError, "Unable to locate credentials")


def main():
    urls()
    before()
    # One by one.
    with_boto3(Checks("", "boto3"), lambda: attach(boto3_client(), GATEWAY, region=REGION))
    with_wrangler(Checks("", "awswrangler"), lambda: attach(wrangler(), GATEWAY, region=REGION))
    before()

    # All of this process.
    for _ in range(2):
        assert register(GATEWAY, region=REGION) == PLACE
    checks = Checks("boto3", "boto3")
    with_boto3(checks, boto3_client)
    with_analytics(checks)
    checks.report()
    checks = Checks("awswrangler `neptune`", "awswrangler")
    with_wrangler(checks, wrangler)
    checks.report()
    checks = Checks("gremlin-python", "gremlinpython")
    with_gremlin(checks)
    checks.report()
    checks = Checks("langchain-aws `NeptuneGraph`", "langchain-aws")
    graph = checks.step(
        "connect and read the schema", lambda: NeptuneGraph(host=PLACE.host, port=PLACE.port, region_name="us-east-1")
    )
    assert checks.step(
        "query with parameters",
        lambda: graph.query("MATCH (b:Book) WHERE b.pages > $least RETURN count(*) AS n", {"least": 400}),
    ) == [{"n": 3}]
    checks.report()
    with_errors()
    assert tidegraph_neptune.__version__ == os.environ["TIDEGRAPH_VERSION"], tidegraph_neptune.__version__


if __name__ == "__main__":
    main()

"""Requests that are signed by botocore, as AWS's SDKs and Neptune's users sign them, against a service that verifies them.

Usage: signed_access.py PORT REGION

The access keys are those of `access.test.ts`. Fails with the first thing that is not as it should be.
"""

import datetime
import json
import sys
from unittest import mock

import boto3
import neo4j
import urllib3
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from gremlin_python.driver.client import Client

PORT, REGION = sys.argv[1:]
HOST = f"127.0.0.1:{PORT}"
ENDPOINT = f"http://{HOST}"
WRITER = ("AKIDWRITER", "a-secret-of-the-writer", None)
READER = ("AKIDREADER", "a-secret-of-the-reader", "a-session-token")
CONFIG = Config(retries={"total_max_attempts": 1}, read_timeout=300, inject_host_prefix=False)
HTTP = urllib3.PoolManager()


def client(key, service="neptunedata", region=REGION):
    id, secret, token = key
    return boto3.client(
        service,
        endpoint_url=ENDPOINT,
        region_name=region,
        aws_access_key_id=id,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=CONFIG,
    )


def refused(work, message):
    try:
        work()
    except ClientError as error:
        response = error.response
        found = (response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"])
        assert found == (403, "AccessDeniedException"), response
        assert message in json.dumps(response), response
    else:
        raise AssertionError(f"not refused: {message}")


def queries(neptune):
    neptune.execute_open_cypher_query(
        openCypherQuery="CREATE (p:Signed {name: $name})", parameters='{"name": "boto3"}'
    )
    answer = neptune.execute_gremlin_query(gremlinQuery="g.V().hasLabel('Signed').values('name')")
    assert answer["result"]["data"]["@value"] == ["boto3"], answer
    assert neptune.get_engine_status()["status"] == "healthy"
    summary = neptune.get_propertygraph_summary(mode="basic")
    assert summary["payload"]["graphSummary"]["numNodes"] == 1, summary
    # A path that the signature encodes twice, and a query string.
    assert neptune.list_open_cypher_queries(includeWaiting=True)["runningQueryCount"] == 0
    try:
        neptune.get_gremlin_query_status(queryId="a b/c")
    except ClientError as error:
        assert error.response["Error"]["Code"] == "InvalidParameterException", error.response


def clients_of_sdks():
    queries(client(WRITER))
    reader = client(READER)
    reader.execute_open_cypher_query(openCypherQuery="MATCH (n) RETURN count(n)")
    analytics = client(READER, "neptune-graph")
    answer = analytics.execute_query(
        graphIdentifier="g-1234567890", queryString="MATCH (n) RETURN count(n) AS n", language="OPEN_CYPHER"
    )
    assert json.loads(answer["payload"].read())["results"] == [{"n": 1}]
    refused(
        lambda: reader.execute_open_cypher_query(openCypherQuery="CREATE (:Never)"),
        "access-key:AKIDREADER lacks the role write",
    )
    refused(lambda: reader.execute_gremlin_query(gremlinQuery="g.addV('Never')"), "lacks the role write")
    refused(lambda: reader.list_loader_jobs(), "lacks the role load")


def refusals():
    mismatch = "The request signature we calculated does not match the signature you provided"
    invalid = "The security token included in the request is invalid"
    query = {"openCypherQuery": "RETURN 1"}
    of = lambda *arguments, **more: lambda: client(*arguments, **more).execute_open_cypher_query(**query)
    refused(of((WRITER[0], "another-secret-of-it", None)), mismatch)
    refused(of(("AKIDNOBODY", WRITER[1], None)), invalid)
    refused(of((*READER[:2], None)), invalid)
    refused(of((*READER[:2], "another-token")), invalid)
    refused(of(WRITER, region="us-east-1"), "Credential should be scoped to a valid region")

    def at(difference):
        now = datetime.datetime.now(datetime.timezone.utc) + difference
        return mock.patch("botocore.auth.get_current_datetime", lambda *_, **__: now)

    with at(datetime.timedelta(minutes=-6)):
        refused(of(WRITER), "Signature expired")
    with at(datetime.timedelta(minutes=6)):
        refused(of(WRITER), "Signature not yet current")
    with at(datetime.timedelta(minutes=-4)):
        of(WRITER)()

    def tampered(request, **_):
        request.body = request.body.replace(b"RETURN", b"DELETE")

    neptune = client(WRITER)
    neptune.meta.events.register("before-send.neptunedata", tampered)
    refused(lambda: neptune.execute_open_cypher_query(**query), mismatch)
    unsigned = HTTP.request("POST", f"{ENDPOINT}/openCypher", fields={"query": "RETURN 1"}, encode_multipart=False)
    assert (unsigned.status, json.loads(unsigned.data)["detailedMessage"]) == (403, "Missing Authentication Token")


def signed(url, key, headers=(), service="neptune-db"):
    request = AWSRequest(method="GET", url=url)
    for name, value in headers:
        request.headers.add_header(name, value)
    SigV4Auth(Credentials(*key), service, REGION).add_auth(request)
    return request


def replays():
    """A request that is sent again within five minutes is accepted, as AWS does."""
    request = signed(f"{ENDPOINT}/status", WRITER)
    for _ in range(2):
        assert HTTP.request("GET", request.url, headers=dict(request.headers)).status == 200


def bolt_password(key):
    """As AWS's documentation and graph-notebook make it."""
    request = signed(f"{ENDPOINT}/opencypher", key, [("Host", HOST)])
    names = ["Authorization", "X-Amz-Date", "X-Amz-Security-Token", "Host"]
    sent = {name: request.headers[name] for name in names}
    return json.dumps({**sent, "HttpMethod": request.method})


def bolt():
    def connect(password):
        return neo4j.GraphDatabase.driver(f"bolt://{HOST}", auth=("username", password))

    for key in (WRITER, READER):
        with connect(bolt_password(key)) as driver:
            assert driver.execute_query("RETURN 1 AS one").records[0]["one"] == 1
    with connect(bolt_password(READER)) as driver:
        try:
            driver.execute_query("CREATE (:Never)")
            raise AssertionError("a reader wrote")
        except neo4j.exceptions.ClientError as error:
            assert error.code == "Neo.ClientError.Security.Forbidden", error
    for wrong in (bolt_password((WRITER[0], "another-secret-of-it", None)), "a password"):
        with connect(wrong) as driver:
            try:
                driver.verify_connectivity()
                raise AssertionError("a wrong signature was accepted")
            except neo4j.exceptions.AuthError:
                pass


def websocket():
    url = f"ws://{HOST}/gremlin"
    request = signed(url, READER)
    client = Client(url, "g", headers=dict(request.headers))
    assert client.submit("g.V().hasLabel('Signed').count()").all().result() == [1]
    try:
        client.submit("g.addV('Never')").all().result()
        raise AssertionError("a reader wrote")
    except Exception as error:
        assert getattr(error, "status_code", None) == 403, error
    client.close()
    for headers in ({}, dict(signed(url, (READER[0], "another-secret-of-it", READER[2])).headers)):
        client = Client(url, "g", headers=headers)
        try:
            client.submit("g.V()").all().result()
            raise AssertionError("a connection without a right signature was accepted")
        except Exception as error:
            assert "403" in str(error), error
        client.close()


def presigned(url, key, seconds=60, region=REGION, service="neptune-db"):
    """A URL whose query string is signed, as clients of Neptune make it for WebSocket."""
    request = AWSRequest(method="GET", url=url)
    SigV4QueryAuth(Credentials(*key), service, region, seconds).add_auth(request)
    return request.url


def presigned_urls():
    def got(url, status, message):
        answer = HTTP.request("GET", url)
        assert answer.status == status and message in answer.data.decode(), (answer.status, answer.data)

    count = f"{ENDPOINT}/gremlin?gremlin=g.V().hasLabel('Signed').count()"
    # More than once, as with AWS.
    for _ in range(2):
        got(presigned(count, READER), 200, '"@value":1')
    got(presigned(f"{ENDPOINT}/openCypher?query=RETURN%20%27a%20%26%20b%27%20AS%20text", WRITER), 200, "a & b")
    got(presigned(f"{ENDPOINT}/status", READER, service="neptune-graph"), 200, "healthy")
    mismatch = "The request signature we calculated does not match"
    got(presigned(count, READER).replace("count()", "drop()").replace("count%28", "drop%28"), 403, mismatch)
    got(presigned(count, (READER[0], "another-secret-of-it", READER[2])), 403, mismatch)
    got(presigned(count, READER, region="us-east-1"), 403, "Credential should be scoped to a valid region")
    got(presigned(count, READER[:2]), 403, "The security token included in the request is invalid")
    got(presigned(count, READER, seconds=7 * 24 * 3600 + 1), 403, "X-Amz-Expires must be from 1 to 604800")
    now = datetime.datetime.now(datetime.timezone.utc)
    for hours, seconds, status, message in ((1, 3500, 403, "Signature expired"), (1, 4000, 200, '"@value":1')):
        date = now - datetime.timedelta(hours=hours)
        with mock.patch("botocore.auth.get_current_datetime", lambda *_, **__: date):
            got(presigned(count, READER, seconds), status, message)

    url = f"ws://{HOST}/gremlin"
    client = Client(presigned(url, READER), "g")
    assert client.submit("g.V().hasLabel('Signed').count()").all().result() == [1]
    client.close()
    for wrong in (presigned(url, READER, region="us-east-1"), presigned(url, (READER[0], "another-secret-of-it", READER[2]))):
        client = Client(wrong, "g")
        try:
            client.submit("g.V()").all().result()
            raise AssertionError("a connection without a right signature was accepted")
        except Exception as error:
            assert "403" in str(error), error
        client.close()


clients_of_sdks()
refusals()
presigned_urls()
replays()
bolt()
websocket()

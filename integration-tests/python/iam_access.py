"""Drivers that prove who they are in AWS, with proofs that botocore signs, against a service that asks STS.

Usage: iam_access.py PORT REGION GRAPH CALLERS

CALLERS is what `sts_server.py` printed. The user has the role write, the role Analysts has read. Fails with the first thing
that is not as it should be.
"""

import base64
import datetime
import json
import sys
from unittest import mock

import neo4j
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from gremlin_python.driver.client import Client
from gremlin_python.driver.protocol import GremlinServerError

PORT, REGION, GRAPH, callers = sys.argv[1:]
CALLERS = json.loads(callers)
HOST = f"127.0.0.1:{PORT}"
HTTP = urllib3.PoolManager()


def prove(who, graph=GRAPH, secret=None, region=REGION, at=None):
    """Returns the proof of a caller, as docs/access.md describes it."""
    key = CALLERS[who]
    credentials = Credentials(key["id"], secret or key["secret"], key.get("token"))
    body = "Action=GetCallerIdentity&Version=2011-06-15"
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8", "X-Tidegraph-Graph": graph}
    request = AWSRequest("POST", f"{CALLERS['endpoint']}/", data=body, headers=headers)
    now = at or datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    with mock.patch("botocore.auth.get_current_datetime", return_value=now):
        SigV4Auth(credentials, "sts", region).add_auth(request)
    sent = ("Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Tidegraph-Graph")
    proof = {name: request.headers[name] for name in sent if name in request.headers}
    proof["Host"] = CALLERS["endpoint"].removeprefix("http://")
    return base64.urlsafe_b64encode(json.dumps(proof).encode()).decode().rstrip("=")


def ask(query, proof):
    headers = {"Authorization": f"Bearer {proof}", "Content-Type": "application/json"}
    answer = HTTP.request("POST", f"http://{HOST}/openCypher", body=json.dumps({"query": query}), headers=headers)
    return answer.status, answer.json()


def http():
    status, answer = ask("CREATE (:Made {by: 'http'}) RETURN 1 AS one", prove("user"))
    assert status == 200, answer
    proof = prove("role")
    for _ in range(2):
        status, answer = ask("MATCH (m:Made) RETURN count(m) AS n", proof)
        assert (status, answer.get("results")) == (200, [{"n": 1}]), answer
    status, answer = ask("CREATE (:Never)", proof)
    assert (status, answer["code"]) == (403, "AccessDeniedException"), answer
    assert "assumed-role/Analysts/ada lacks the role write" in answer["detailedMessage"], answer
    old = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) - datetime.timedelta(minutes=16)
    for wrong, reason in (
        (prove("user", secret="another secret"), "SignatureDoesNotMatch"),
        (prove("user", graph="another"), "is for the graph 'another'"),
        (prove("user", region="us-east-1"), "not 'us-east-1'"),
        (prove("user", at=old), "expired"),
        (prove("role")[:-8], "not a proof"),
        ("a-token-that-is-none", "not a proof"),
    ):
        status, answer = ask("RETURN 1", wrong)
        assert (status, answer["code"]) == (403, "AccessDeniedException"), answer
        assert reason in answer["detailedMessage"], (reason, answer)


def changed(**fields):
    """Returns the proof of the user with other fields, which its signature does not cover in this form."""
    proof = prove("user")
    decoded = json.loads(base64.urlsafe_b64decode(proof + "=" * (-len(proof) % 4)))
    text = json.dumps({**decoded, **fields}).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def forged():
    later = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=90)).strftime("%Y%m%dT%H%M%SZ")
    for proof in (
        changed(**{"X-Amz-Date": later}),
        changed(Authorization=json.loads(base64.urlsafe_b64decode(prove("role") + "==="))["Authorization"]),
    ):
        status, answer = ask("RETURN 1", proof)
        assert (status, answer["code"]) == (403, "AccessDeniedException"), answer


def bolt():
    with neo4j.GraphDatabase.driver(f"bolt://{HOST}", auth=("", prove("user"))) as driver:
        driver.execute_query("CREATE (:Made {by: 'bolt'})")
    with neo4j.GraphDatabase.driver(f"bolt://{HOST}", auth=neo4j.bearer_auth(prove("role"))) as driver:
        assert driver.execute_query("MATCH (m:Made) RETURN count(m) AS n").records[0]["n"] == 2
    with neo4j.GraphDatabase.driver(f"bolt://{HOST}", auth=("", prove("user", secret="wrong"))) as driver:
        try:
            driver.verify_connectivity()
            raise AssertionError("a forged proof was accepted")
        except neo4j.exceptions.AuthError as error:
            assert error.code == "Neo.ClientError.Security.Unauthorized", error


def websocket():
    client = Client(f"ws://{HOST}/gremlin", "g", username="any", password=prove("user"))
    client.submit("g.addV('Made')").all().result()
    client.close()
    headers = {"Authorization": f"Bearer {prove('role')}"}
    client = Client(f"ws://{HOST}/gremlin", "g", headers=headers)
    assert client.submit("g.V().hasLabel('Made').count()").all().result() == [3]
    try:
        client.submit("g.addV('Never')").all().result()
        raise AssertionError("a reader wrote")
    except GremlinServerError as error:
        assert error.status_code == 403, error
    client.close()


http()
forged()
bolt()
websocket()

"""Drives a Tidegraph service with boto3's own `neptunedata` client, as an application written for Neptune does.

Usage: neptunedata_client.py ENDPOINT SOURCE

SOURCE is the file:// URI of a folder with the small library graph. Fails with the first thing that is not as it should be.
"""

import json
import sys
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError


def client(endpoint):
    return boto3.client(
        "neptunedata",
        endpoint_url=endpoint,
        region_name="eu-central-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=30),
    )


def check_status(neptune):
    status = neptune.get_engine_status()
    assert status["status"] == "healthy", status
    assert status["role"] == "writer", status
    assert status["gremlin"]["version"] and status["opencypher"]["version"], status


def check_load(neptune, source):
    started = neptune.start_loader_job(
        source=source,
        format="csv",
        s3BucketRegion="eu-central-1",
        iamRoleArn="arn:aws:iam::000000000000:role/none",
        mode="NEW",
        failOnError=True,
        parallelism="HIGH",
        queueRequest=True,
        userProvidedEdgeIds=True,
    )
    load_id = started["payload"]["loadId"]
    deadline = time.monotonic() + 30
    while True:
        answer = neptune.get_loader_job_status(loadId=load_id, details=True, errors=True)
        state = answer["payload"]["overallStatus"]["status"]
        if state == "LOAD_COMPLETED":
            break
        assert state in ("LOAD_NOT_STARTED", "LOAD_IN_QUEUE", "LOAD_IN_PROGRESS"), answer
        assert time.monotonic() < deadline, answer
        time.sleep(0.1)
    listed = neptune.list_loader_jobs(limit=10, includeQueuedLoads=True)
    assert load_id in listed["payload"]["loadIds"], listed


def check_open_cypher(neptune):
    answer = neptune.execute_open_cypher_query(
        openCypherQuery="MATCH (b:Book) WHERE b.pages > $least RETURN b.name AS name ORDER BY name",
        parameters=json.dumps({"least": 400}),
    )
    names = [row["name"] for row in answer["results"]]
    assert names == ["A Harbour of Glass", "Glasshafen", "The Salt Road"], names
    answer = neptune.execute_open_cypher_query(openCypherQuery="MATCH (b) WHERE id(b) = 'b8' RETURN b")
    node = answer["results"][0]["b"]
    assert node["~id"] == "b8" and node["~labels"] == ["Book"], node


def check_gremlin(neptune):
    answer = neptune.execute_gremlin_query(gremlinQuery="g.V().hasLabel('Book').count()")
    assert answer["status"]["code"] == 200, answer
    assert answer["result"]["data"]["@value"] == [{"@type": "g:Int64", "@value": 9}], answer
    typed = neptune.execute_gremlin_query(
        gremlinQuery="g.V('b8').values('name')", serializer="application/vnd.gremlin-v3.0+json"
    )
    assert typed["result"]["data"]["@value"] == ["Ebb"], typed
    # A property with properties of its own.
    neptune.execute_gremlin_query(gremlinQuery="g.V('b8').property(single,'shelf','S4','since',2020)")
    query = "g.V('b8').properties('shelf').has('since',gt(2000))"
    answer = neptune.execute_gremlin_query(gremlinQuery=query)
    [shelf] = answer["result"]["data"]["@value"]
    assert shelf["@type"] == "g:VertexProperty" and shelf["@value"]["value"] == "S4", answer
    assert shelf["@value"]["properties"] == {"since": {"@type": "g:Int32", "@value": 2020}}, answer


def check_errors(neptune):
    try:
        neptune.execute_open_cypher_query(openCypherQuery="MATCH (n RETURN n")
    except neptune.exceptions.MalformedQueryException as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 400, error.response
        assert error.response["detailedMessage"], error.response
    else:
        raise AssertionError("a query that does not parse was answered")
    try:
        neptune.get_loader_job_status(loadId="00000000-0000-4000-8000-000000000000")
    except neptune.exceptions.BulkLoadIdNotFoundException:
        pass
    except ClientError as error:
        raise AssertionError(f"another error than BulkLoadIdNotFoundException: {error}") from error
    else:
        raise AssertionError("a load that does not exist has a status")


def main():
    endpoint, source = sys.argv[1:]
    neptune = client(endpoint)
    check_status(neptune)
    check_load(neptune, source)
    check_open_cypher(neptune)
    check_gremlin(neptune)
    check_errors(neptune)
    print("boto3 neptunedata: status, load, openCypher, Gremlin and errors are as it expects")


if __name__ == "__main__":
    main()

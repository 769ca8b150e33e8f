"""Drives a Tidegraph service with boto3's own clients `neptunedata` and `neptune-graph`, as applications written for Neptune do.

Usage: neptunedata_client.py ENDPOINT SOURCE

SOURCE is the file:// URI of a folder with the small library graph. Fails with the first thing that is not as it should be.
"""

import json
import sys
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

# Longest wait for an answer and for a load: generous, since other programs may keep the machine busy.
PATIENCE_S = 300


def client(endpoint, service="neptunedata"):
    # Analytics has the graph in the host's name, which a service on this machine has not.
    config = Config(retries={"total_max_attempts": 1}, read_timeout=PATIENCE_S, inject_host_prefix=False)
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="eu-central-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=config,
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
    deadline = time.monotonic() + PATIENCE_S
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


def check_explain(neptune):
    query = "MATCH (b:Book) WHERE b.pages > 400 RETURN b.name"
    planned = neptune.execute_open_cypher_explain_query(openCypherQuery=query, explainMode="static")
    assert b"scan vertices" in planned["results"].read()
    ran = neptune.execute_open_cypher_explain_query(openCypherQuery=query, explainMode="details")["results"].read()
    assert b"milliseconds" in ran and b"scan vertices" in ran, ran
    planned = neptune.execute_gremlin_explain_query(gremlinQuery="g.V().hasLabel('Book').out()")
    assert b"expand" in planned["output"].read()
    ran = neptune.execute_gremlin_profile_query(gremlinQuery="g.V().hasLabel('Book').out()")["output"].read()
    assert b"milliseconds" in ran and b"expand" in ran, ran


def refused(call, code):
    try:
        call()
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error.response
    else:
        raise AssertionError(f"answered instead of {code}")


def check_statistics(neptune):
    statistics = neptune.get_propertygraph_statistics()
    assert statistics["status"] == "200 OK", statistics
    assert statistics["payload"]["active"] and statistics["payload"]["signatureInfo"]["instanceCount"] > 9, statistics
    refreshed = neptune.manage_propertygraph_statistics(mode="refresh")
    assert refreshed["payload"]["statisticsId"], refreshed
    refused(
        lambda: neptune.manage_propertygraph_statistics(mode="disableAutoCompute"), "UnsupportedOperationException"
    )
    refused(neptune.delete_propertygraph_statistics, "UnsupportedOperationException")
    check_summary(neptune.get_propertygraph_summary(mode="detailed")["payload"], detailed=True)
    check_summary(neptune.get_propertygraph_summary()["payload"], detailed=False)


def check_summary(payload, detailed):
    summary = payload["graphSummary"]
    assert payload["lastStatisticsComputationTime"], payload
    assert "Book" in summary["nodeLabels"] and summary["numNodeLabels"] == len(summary["nodeLabels"]), summary
    assert summary["numEdgeLabels"] == len(summary["edgeLabels"]) > 0, summary
    [names] = [each["name"] for each in summary["nodeProperties"] if "name" in each]
    assert 9 <= names <= summary["numNodes"], summary
    assert summary["totalNodePropertyValues"] == sum(n for each in summary["nodeProperties"] for n in each.values())
    assert bool(summary.get("nodeStructures")) == detailed, summary
    if detailed:
        assert sum(each["count"] for each in summary["nodeStructures"]) == summary["numNodes"], summary
        assert sum(each["count"] for each in summary["edgeStructures"]) == summary["numEdges"], summary


def after(answer):
    """Returns where the stream goes on behind an answer."""
    last = answer["lastEventId"]
    return {
        "iteratorType": "AFTER_SEQUENCE_NUMBER",
        "commitNum": int(last["commitNum"]),
        "opNum": int(last["opNum"]),
    }


def check_stream(neptune):
    read = neptune.get_propertygraph_stream
    # The stream does not tell the rows of the load, and begins behind it with what was written since.
    newest = read(iteratorType="LATEST")
    assert newest["totalRecords"] == 1 and newest["records"][0]["isLastOp"], newest
    place = after(newest)
    refused(lambda: read(**place), "StreamRecordsNotFoundException")
    refused(lambda: read(iteratorType="AT_SEQUENCE_NUMBER", commitNum=1), "ExpiredStreamException")
    refused(lambda: read(iteratorType="AFTER_SEQUENCE_NUMBER"), "InvalidParameterException")
    write = "CREATE (:Streamed {`~id`: 's1', n: 1})-[:NEXT {`~id`: 'e1'}]->(:Streamed {`~id`: 's2'})"
    neptune.execute_open_cypher_query(openCypherQuery=write)
    neptune.execute_open_cypher_query(openCypherQuery="MATCH (s:Streamed) DETACH DELETE s")
    # As a poller does: two records at a time, always behind the last event.
    found = []
    while len(found) < 8:
        answer = read(limit=2, encoding="gzip", **place)
        assert answer["format"] == "PG_JSON" and 1 <= answer["totalRecords"] == len(answer["records"]) <= 2, answer
        assert answer["lastEventId"] == answer["records"][-1]["eventId"], answer
        assert answer["lastTrxTimestampInMillis"] > 1_600_000_000_000, answer
        found += answer["records"]
        place = after(answer)
    told = [(each["op"], each["data"]["type"], each["data"]["id"], each["data"]["value"]["value"]) for each in found]
    made = [("vl", "s1", "Streamed"), ("vp", "s1", 1), ("vl", "s2", "Streamed"), ("e", "e1", "NEXT")]
    assert told[:4] == [("ADD", *each) for each in made], told
    assert sorted(told[4:], key=str) == sorted((("REMOVE", *each) for each in made), key=str), told
    assert [bool(each.get("isLastOp")) for each in found] == [False, False, False, True] * 2, found
    edge = found[3]["data"]
    assert (edge["from"], edge["to"], edge["key"]) == ("s1", "s2", "label"), edge
    refused(lambda: read(**place), "StreamRecordsNotFoundException")
    refused(lambda: neptune.get_sparql_stream(), "UnsupportedOperationException")


def check_reset(neptune):
    count = "MATCH (n) RETURN count(n) AS n"
    assert neptune.execute_open_cypher_query(openCypherQuery=count)["results"][0]["n"] > 9
    refused(lambda: neptune.execute_fast_reset(action="performDatabaseReset"), "MissingParameterException")
    unknown = "00000000-0000-4000-8000-000000000000"
    refused(
        lambda: neptune.execute_fast_reset(action="performDatabaseReset", token=unknown), "InvalidParameterException"
    )
    initiated = neptune.execute_fast_reset(action="initiateDatabaseReset")
    assert initiated["status"] == "200 OK", initiated
    token = initiated["payload"]["token"]
    performed = neptune.execute_fast_reset(action="performDatabaseReset", token=token)
    assert performed["status"] == "200 OK", performed
    assert neptune.execute_open_cypher_query(openCypherQuery=count)["results"] == [{"n": 0}]
    assert neptune.get_propertygraph_summary()["payload"]["graphSummary"]["numNodes"] == 0
    refused(
        lambda: neptune.execute_fast_reset(action="performDatabaseReset", token=token), "PreconditionsFailedException"
    )


def check_analytics(graph):
    ran = graph.execute_query(
        graphIdentifier="g-0123456789",
        queryString="MATCH (b:Book) WHERE b.pages > $least RETURN count(*) AS n",
        language="OPEN_CYPHER",
        parameters={"least": 400},
        planCache="AUTO",
        queryTimeoutMilliseconds=100_000,
    )
    assert json.loads(ran["payload"].read()) == {"results": [{"n": 3}]}
    check_summary(graph.get_graph_summary(graphIdentifier="g-0123456789", mode="DETAILED"), detailed=True)
    assert graph.list_queries(graphIdentifier="g-0123456789", maxResults=10, state="ALL")["queries"] == []
    assert graph.get_graph(graphIdentifier="g-0123456789")["status"] == "AVAILABLE"
    refused(lambda: graph.get_query(graphIdentifier="g-0123456789", queryId="none"), "NotFoundException")
    refused(lambda: graph.cancel_query(graphIdentifier="g-0123456789", queryId="none"), "NotFoundException")


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
    check_explain(neptune)
    check_statistics(neptune)
    check_analytics(client(endpoint, "neptune-graph"))
    check_errors(neptune)
    check_stream(neptune)
    check_reset(neptune)
    # The graph can be filled again.
    check_load(neptune, source)
    check_open_cypher(neptune)
    print("boto3: status, load, openCypher, Gremlin, explain, statistics, Analytics, errors, stream and reset are as it expects")


if __name__ == "__main__":
    main()

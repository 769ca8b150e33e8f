"""boto3: every operation of the models of `neptunedata` and `neptune-graph`, once.

An operation without a line here fails.
"""

import json
import threading
import time
from functools import partial

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import ClientError
from checks import arguments, environment

SLOW_CYPHER = "UNWIND range(1, 1000000000) AS n WITH n WHERE n < 0 RETURN count(n)"
SLOW_GREMLIN = "g.V().repeat(both().limit(5)).times(100000000).count()"
GRAPH = {"graphIdentifier": "g-0123456789"}
ROLE = "arn:aws:iam::000000000000:role/none"
S3 = "s3://bucket/key"
# What is to be done when the operation has been called.
AFTERWARDS = []
# A load may end before it is cancelled.
TRIES = {"CancelLoaderJob": 100}


def client(endpoint, service):
    # Analytics has the graph in the host's name, which a service on this machine has not.
    config = Config(retries={"total_max_attempts": 1}, read_timeout=300, inject_host_prefix=False)
    return boto3.client(service, endpoint_url=endpoint, region_name=environment(), config=config)


RUNNING = ("LOAD_NOT_STARTED", "LOAD_IN_QUEUE", "LOAD_IN_PROGRESS")


class Slow:
    """A query that runs until it is cancelled."""

    newest = None

    def __init__(self, run, listed):
        # A cancelled query stays on the list until it ends, and this one is to be alone there.
        if Slow.newest:
            Slow.newest.join()
        Slow.newest = threading.Thread(target=self.ignore, args=(run,))
        Slow.newest.start()
        deadline = time.monotonic() + 300
        while not (ids := [query.get("queryId") or query.get("id") for query in listed()["queries"]]):
            assert time.monotonic() < deadline, "the query is not listed"
            time.sleep(0.02)
        [self.id] = ids

    @staticmethod
    def ignore(run):
        try:
            run()
        except ClientError:
            pass


def data_operations(neptune, source):
    """Returns the arguments of each operation. A function gives them when it is the operation's turn."""
    load = {"source": source, "format": "csv", "s3BucketRegion": environment(), "iamRoleArn": ROLE}
    load.update(mode="NEW", queueRequest=True)
    loads = []

    def loaded(**more):
        loads.append(neptune.start_loader_job(**load)["payload"]["loadId"])
        return {"loadId": loads[-1], **more}

    def streamed():
        # The stream begins behind the newest load.
        for load_id in loads:
            while neptune.get_loader_job_status(loadId=load_id)["payload"]["overallStatus"]["status"] in RUNNING:
                time.sleep(0.02)
        neptune.execute_open_cypher_query(openCypherQuery="CREATE (s:Streamed) DELETE s CREATE (:Streamed)")
        return {"limit": 10, "iteratorType": "TRIM_HORIZON"}

    def slow_cypher():
        run = partial(neptune.execute_open_cypher_query, openCypherQuery=SLOW_CYPHER)
        return {"queryId": Slow(run, neptune.list_open_cypher_queries).id}

    def slow_gremlin():
        run = partial(neptune.execute_gremlin_query, gremlinQuery=SLOW_GREMLIN)
        return {"queryId": Slow(run, neptune.list_gremlin_queries).id}

    def then(arguments, cancel):
        AFTERWARDS.append(lambda: cancel(**arguments))
        return arguments

    job = {"id": "job"}
    return {
        "CancelGremlinQuery": slow_gremlin,
        "CancelIndexRebuild": {"rebuildId": "rebuild"},
        "CancelLoaderJob": lambda: loaded(),
        "CancelMLDataProcessingJob": job,
        "CancelMLModelTrainingJob": job,
        "CancelMLModelTransformJob": job,
        "CancelOpenCypherQuery": slow_cypher,
        "CreateMLEndpoint": {},
        "DeleteMLEndpoint": job,
        "DeletePropertygraphStatistics": {},
        "DeleteSparqlStatistics": {},
        "ExecuteFastReset": {"action": "initiateDatabaseReset"},
        "ExecuteGremlinExplainQuery": {"gremlinQuery": "g.V().count()"},
        "ExecuteGremlinProfileQuery": {"gremlinQuery": "g.V().count()"},
        "ExecuteGremlinQuery": {"gremlinQuery": "g.V().count()"},
        "ExecuteOpenCypherExplainQuery": {"openCypherQuery": "RETURN 1", "explainMode": "dynamic"},
        "ExecuteOpenCypherQuery": {"openCypherQuery": "RETURN $x", "parameters": '{"x": 1}'},
        "GetEngineStatus": {},
        "GetGremlinQueryStatus": lambda: then(slow_gremlin(), neptune.cancel_gremlin_query),
        "GetIndexRebuildStatus": {"rebuildId": "rebuild"},
        "GetLoaderJobStatus": lambda: loaded(details=True, errors=True, page=1, errorsPerPage=3),
        "GetMLDataProcessingJob": job,
        "GetMLEndpoint": job,
        "GetMLModelTrainingJob": job,
        "GetMLModelTransformJob": job,
        "GetOpenCypherQueryStatus": lambda: then(slow_cypher(), neptune.cancel_open_cypher_query),
        "GetPropertygraphStatistics": {},
        "GetPropertygraphStream": streamed,
        "GetPropertygraphSummary": {"mode": "detailed"},
        "GetRDFGraphSummary": {"mode": "basic"},
        "GetSparqlStatistics": {},
        "GetSparqlStream": {},
        "GetStorageInfo": {},
        "ListGremlinQueries": {"includeWaiting": True},
        "ListIndexRebuilds": {},
        "ListLoaderJobs": {"limit": 10, "includeQueuedLoads": True},
        "ListMLDataProcessingJobs": {},
        "ListMLEndpoints": {},
        "ListMLModelTrainingJobs": {},
        "ListMLModelTransformJobs": {},
        "ListOpenCypherQueries": {"includeWaiting": True},
        "ManagePropertygraphStatistics": {"mode": "refresh"},
        "ManageSparqlStatistics": {"mode": "refresh"},
        "StartIndexRebuild": {},
        "StartLoaderJob": load,
        "StartMLDataProcessingJob": {"inputDataS3Location": S3, "processedDataS3Location": S3},
        "StartMLModelTrainingJob": {"dataProcessingJobId": "job", "trainModelS3Location": S3},
        "StartMLModelTransformJob": {"modelTransformOutputS3Location": S3},
    }


def graph_operations(graph):
    """Returns the arguments of each operation of Analytics."""

    def slow():
        run = partial(graph.execute_query, **GRAPH, queryString=SLOW_CYPHER, language="OPEN_CYPHER")
        listed = partial(graph.list_queries, **GRAPH, maxResults=10)
        return {**GRAPH, "queryId": Slow(run, listed).id}

    def asked():
        arguments = slow()
        AFTERWARDS.append(lambda: graph.cancel_query(**arguments))
        return arguments

    task, snapshot = {"taskIdentifier": "t-0123456789"}, {"snapshotIdentifier": "gs-0123456789"}
    endpoint = {**GRAPH, "vpcId": "vpc-01234567"}
    resource = {"resourceArn": f"arn:aws:neptune-graph:{environment()}:000000000000:graph/g-0123456789"}
    return {
        "CancelExportTask": task,
        "CancelImportTask": task,
        "CancelQuery": slow,
        "CreateGraph": {"graphName": "name", "provisionedMemory": 128},
        "CreateGraphSnapshot": {**GRAPH, "snapshotName": "name"},
        "CreateGraphUsingImportTask": {"graphName": "name", "source": S3, "roleArn": ROLE},
        "CreatePrivateGraphEndpoint": GRAPH,
        "DeleteGraph": {**GRAPH, "skipSnapshot": True},
        "DeleteGraphSnapshot": snapshot,
        "DeletePrivateGraphEndpoint": endpoint,
        "ExecuteQuery": {**GRAPH, "queryString": "RETURN 1", "language": "OPEN_CYPHER"},
        "GetExportTask": task,
        "GetGraph": GRAPH,
        "GetGraphSnapshot": snapshot,
        "GetGraphSummary": {**GRAPH, "mode": "DETAILED"},
        "GetImportTask": task,
        "GetPrivateGraphEndpoint": endpoint,
        "GetQuery": asked,
        "ListExportTasks": {},
        "ListGraphSnapshots": {},
        "ListGraphs": {},
        "ListImportTasks": {},
        "ListPrivateGraphEndpoints": GRAPH,
        "ListQueries": {**GRAPH, "maxResults": 10, "state": "ALL"},
        "ListTagsForResource": resource,
        "ResetGraph": {**GRAPH, "skipSnapshot": True},
        "RestoreGraphFromSnapshot": {**snapshot, "graphName": "name"},
        "StartExportTask": {
            **GRAPH,
            "roleArn": ROLE,
            "format": "CSV",
            "destination": S3,
            "kmsKeyIdentifier": "arn:aws:kms:eu-central-1:000000000000:key/00000000-0000-0000-0000-000000000000",
        },
        "StartGraph": GRAPH,
        "StartImportTask": {**GRAPH, "source": S3, "roleArn": ROLE},
        "StopGraph": GRAPH,
        "TagResource": {**resource, "tags": {"a": "b"}},
        "UntagResource": {**resource, "tagKeys": ["a"]},
        "UpdateGraph": GRAPH,
    }


def outcome(run):
    try:
        answer = run()
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        code = error.response["Error"]["Code"]
        reason = error.response.get("detailedMessage") or error.response["Error"].get("Message")
        assert status < 500 and code.endswith("Exception") and reason, error.response
        # Without the path, which is that of the operation.
        return f"{code}: {reason.split(' is not supported: ', 1)[-1]}"
    for part in answer.values():
        if hasattr(part, "read"):
            part.read()
    return "works"


def run(service, endpoint, lines_of, *more):
    boto = client(endpoint, service)
    lines = lines_of(boto, *more)
    known = set(boto.meta.service_model.operation_names)
    assert known == set(lines), f"{service}: {sorted(known ^ set(lines))}"
    operations = {}
    for name, arguments in lines.items():
        for _ in range(TRIES.get(name, 1)):
            given = arguments() if callable(arguments) else arguments
            operations[name] = outcome(lambda: getattr(boto, xform_name(name))(**given))
            while AFTERWARDS:
                AFTERWARDS.pop()()
            if operations[name] == "works":
                break
    print(json.dumps({"service": service, "version": boto3.__version__, "operations": operations}), flush=True)


def load_library(neptune, source):
    """Loads the graph that the other scripts ask about."""
    load = {"source": source, "format": "csv", "s3BucketRegion": environment(), "iamRoleArn": ROLE}
    load_id = neptune.start_loader_job(**load)["payload"]["loadId"]
    deadline = time.monotonic() + 300
    while True:
        status = neptune.get_loader_job_status(loadId=load_id)["payload"]["overallStatus"]["status"]
        if status == "LOAD_COMPLETED":
            return
        assert time.monotonic() < deadline and "FAILED" not in status, status
        time.sleep(0.1)


if __name__ == "__main__":
    plain, tls, source = arguments()
    load_library(client(tls, "neptunedata"), source)
    run("neptunedata", tls, data_operations, source)
    run("neptune-graph", plain, graph_operations)

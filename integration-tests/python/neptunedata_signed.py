"""Drives the REST API with boto3's own `neptunedata` client and gremlin-python, by the package tidegraph-neptune: they sign for
`execute-api`, which API Gateway takes.

Usage: neptunedata_signed.py ENDPOINT REGION
"""

import sys

import boto3
import tidegraph_neptune
from botocore.config import Config


def check_signature(request, **_):
    signature = request.headers["Authorization"].decode()
    assert "/execute-api/aws4_request" in signature, signature


def main():
    endpoint, region = sys.argv[1:]
    session = boto3.Session("AKIDEXAMPLE", "an-example-of-a-secret-key", region_name=region)
    neptune = session.client(
        "neptunedata",
        endpoint_url=endpoint,
        config=Config(retries={"total_max_attempts": 1}, read_timeout=300),
    )
    tidegraph_neptune.attach(neptune, endpoint, region=region)
    neptune.meta.events.register("before-send.neptunedata", check_signature)

    answer = neptune.execute_open_cypher_query(
        openCypherQuery="CREATE (p:Signed {name: $name}) RETURN p.name AS name", parameters='{"name": "boto3"}'
    )
    assert answer["results"] == [{"name": "boto3"}], answer
    answer = neptune.execute_gremlin_query(gremlinQuery="g.V().hasLabel('Signed').values('name')")
    assert answer["result"]["data"]["@value"] == ["boto3"], answer
    gremlin = tidegraph_neptune.gremlin_client(endpoint, region=region, session=session)
    assert gremlin.submit("g.V().hasLabel('Signed').values('name')").all().result() == ["boto3"]
    gremlin.close()
    try:
        neptune.execute_open_cypher_query(openCypherQuery="MATCH (n RETURN n")
    except neptune.exceptions.MalformedQueryException as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 400, error.response
        assert error.response["detailedMessage"] and error.response["requestId"], error.response
    else:
        raise AssertionError("a query that does not parse was answered")
    print("boto3 neptunedata, signed for execute-api: openCypher, Gremlin and errors are as it expects")


if __name__ == "__main__":
    main()

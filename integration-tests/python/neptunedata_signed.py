"""Drives the REST API with boto3's own `neptunedata` client. It signs for Neptune (`neptune-db`); API Gateway takes requests that are signed for
`execute-api`, which a hook of botocore's says. docs/deploy.md shows the same hook.

Usage: neptunedata_signed.py ENDPOINT REGION
"""

import sys

import boto3
from botocore.config import Config


def sign_for_api_gateway(request, **_):
    request.context.setdefault("signing", {})["signing_name"] = "execute-api"


def check_signature(request, **_):
    signature = request.headers["Authorization"].decode()
    assert "/execute-api/aws4_request" in signature, signature


def main():
    endpoint, region = sys.argv[1:]
    neptune = boto3.client(
        "neptunedata",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="an-example-of-a-secret-key",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=60),
    )
    neptune.meta.events.register("before-sign.neptunedata", sign_for_api_gateway)
    neptune.meta.events.register("before-send.neptunedata", check_signature)

    answer = neptune.execute_open_cypher_query(
        openCypherQuery="CREATE (p:Signed {name: $name}) RETURN p.name AS name", parameters='{"name": "boto3"}'
    )
    assert answer["results"] == [{"name": "boto3"}], answer
    answer = neptune.execute_gremlin_query(gremlinQuery="g.V().hasLabel('Signed').values('name')")
    assert answer["result"]["data"]["@value"] == ["boto3"], answer
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

"""Clients of Neptune as they are, with a worker that verifies signatures for `neptune-db`: boto3, gremlin-python over WebSocket
with a signed upgrade, and Neo4j's driver with a signed password, as Neptune's documentation has them.

Usage: neptune_worker.py PORT REGION QUERY, where the query of openCypher returns `n`. Prints what each client answers.
"""

import json
import sys

import boto3
import neo4j
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import ClientError
from gremlin_python.driver.client import Client

PORT, REGION, QUERY = sys.argv[1:]
HOST = f"127.0.0.1:{PORT}"
SERVICE = "neptune-db"


def signed(session, url):
    request = AWSRequest(method="GET", url=url, headers={"Host": HOST})
    SigV4Auth(session.get_credentials(), SERVICE, REGION).add_auth(request)
    return dict(request.headers)


def neptunedata(session):
    config = Config(retries={"total_max_attempts": 1}, read_timeout=300)
    return session.client("neptunedata", endpoint_url=f"http://{HOST}", config=config)


def main():
    # The keys of the worker's secret, as a client has them in a profile.
    session = boto3.Session("AKIDANALYST", "a-secret-of-the-analyst", region_name=REGION)
    found = {"boto3": neptunedata(session).execute_open_cypher_query(openCypherQuery=QUERY)["results"]}

    url = f"ws://{HOST}/gremlin"
    client = Client(url, "g", headers=signed(session, url))
    found["gremlin"] = client.submit("g.inject(1)").all().result()
    client.close()

    headers = signed(session, f"http://{HOST}/opencypher")
    password = json.dumps({**headers, "HttpMethod": "GET"})
    with neo4j.GraphDatabase.driver(f"bolt://{HOST}", auth=("username", password)) as driver:
        found["bolt"] = [record.data() for record in driver.execute_query(QUERY).records]

    stranger = boto3.Session("AKIDANALYST", "a-guess", region_name=REGION)
    for name, session, query in (("read only", session, "CREATE (:Never)"), ("wrong secret", stranger, QUERY)):
        try:
            neptunedata(session).execute_open_cypher_query(openCypherQuery=query)
        except ClientError as error:
            found[name] = error.response["Error"]["Code"]
    print(json.dumps(found))


if __name__ == "__main__":
    main()

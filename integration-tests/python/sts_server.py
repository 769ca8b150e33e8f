"""STS in a process of its own (moto), which verifies signatures with botocore's code.

Usage: sts_server.py

Makes an IAM user, an access key of it, and a session of a role, prints them with the endpoint as one line of JSON, and
serves until standard input ends. From then on every request needs a right signature.
"""

import json
import logging
import sys

import boto3
from moto.core import set_initial_no_auth_action_count
from moto.server import ThreadedMotoServer

REGION = "eu-central-1"
TRUST = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sts:AssumeRole"}]}


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"

    def client(service):
        return boto3.client(
            service,
            endpoint_url=endpoint,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    iam = client("iam")
    user = iam.create_user(UserName="bob", Path="/people/")["User"]
    key = iam.create_access_key(UserName="bob")["AccessKey"]
    role = iam.create_role(RoleName="Analysts", Path="/team/", AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]
    session = client("sts").assume_role(RoleArn=role["Arn"], RoleSessionName="ada")["Credentials"]
    made = {
        "endpoint": endpoint,
        "user": {"arn": user["Arn"], "id": key["AccessKeyId"], "secret": key["SecretAccessKey"]},
        "role": {
            "arn": role["Arn"],
            "id": session["AccessKeyId"],
            "secret": session["SecretAccessKey"],
            "token": session["SessionToken"],
        },
    }

    @set_initial_no_auth_action_count(0)
    def serve():
        print(json.dumps(made), flush=True)
        sys.stdin.read()

    serve()
    server.stop()


if __name__ == "__main__":
    main()

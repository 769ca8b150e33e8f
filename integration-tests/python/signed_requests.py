"""Signs requests as AWS's SDKs do (Signature Version 4, of the service `execute-api`) and sends them.

Usage: signed_requests.py ENDPOINT REGION

A line of standard input is a request, `{"method", "path", "headers", "body"}`; its answer is a line of standard output, `{"status", "headers", "body"}`.
"""

import json
import sys
import urllib.error
import urllib.request

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

LONGEST_S = 300


def send(endpoint, region, asked):
    request = AWSRequest(
        method=asked["method"],
        url=endpoint + asked["path"],
        headers=asked.get("headers") or {},
        data=(asked.get("body") or "").encode(),
    )
    credentials = Credentials("AKIDEXAMPLE", "an-example-of-a-secret-key", "an-example-of-a-session-token")
    SigV4Auth(credentials, "execute-api", region).add_auth(request)
    signed = urllib.request.Request(
        request.url, method=request.method, headers=dict(request.headers), data=request.data or None
    )
    try:
        with urllib.request.urlopen(signed, timeout=LONGEST_S) as answer:
            status, headers, body = answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        status, headers, body = error.code, error.headers, error.read()
    lower = {name.lower(): value for name, value in headers.items()}
    return {"status": status, "headers": lower, "body": body.decode()}


def main():
    endpoint, region = sys.argv[1:]
    for line in sys.stdin:
        print(json.dumps(send(endpoint, region, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()

"""An S3 server in a process of its own (moto), for loads from s3:// sources.

Usage: s3_server.py BUCKET FOLDER

Puts the files under FOLDER into BUCKET, under their relative paths, prints the endpoint as one line, and serves until
standard input ends.
"""

import logging
import sys
from pathlib import Path

import boto3
from moto.server import ThreadedMotoServer

REGION = "eu-central-1"


def main():
    bucket, folder = sys.argv[1], Path(sys.argv[2])
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    s3 = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            s3.put_object(Bucket=bucket, Key=path.relative_to(folder).as_posix(), Body=path.read_bytes())
    print(endpoint, flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()

"""Control planes of AWS (moto) in a process of its own.

Prints the endpoint as one line, and serves until standard input ends.
"""

import logging
import sys

from moto.cloudwatch.responses import CloudWatchResponse
from moto.server import ThreadedMotoServer

# moto keeps composite alarms and describes them, but has no operation that makes them: this method reads their rule.
CloudWatchResponse.put_composite_alarm = CloudWatchResponse.put_metric_alarm


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    print(f"http://{host}:{port}", flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()

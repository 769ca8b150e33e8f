"""Control planes of AWS (moto) in a process of its own.

Prints the endpoint as one line, and serves until standard input ends. Ends with a failure if moto itself failed in one
of the requests, because AWS would have answered something else.
"""

import logging
import sys

from moto.cloudwatch.responses import CloudWatchResponse
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.server import ThreadedMotoServer

# moto keeps composite alarms and describes them, but has no operation that makes them: this method reads their rule.
CloudWatchResponse.put_composite_alarm = CloudWatchResponse.put_metric_alarm

# Requests in which moto failed.
failures = []
answer = DomainDispatcherApplication.__call__


def watched(self, environ, start_response):
    service = environ.get("HTTP_AUTHORIZATION", "").split(",")[0].split("/")[-2:-1]
    asked = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']} {environ.get('HTTP_X_AMZ_TARGET', '')} {service}"

    def started(status, *rest):
        if status.startswith("500"):
            failures.append(f"{asked}: {status}")
        return start_response(status, *rest)

    try:
        return answer(self, environ, started)
    except Exception as error:
        failures.append(f"{asked}: {error!r}")
        raise


DomainDispatcherApplication.__call__ = watched


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    print(f"http://{host}:{port}", flush=True)
    sys.stdin.read()
    server.stop()
    if failures:
        sys.exit("moto failed, which AWS would not:\n" + "\n".join(failures))


if __name__ == "__main__":
    main()

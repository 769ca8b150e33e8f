"""Receives traces by OpenTelemetry's protocol over HTTP, and prints each span as a line of JSON.

Decodes with OpenTelemetry's own messages. The first line is the port. A request with another content type, or that is
not a message, is answered 400 and printed as {"refused": reason}.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

KINDS = ["unspecified", "internal", "server", "client", "producer", "consumer"]
printing = Lock()


def say(line):
    with printing:
        print(json.dumps(line), flush=True)


def value(any_value):
    kind = any_value.WhichOneof("value")
    return getattr(any_value, kind) if kind else None


def attributes(pairs):
    return {pair.key: value(pair.value) for pair in pairs}


class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            if self.path != "/v1/traces" or self.headers["content-type"] != "application/x-protobuf":
                raise ValueError(f"{self.path} with {self.headers['content-type']}")
            request = ExportTraceServiceRequest.FromString(body)
        except Exception as error:
            say({"refused": str(error)})
            self.send_response(400)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        for resource in request.resource_spans:
            service = attributes(resource.resource.attributes).get("service.name")
            for scope in resource.scope_spans:
                for span in scope.spans:
                    say(
                        {
                            "service": service,
                            "name": span.name,
                            "kind": KINDS[span.kind],
                            "trace": span.trace_id.hex(),
                            "id": span.span_id.hex(),
                            "parent": span.parent_span_id.hex(),
                            "nanos": span.end_time_unix_nano - span.start_time_unix_nano,
                            "attributes": attributes(span.attributes),
                        }
                    )
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
say({"port": server.server_port})
try:
    server.serve_forever()
except KeyboardInterrupt:
    sys.exit(0)

"""Lambda's Runtime API (https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html) for one process on this machine.

The process asks for the next event, which waits until there is one, and sends what it answers: whole, or in pieces. An answer in pieces for API Gateway
begins with its status and headers as JSON and eight zero bytes. API Gateway takes that apart; LocalStack's does not know it, so it is put together
here as a whole answer of the same content.
"""

import base64
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STREAMED = "application/vnd.awslambda.http-integration-response"
END_OF_HEAD = bytes(8)
# More than Lambda's own limit for a streamed answer; beyond that something is wrong.
MOST_BYTES = 256 << 20


def serve(executor):
    """Starts the API for an executor, at a free port of the loopback address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.executor = executor
    return server


def whole(body):
    """A streamed answer for API Gateway as one that is not. `ValueError` where it is none."""
    head, found, rest = body.partition(END_OF_HEAD)
    if not found:
        raise ValueError("a streamed answer without an end of its head")
    answer = json.loads(head)
    # A cookie each, as a header that stands several times.
    cookies = answer.pop("cookies", [])
    if cookies:
        answer.setdefault("multiValueHeaders", {})["set-cookie"] = cookies
    try:
        answer |= {"body": rest.decode(), "isBase64Encoded": False}
    except UnicodeDecodeError:
        answer |= {"body": base64.b64encode(rest).decode(), "isBase64Encoded": True}
    return json.dumps(answer).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Many small writes and one that waits for an acknowledgement are 40 ms.
    disable_nagle_algorithm = True

    def log_message(self, *_args):
        """Says nothing: what the function prints is the log."""

    def do_GET(self):
        if not self.path.endswith("/runtime/invocation/next"):
            self._send(404)
            return
        executor = self.server.executor
        event = executor.next_event()
        if event is None:
            self.close_connection = True
            self._send(410)
            return
        headers = {
            "Content-Type": "application/json",
            "Lambda-Runtime-Aws-Request-Id": event["invoke-id"],
            "Lambda-Runtime-Invoked-Function-Arn": event["invoked-function-arn"],
            "Lambda-Runtime-Trace-Id": event["trace-id"],
            "Lambda-Runtime-Deadline-Ms": str(event["deadline-ms"]),
        }
        try:
            self._send(200, event["payload"].encode(), headers)
        except OSError as error:
            executor.fail("Runtime.ExitError", f"the function took no event: {error}")

    def do_POST(self):
        executor = self.server.executor
        parts = self.path.split("?")[0].strip("/").split("/")[1:]
        try:
            body, failed = self._body()
            if self.headers.get("Content-Type") == STREAMED and not failed:
                body = whole(body)
        except (OSError, ValueError) as error:
            self._send(400)
            executor.fail("Runtime.BadAnswer", str(error))
            return
        self._send(202, b"{}", {"Content-Type": "application/json"})
        match parts:
            case ["runtime", "init", "error"]:
                executor.init_failed(body)
            case ["runtime", "invocation", request_id, outcome]:
                executor.answered(request_id, body, failed or outcome == "error")

    def _body(self):
        """What was sent, and whether the function says at its end that it failed meanwhile."""
        if "chunked" not in (self.headers.get("Transfer-Encoding") or "").lower():
            length = int(self.headers.get("Content-Length") or 0)
            return self.rfile.read(min(length, MOST_BYTES)), False
        body, failed = bytearray(), False
        while size := int(self.rfile.readline().split(b";")[0], 16):
            if len(body) + size > MOST_BYTES:
                raise ValueError(f"an answer of more than {MOST_BYTES} bytes")
            body += self.rfile.read(size)
            self.rfile.readline()
        while trailer := self.rfile.readline().strip():
            failed = failed or trailer.lower().startswith(b"lambda-runtime-function-error-type:")
        return bytes(body), failed

    def _send(self, status, body=b"", headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

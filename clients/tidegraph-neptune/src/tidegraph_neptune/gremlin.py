"""gremlin-python over HTTP, each request with its signature. API Gateway passes no WebSockets on to Tidegraph."""

from __future__ import annotations

import os
from typing import Any

import boto3
from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session
from gremlin_python.driver.client import Client
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.driver.serializer import GraphSONSerializersV3d0
from gremlin_python.driver.transport import AbstractBaseTransport

from .endpoint import Endpoint
from .signature import failure_of, raise_refusal, sign

# API Gateway gives up after less.
_LONGEST_S = 300


def connect(endpoint: Endpoint, session: boto3.Session | None, **options: Any) -> Client:
    """Returns a client of gremlin-python; `options` are those of its constructor."""
    options.setdefault("message_serializer", GraphSONSerializersV3d0())
    options["transport_factory"] = lambda: SignedTransport(endpoint, session)
    # gremlin-python chooses HTTP by the scheme.
    return Client(f"{endpoint.url}/gremlin", options.pop("traversal_source", "g"), **options)


class SignedTransport(AbstractBaseTransport):  # type: ignore[misc]
    """Sends a message of gremlin-python as one signed request, and keeps its answer until it is read."""

    def __init__(self, endpoint: Endpoint, session: boto3.Session | None) -> None:
        self._endpoint = endpoint
        self._session = session
        self._url = f"{endpoint.url}/gremlin"
        self._headers: dict[str, str] = {}
        self._http: URLLib3Session | None = None
        self._answer: Any = None

    def connect(self, url: str, headers: dict[str, str] | None = None) -> None:
        self._headers = dict(headers or {})
        # The variables that boto3 and requests read.
        bundle = os.environ.get("AWS_CA_BUNDLE") or os.environ.get("REQUESTS_CA_BUNDLE")
        self._http = URLLib3Session(verify=bundle or True, timeout=_LONGEST_S)

    def write(self, message: dict[str, Any]) -> None:
        if self._http is None:
            raise RuntimeError("the transport is closed")
        headers = {**self._headers, **message["headers"]}
        # The protocol writes this header in capitals.
        headers["Content-Type"] = headers.pop("CONTENT-TYPE", headers.get("Content-Type", "application/json"))
        body = message["payload"]
        headers = sign(self._endpoint, self._session, "POST", self._url, body, headers)
        request = AWSRequest(method="POST", url=self._url, data=body, headers=headers)
        self._answer = self._http.send(request.prepare())

    def read(self) -> dict[str, Any]:
        answer, self._answer = self._answer, None
        if answer is None:
            raise RuntimeError("there is no answer to read")
        status, body = int(answer.status_code), bytes(answer.content)
        if status >= 400:
            raise_refusal(status, body)
            # gremlin-python would look for the id of its own request, which an answer of API Gateway has not.
            message = ": ".join(part for part in failure_of(body) if part)
            raise GremlinServerError({"code": status, "message": message, "attributes": {}})
        return {"content": body, "ok": True, "status": status}

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None

    @property
    def closed(self) -> bool:
        return self._http is None

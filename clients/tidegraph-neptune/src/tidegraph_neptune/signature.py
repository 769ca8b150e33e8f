"""Signatures for API Gateway, and what its refusals mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import NoCredentialsError

from .endpoint import Endpoint

# The name under which API Gateway takes signatures.
SERVICE = "execute-api"

# Parts of what API Gateway says, and what to do about it. It says these before a request reaches Tidegraph.
_ADVICE = (
    ("security token included in the request is expired", "sign in again (`aws sso login`), or take new credentials"),
    (
        "security token included in the request is invalid",
        "AWS does not know these credentials: look at the profile, and whether the session token is that of the access key",
    ),
    ("scoped to a valid region", "pass the region of the API as region="),
    ("signature expired", "the clock of this machine is wrong, or the request took minutes to leave it"),
    ("signature not yet current", "the clock of this machine is wrong"),
    ("signature we calculated does not match", "the secret key does not belong to the access key"),
    (
        "is not authorized to",
        "the caller needs a policy that allows execute-api:Invoke (`grantQuery` of the deployment)",
    ),
    ("missing authentication token", "look at the URL: API Gateway says this also of a stage that does not exist"),
)


class RequestRefused(Exception):
    """API Gateway refused a request: its status, its message, and what to do about it."""

    def __init__(self, status: int, message: str, advice: str) -> None:
        super().__init__(f"API Gateway refused the request with {status}: {message} ({advice})")
        self.status = status
        self.message = message
        self.advice = advice


def sign(
    endpoint: Endpoint,
    session: boto3.Session | None,
    method: str,
    url: str,
    body: bytes | str | None,
    headers: Mapping[str, str],
) -> dict[str, str]:
    """Returns `headers` with those of a signature for a request to `url`, which has to be a URL of the API.

    Raises `NoCredentialsError` of botocore if the session finds no credentials. botocore refreshes credentials that
    expire where it can.
    """
    credentials = (session or boto3.DEFAULT_SESSION or boto3.Session()).get_credentials()
    if credentials is None:
        raise NoCredentialsError
    # Proxies may change other headers on the way.
    signed = {name: value for name, value in headers.items() if name.lower() == "content-type"}
    request = AWSRequest(method=method, url=url, data=body or b"", headers=signed)
    SigV4Auth(credentials.get_frozen_credentials(), SERVICE, endpoint.region).add_auth(request)
    return {**headers, **dict(request.headers.items())}


def raise_refusal(status: int, body: bytes) -> None:
    """Raises `RequestRefused` if API Gateway, and not Tidegraph, refused the request; returns for all other answers."""
    if status != 403:
        return
    _, message = failure_of(body)
    for part, advice in _ADVICE:
        if part in message.lower():
            raise RequestRefused(status, message, advice)


def failure_of(body: bytes) -> tuple[str, str]:
    """Returns code and message of a failed request. An answer of something else has its beginning as the message."""
    try:
        answer: Any = json.loads(body)
    except ValueError:
        answer = None
    found = answer if isinstance(answer, dict) else {}
    code = str(found.get("code", ""))
    for name in ("detailedMessage", "message", "Message"):
        if isinstance(found.get(name), str):
            return code, str(found[name])
    return code, body[:500].decode(errors="replace")

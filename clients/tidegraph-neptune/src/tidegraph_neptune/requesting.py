"""Requests of clients that prepare them with `requests`: awswrangler and graph-notebook."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import boto3
import requests

from .endpoint import Endpoint
from .signature import raise_refusal, sign


def prepare(
    endpoint: Endpoint, session: boto3.Session | None, method: str, url: str, data: Any, params: Any, headers: Any
) -> requests.PreparedRequest:
    """Returns the request as it leaves, for the API and with its signature.

    Its answer raises `RequestRefused` if API Gateway refuses it.
    """
    url = endpoint.place(url)
    if params:
        # `requests` would write a space as `+`, which a signature must not have.
        query = urlencode(params, quote_via=quote, doseq=True)
        url = f"{url}{'&' if '?' in url else '?'}{query}"
    prepared = requests.Request(method=method, url=url, data=data, headers=headers).prepare()
    prepared.headers.update(sign(endpoint, session, method, str(prepared.url), prepared.body, prepared.headers))
    prepared.register_hook("response", _refuse)
    return prepared


def _refuse(answer: requests.Response, **_: Any) -> None:
    raise_refusal(answer.status_code, answer.content)

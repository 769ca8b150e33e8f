"""Changes clients of Neptune, one by one or all of a process.

Each has one place where it signs: boto3 tells its hooks before it does, awswrangler and graph-notebook have a method.
That place is changed for requests to the host of a registered API, and stays as it is for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
from botocore import handlers

from .endpoint import Endpoint
from .signature import SERVICE

if TYPE_CHECKING:
    from gremlin_python.driver.client import Client

_T = TypeVar("_T")
# The events of botocore before a request of Neptune's two APIs is signed.
_EVENTS = ("before-sign.neptunedata", "before-sign.neptune-graph")
_registered: list[Endpoint] = []
_installed: set[str] = set()


def register(url: str, *, region: str | None = None, session: boto3.Session | None = None) -> Endpoint:
    """Makes the clients of this process sign what they send to the API at `url`.

    boto3: clients of sessions that are made afterwards, of the default session, and of `session`. awswrangler and
    graph-notebook, if they are installed: all clients. Call it once, before the clients are made; calls for further APIs add
    these.

    Raises `ValueError` if `url` is no URL of an API (`Endpoint.parse`).
    """
    endpoint = Endpoint.parse(url, region)
    if endpoint not in _registered:
        _registered.append(endpoint)
    for name, change in (("awswrangler", _change_awswrangler), ("graph_notebook", _change_graph_notebook)):
        if name not in _installed and find_spec(name) is not None:
            change()
            _installed.add(name)
    _change_boto3(session)
    if "graph_notebook" in _installed:
        _allow_host(endpoint.host)
    return endpoint


def attach(client: _T, url: str, *, region: str | None = None) -> _T:
    """Makes one client sign what it sends to the API at `url`, and returns it.

    The client is one of boto3 (`neptunedata`, `neptune-graph`), awswrangler (`wr.neptune.connect`) or graph-notebook
    (`ClientBuilder`), made with the host of the API.

    Raises `ValueError` if `url` is no URL of an API, and `TypeError` for another client.
    """
    endpoints = (Endpoint.parse(url, region),)
    target: Any = client
    kind = type(target).__module__
    if hasattr(target, "meta") and hasattr(target.meta, "events"):
        for event in _EVENTS:
            target.meta.events.register(event, _hook(endpoints), unique_id=f"tidegraph-{event}-{url}")
    elif kind.startswith("awswrangler."):
        _bind(target, _awswrangler_methods(type(target), endpoints))
    elif kind.startswith("graph_notebook."):
        _bind(target, _graph_notebook_methods(type(target), endpoints))
        target.neptune_hosts = [*target.neptune_hosts, endpoints[0].host]
    else:
        raise TypeError(f"{type(target).__qualname__} is no client of boto3, awswrangler or graph-notebook")
    return client


def gremlin_client(
    url: str, *, region: str | None = None, session: boto3.Session | None = None, **options: Any
) -> Client:
    """Returns a client of gremlin-python for the API at `url`, which sends signed requests over HTTP.

    `options` are those of `gremlin_python.driver.client.Client`. `DriverRemoteConnection` of gremlin-python uses
    WebSocket, which API Gateway does not pass on.

    Raises `ValueError` if `url` is no URL of an API.
    """
    from .gremlin import connect

    return connect(Endpoint.parse(url, region), session, **options)


def _find(endpoints: Iterable[Endpoint], url: str) -> Endpoint | None:
    return next((endpoint for endpoint in endpoints if endpoint.covers(url)), None)


def _hook(endpoints: Iterable[Endpoint]) -> Callable[..., None]:
    """Returns the hook of botocore that moves a request to the API and names the service that it is signed for."""

    def sign_for_api_gateway(request: Any, **_: Any) -> None:
        endpoint = _find(endpoints, request.url)
        if endpoint is not None:
            request.url = endpoint.place(request.url)
            signing = request.context.setdefault("signing", {})
            signing.update(signing_name=SERVICE, region=endpoint.region)

    return sign_for_api_gateway


def _change_boto3(session: boto3.Session | None) -> None:
    hook = _hook(_registered)
    if "boto3" not in _installed:
        # What botocore registers in each new session.
        handlers.BUILTIN_HANDLERS.extend((event, hook) for event in _EVENTS)
        _installed.add("boto3")
    for made in (boto3.DEFAULT_SESSION, session):
        if made is not None:
            for event in _EVENTS:
                made.events.register(event, hook, unique_id=f"tidegraph-{event}")


def _bind(target: Any, methods: dict[str, Callable[..., Any]]) -> None:
    for name, method in methods.items():
        setattr(target, name, method.__get__(target))


def _change_awswrangler() -> None:
    from awswrangler.neptune._client import NeptuneClient

    for name, method in _awswrangler_methods(NeptuneClient, _registered).items():
        setattr(NeptuneClient, name, method)


def _awswrangler_methods(kind: Any, endpoints: Iterable[Endpoint]) -> dict[str, Callable[..., Any]]:
    """Returns the methods of awswrangler's client that prepare a request and connect to `/gremlin`."""
    from . import requesting

    prepare, connect = kind._prepare_request, kind._get_gremlin_connection

    def _prepare_request(
        self: Any, method: str, url: str, *, data: Any = None, params: Any = None, headers: Any = None, **more: Any
    ) -> Any:
        endpoint = _find(endpoints, url)
        if endpoint is None:
            return prepare(self, method, url, data=data, params=params, headers=headers, **more)
        return requesting.prepare(endpoint, self.boto3_session, method, url, data, params, headers)

    def _get_gremlin_connection(self: Any, headers: Any = None) -> Any:
        endpoint = _find(endpoints, f"https://{self.host}:{self.port}")
        if endpoint is None:
            return connect(self, headers)
        if self.gremlin_connection is None:
            from . import gremlin

            self.gremlin_connection = gremlin.connect(endpoint, self.boto3_session, headers=headers)
        return self.gremlin_connection

    return {"_prepare_request": _prepare_request, "_get_gremlin_connection": _get_gremlin_connection}


def _change_graph_notebook() -> None:
    from graph_notebook.neptune.client import Client

    for name, method in _graph_notebook_methods(Client, _registered).items():
        setattr(Client, name, method)


def _graph_notebook_methods(kind: Any, endpoints: Iterable[Endpoint]) -> dict[str, Callable[..., Any]]:
    """Returns the methods of graph-notebook's client that prepare a request, and that connect to Gremlin and Bolt."""
    from . import requesting

    prepare, connect, bolt = kind._prepare_request, kind.get_gremlin_connection, kind.get_opencypher_driver

    def _prepare_request(
        self: Any, method: str, url: str, *, data: Any = None, params: Any = None, headers: Any = None, **more: Any
    ) -> Any:
        endpoint = _find(endpoints, url)
        if endpoint is None:
            return prepare(self, method, url, data=data, params=params, headers=headers, **more)
        self._ensure_http_session()
        return requesting.prepare(endpoint, self._session, method, url, data, params, headers)

    def get_gremlin_connection(self: Any, transport_kwargs: Any) -> Any:
        endpoint = _find(endpoints, self.get_uri())
        if endpoint is None:
            return connect(self, transport_kwargs)
        from . import gremlin

        return gremlin.connect(endpoint, self._session)

    def get_opencypher_driver(self: Any) -> Any:
        endpoint = _find(endpoints, self.get_uri())
        if endpoint is not None:
            raise ValueError(f"API Gateway does not pass on Bolt to {endpoint.url}: use %%oc without bolt")
        return bolt(self)

    return {
        "_prepare_request": _prepare_request,
        "get_gremlin_connection": get_gremlin_connection,
        "get_opencypher_driver": get_opencypher_driver,
    }


def _allow_host(host: str) -> None:
    """Makes graph-notebook treat the host as Neptune's. Clients and magics take the list when they are made."""
    from graph_notebook.neptune import client

    if host not in client.NEPTUNE_CONFIG_HOST_IDENTIFIERS:
        client.NEPTUNE_CONFIG_HOST_IDENTIFIERS.append(host)

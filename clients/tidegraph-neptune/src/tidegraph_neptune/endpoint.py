"""The URL of an API, and which requests of clients are for it."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

# The port that Neptune's clients choose if they are told none.
NEPTUNE_PORT = 8182

_API_HOST = re.compile(r"[^.]+\.execute-api\.([a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)")
_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+")
_DEFAULT_PORTS = {"https": 443, "wss": 443, "http": 80, "ws": 80}


@dataclass(frozen=True)
class Endpoint:
    """An API: its URL with the stage and without a slash at the end, and the region that its signatures name."""

    url: str
    region: str

    @classmethod
    def parse(cls, url: str, region: str | None = None) -> Endpoint:
        """Reads the URL that the output `Endpoint` of a deployment has.

        `region` is needed for a domain name of your own, which does not tell the region.

        Raises `ValueError` if this is no URL of an API, or if the region is missing or another one than the URL's.
        """
        parts = _split(url)
        host = parts.hostname or ""
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            # Not the whole URL: it may have a password.
            raise ValueError(f"the URL of the API on {host} must end after its path, and have no user")
        if parts.scheme not in ("http", "https") or not host:
            raise ValueError(f"{url!r} is not an https:// URL")
        if parts.scheme == "http" and not _is_loopback(host):
            raise ValueError(f"{url!r} must begin with https://; http:// is for servers on this machine")
        path = parts.path.rstrip("/")
        named = _API_HOST.fullmatch(host)
        if named and not path:
            raise ValueError(f"{url!r} lacks the stage of the API, such as /graph")
        if named and region is not None and region != named[1]:
            raise ValueError(f"{url!r} is in the region {named[1]}, not in {region!r}")
        if named:
            region = named[1]
        if region is None:
            raise ValueError(f"{url!r} does not name its region; pass region=")
        if not _REGION.fullmatch(region):
            raise ValueError(f"{region!r} is not the name of a region, such as eu-central-1")
        return cls(f"{parts.scheme}://{parts.netloc}{path}", region)

    @property
    def host(self) -> str:
        """The name of the host, without a port."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The port, also where the URL names none."""
        return _port(urlsplit(self.url))

    def covers(self, url: str) -> bool:
        """Returns whether a request to `url` is for this API.

        Only host and port count. Over HTTPS a client may also have Neptune's port, where API Gateway serves nothing.
        """
        parts = urlsplit(url)
        ports = {self.port, NEPTUNE_PORT} if self.url.startswith("https:") else {self.port}
        return parts.hostname == self.host and _port(parts) in ports

    def place(self, url: str) -> str:
        """Returns the URL of the API for a URL that a client made of host and port: with the stage and the API's port."""
        parts, base = urlsplit(url), urlsplit(self.url)
        path = parts.path
        if path != base.path and not path.startswith(f"{base.path}/"):
            path = base.path + path
        return parts._replace(scheme=base.scheme, netloc=base.netloc, path=path).geturl()


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        # Both are read later; a wrong port shows only here.
        _ = parts.port, parts.hostname
    except ValueError as error:
        raise ValueError(f"the URL of the API cannot be read: {error}") from None
    return parts


def _port(parts: SplitResult) -> int:
    return parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

"""Requests to the OpenID provider. The library requests limits the time of each read, but neither that of an answer nor
its size: a provider that sends slowly or without end would keep a thread and fill the memory."""

from io import BytesIO
from socket import SHUT_RDWR
from threading import Timer
from time import monotonic
from typing import Any

import requests
from authlib.integrations.django_client import DjangoOAuth2App
from authlib.integrations.requests_client import OAuth2Session
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.exceptions import HTTPError

SECONDS = 10.0
"""Maximum time to connect, between two parts of an answer, to read its head, and to read its body."""
ANSWER_BYTES = 1_000_000
"""Maximum bytes of an answer, unpacked."""
_PART = 65_536


def _bounded(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    """Return a class of connection pools whose connections are closed if the head of an answer takes too long."""

    class Connection(pool.ConnectionCls):  # type: ignore[misc, name-defined]  # a class made at run time
        def getresponse(self) -> Any:
            closing = Timer(SECONDS, self.sock.shutdown, [SHUT_RDWR])
            closing.daemon = True
            closing.start()
            try:
                return super().getresponse()
            finally:
                closing.cancel()

    return type("Pool", (pool,), {"ConnectionCls": Connection})


def _bound(manager: PoolManager) -> None:
    pools = manager.pool_classes_by_scheme  # those of SOCKS differ
    manager.pool_classes_by_scheme = {scheme: _bounded(pool) for scheme, pool in pools.items()}


class _Adapter(HTTPAdapter):
    """Reads each answer within the limits, also the body of a redirect, which the session discards."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        _bound(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        known = proxy in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **options)
        if not known:
            _bound(manager)
        return manager

    def send(self, *args: Any, **options: Any) -> requests.Response:
        """Raises requests.RequestException."""
        response = super().send(*args, **options)
        try:
            response.raw = BytesIO(_body(response))
        except HTTPError as error:
            raise requests.ConnectionError(f"the answer ended early ({type(error).__name__})") from None
        return response


def _body(response: requests.Response) -> bytes:
    raw, body, until = response.raw, bytearray(), monotonic() + SECONDS
    try:
        while part := raw.read1(_PART, decode_content=True):
            body += part
            if len(body) > ANSWER_BYTES:
                raise requests.RequestException(f"the answer has more than {ANSWER_BYTES} bytes")
            if monotonic() > until:
                raise requests.Timeout(f"the answer took longer than {SECONDS:.0f} s")
    except BaseException:
        raw.close()
        raise
    raw.release_conn()
    return bytes(body)


class _Session(OAuth2Session):  # type: ignore[misc]  # authlib has no types
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter())


class BoundedApp(DjangoOAuth2App):  # type: ignore[misc]  # authlib has no types
    """authlib's client of a provider, with these limits."""

    client_cls = _Session

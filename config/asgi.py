"""The ASGI application that daphne, uvicorn and tests serve."""

import os
from collections.abc import Sequence
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)

from channels.routing import ProtocolTypeRouter

from config.serving.asgi_handler import HttpApplication
from gateway.routing import websocket_application

_MAX_TYPE = 255  # characters of a Content-Type
_application = ProtocolTypeRouter({"http": HttpApplication(), "websocket": websocket_application})


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request, a websocket or the server's lifespan events."""
    if "headers" in scope:
        scope = {**scope, "headers": _quickly_parsed(scope["headers"])}
    await _application(scope, receive, send)


def _quickly_parsed(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers without what Python parses in quadratic time on the event loop: backslashes in cookies (before
    Python 3.11.10 and 3.12.6; none of our cookies has any), and a long Content-Type. One with encoded parameters (RFC
    2231) is left out too, since they are decoded with any codec of Python."""
    kind = b",".join(value for name, value in headers if name == b"content-type")
    dropped = b"content-type" if len(kind) > _MAX_TYPE or b"*" in kind.partition(b";")[2] else b""
    return [
        (name, value.replace(b"\\", b"") if name == b"cookie" else value) for name, value in headers if name != dropped
    ]

"""The ASGI application that daphne, uvicorn and tests serve."""

import os
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)

from channels.routing import ProtocolTypeRouter

from config.serving.asgi_handler import HttpApplication
from gateway.routing import websocket_application

_application = ProtocolTypeRouter({"http": HttpApplication(), "websocket": websocket_application})


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request, a websocket or the server's lifespan events."""
    headers = scope.get("headers", ())
    # Python before 3.11.10 and 3.12.6 takes quadratic time for backslashes in a cookie. None of our cookies has any.
    if any(name == b"cookie" and b"\\" in value for name, value in headers):
        plain = [(name, value.replace(b"\\", b"") if name == b"cookie" else value) for name, value in headers]
        scope = {**scope, "headers": plain}
    await _application(scope, receive, send)

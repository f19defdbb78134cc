"""Routes websockets. A browser may open one from a page of this host, a client without Origin with a key."""

from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.urls import path, re_path

from gateway.consumers import NotificationConsumer
from gateway.requests import origin_allowed


class OriginCheck:
    """Admits this host, trusted origins, and clients without Origin, which need a key (checked by the consumer).
    Channels' own validator admits everything if ALLOWED_HOSTS is `*`, and rejects clients without Origin."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        headers = dict(scope.get("headers", []))
        origin, host = headers.get(b"origin", b"").decode("latin1"), headers.get(b"host", b"").decode("latin1")
        if not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
            return await WebsocketDenier()(scope, receive, send)
        if not origin:
            # Not a browser, so a cookie is not accepted.
            scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"cookie"]}
        elif not origin_allowed(origin, host):
            return await WebsocketDenier()(scope, receive, send)
        return await self.application(scope, receive, send)


async def _use_http(scope: Any, receive: Any, send: Any) -> None:
    """Answer 426, after which Codex uses HTTP at once; it repeats any other refusal for seconds, in each turn."""
    if "websocket.http.response" not in scope.get("extensions", ()):  # Daphne
        await WebsocketDenier()(scope, receive, send)
        return
    await send({"type": "websocket.http.response.start", "status": 426})
    await send({"type": "websocket.http.response.body", "body": b"There are no websockets here. Use HTTP."})


websocket_routes = [path("ws/notifications/", NotificationConsumer.as_asgi())]  # type: ignore[arg-type]  # channels' way
_v1 = re_path("^v1/", _use_http)  # type: ignore[arg-type]
_elsewhere = re_path("", WebsocketDenier.as_asgi())  # type: ignore[arg-type]  # otherwise channels raises
websocket_application = OriginCheck(AuthMiddlewareStack(URLRouter([*websocket_routes, _v1, _elsewhere])))  # type: ignore[list-item]

"""HTTP under ASGI: pages go through Django's handler, API requests through a slimmer one.

Django's handler gives each request a thread of its own, runs three synchronous signal receivers in it and closes the
response there. An API request of ours touches the ORM only in the long-lived database threads, which look after their
own connections, so it needs none of that: the same Django, without the hops."""

import asyncio
import contextlib
import io
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings
from django.core.handlers.asgi import ASGIHandler, ASGIRequest, get_script_prefix
from django.http import HttpResponseBase
from django.urls import set_script_prefix

from gateway.api.errors import error_response
from gateway.requests import is_api
from memories.errors import InvalidRequest, TooLarge

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class _Disconnected(Exception):
    pass


class HttpApplication:
    """Chooses the handler by path; both share one loaded middleware chain."""

    def __init__(self) -> None:
        self.pages = ASGIHandler()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_api(scope["path"]):
            await self._api(scope, receive, send)
        else:
            await self.pages(scope, receive, send)

    async def _api(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await _read_body(receive)
        except _Disconnected:
            return
        except TooLarge as error:
            await _send_response(error_response(error), send)
            return
        set_script_prefix(get_script_prefix(scope))
        try:
            request = ASGIRequest(scope, io.BytesIO(body))
        except UnicodeDecodeError:
            await _send_response(error_response(InvalidRequest("The address is not valid UTF-8.")), send)
            return
        answering = asyncio.create_task(self._answer(request, send))
        watching = asyncio.create_task(_disconnect(receive))
        try:
            await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                answering.cancel()  # the client is gone: the view ends its upstream request and closes the run
            await answering
        except asyncio.CancelledError:
            if not answering.done():  # we are cancelled ourselves (shutdown)
                answering.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await answering
                raise
        finally:
            watching.cancel()

    async def _answer(self, request: ASGIRequest, send: Send) -> None:
        response = await self.pages.get_response_async(request)
        await _send_response(response, send)


async def _read_body(receive: Receive) -> bytes:
    pieces, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Disconnected
        piece = message.get("body", b"")
        size += len(piece)
        if size > settings.DAYBOOK_MAX_BODY:
            raise TooLarge(f"A request has at most {settings.DAYBOOK_MAX_BODY} bytes.", limit=settings.DAYBOOK_MAX_BODY)
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_response(response: HttpResponseBase, send: Send) -> None:
    headers = [(name.encode("ascii"), str(value).encode("latin1")) for name, value in response.items()]
    if not response.streaming and not response.has_header("Content-Length"):
        headers.append((b"Content-Length", str(len(response.content)).encode("ascii")))  # type: ignore[attr-defined]
    headers += [(b"Set-Cookie", cookie.OutputString().encode("ascii")) for cookie in response.cookies.values()]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    if not response.streaming:
        await send({"type": "http.response.body", "body": response.content})  # type: ignore[attr-defined]
        return
    # Closing the generator here, and not when it is collected, is what ends the upstream request at once.
    async with contextlib.aclosing(response.streaming_content) as pieces:  # type: ignore[attr-defined]
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})

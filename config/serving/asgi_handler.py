"""HTTP under ASGI: pages use Django's handler, API requests a smaller one.

Django's handler uses a thread for each request, in which it runs three synchronous signal receivers and closes the
response. API requests use the ORM only in the long-lived database threads, which manage their own connections, so they
do not need that."""

import asyncio
import contextlib
import io
from functools import cached_property
from typing import Any

from corsheaders.middleware import CorsMiddleware
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIHandler, ASGIRequest, get_script_prefix
from django.db import OperationalError, ProgrammingError
from django.http import HttpResponse, HttpResponseBase
from django.http.request import HttpHeaders
from django.urls import set_script_prefix

from config.serving.bodies import SMALL_BYTES, Disconnected, Receive, Scope, Send, body_of, has_body
from config.serving.middleware import HOST_REFUSED, RequestBoundary, asks_for_headers, refused_page
from gateway.api.body_parser import parse_ahead
from gateway.api.errors import as_domain_error, error_response
from gateway.oauth.addresses import RESOURCE_PATH, challenge
from gateway.requests import OPERATIONS, is_api
from gateway.runs import active
from gateway.sse import EventStream
from memories.errors import DomainError, InvalidRequest, Unauthorized

_cors = CorsMiddleware(lambda request: HttpResponse())


class HttpApplication:
    """Chooses the handler by path; both share one middleware chain."""

    def __init__(self) -> None:
        self.pages = ASGIHandler()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Bodies are read here, since Django would read that of a page before checking anything."""
        api = is_api(scope["path"])
        if not api and not has_body(scope):
            await self.pages(scope, receive, send)
            return
        async with contextlib.AsyncExitStack() as stack:
            try:
                body = await stack.enter_async_context(body_of(scope, receive))
                request = _request(scope, body) if api else None
            except Disconnected:
                return
            except (DomainError, OperationalError, ProgrammingError) as error:
                refusal = as_domain_error(error)
                await _send_response(_refused(refusal, scope) if api else refused_page(refusal), send)
                return
            if request is not None:
                await self._answer_while_connected(request, receive, send)
            else:
                await self.pages(scope, _replayed(body, receive), send)

    async def _answer_while_connected(self, request: ASGIRequest, receive: Receive, send: Send) -> None:
        answering = asyncio.create_task(self._answer(request, send))
        watching = asyncio.create_task(_disconnect(receive))
        try:
            await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                answering.cancel()  # the client disconnected: the view ends its upstream request and closes the run
            await answering
        except asyncio.CancelledError:
            if not answering.done():  # this task was cancelled (shutdown)
                answering.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await answering
                    return  # it has said so
                raise
        finally:
            watching.cancel()

    async def _answer(self, request: ASGIRequest, send: Send) -> None:
        try:
            if len(request.body) > SMALL_BYTES:
                await parse_ahead(request)
            response = await self.pages.get_response_async(request)
        except OperationalError as error:  # of parse_ahead: no thread became free
            RequestBoundary.enter(request)
            response = _error_answer(as_domain_error(error), request)
        except asyncio.CancelledError:
            if not active.is_ending():  # the client disconnected
                raise
            response = _error_answer(active.restarting(), request)
        await _send_response(response, send, whole=not asks_for_headers(request))


class _Headers(HttpHeaders):
    def get(self, key: str, default: Any = None) -> Any:
        """Return a header. The inherited method raises and catches an error for each missing header, and a turn looks
        for some twenty that most clients do not send."""
        _, value = self._store.get(key.replace("_", "-").lower(), (key, default))
        return value


class _ApiRequest(ASGIRequest):
    @cached_property
    def headers(self) -> HttpHeaders:
        return _Headers(self.META)


def _request(scope: Scope, body: bytes) -> ASGIRequest:
    """Raises InvalidRequest for an invalid path or host."""
    try:
        set_script_prefix(get_script_prefix(scope))
        request = _ApiRequest(scope, io.BytesIO(body))
        if not request.path_info.startswith(OPERATIONS):
            request.get_host()  # raises DisallowedHost, as for every page
    except UnicodeDecodeError:
        raise InvalidRequest("The address is not valid UTF-8.") from None
    except DisallowedHost:
        raise InvalidRequest(HOST_REFUSED) from None
    return request


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first returns a body, which was already read, as one message."""
    read = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def replayed() -> dict[str, Any]:
        return next(read, None) or await receive()

    return replayed


def _refused(error: DomainError, scope: Scope) -> HttpResponseBase:
    """Return the answer to an API request that was refused before the middlewares were called."""
    request = ASGIRequest({**scope, "query_string": b""}, io.BytesIO())  # the query may be invalid
    RequestBoundary.enter(request)
    response = _error_answer(error, request)
    if response.status_code == Unauthorized.http_status and request.path_info.startswith(RESOURCE_PATH):
        with contextlib.suppress(DisallowedHost):  # the challenge needs the host
            response["WWW-Authenticate"] = challenge(request)
    return response


def _error_answer(error: DomainError, request: ASGIRequest) -> HttpResponseBase:
    """Return the answer to an API request with the headers that the middlewares would add."""
    response = error_response(error, request.path_info, request.headers)
    _cors.add_response_headers(request, response)
    return RequestBoundary.leave(request, response)


async def _send_response(response: HttpResponseBase, send: Send, *, whole: bool = True) -> None:
    headers = [(name.encode("ascii"), str(value).encode("latin1")) for name, value in response.items()]
    if not response.streaming and not response.has_header("Content-Length"):
        headers.append((b"Content-Length", str(len(response.content)).encode("ascii")))  # type: ignore[attr-defined]
    headers += [(b"Set-Cookie", cookie.OutputString().encode("ascii")) for cookie in response.cookies.values()]
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    if not response.streaming:
        await send(start)
        await send({"type": "http.response.body", "body": response.content})  # type: ignore[attr-defined]
        return
    source: Any = response.source if isinstance(response, EventStream) else response.streaming_content  # type: ignore[attr-defined]
    # Closing the generator here, instead of when it is garbage collected, ends the upstream request at once.
    async with contextlib.aclosing(source) as pieces:
        await send(start)
        if whole:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})

"""Sends a request to a model server and returns OpenAI chunks, or one completion, as plain dictionaries.

The openai SDK carries the request, but its typed objects are not used, since a pydantic model for each chunk takes
longer than the rest of a turn. There is one client per upstream and process. Every fault is raised as one of the
gateway's errors."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import openai
from django.conf import settings

from gateway.demo.transport import DemoTransport
from gateway.errors import RequestRefused, UpstreamUnreachable
from gateway.upstream.adapted import AdaptedRequest
from gateway.upstream.answer import (
    CUT_OFF,
    DONE,
    NO_CHOICE,
    Body,
    Chunk,
    Events,
    Lines,
    choices_of,
    chunk_of_completion,
    is_finished,
    is_whole,
    says_something,
    usual,
)
from gateway.upstream.client import UpstreamClient
from gateway.upstream.collected import Collected
from gateway.upstream.dialects import Dialect, dialect_of
from gateway.upstream.faults import NO_KEY, WIRE_ERRORS, domain_error, refuses_to_stream
from gateway.upstream.in_process import IN_PROCESS, EmbeddingTransport
from gateway.upstream.known import Known, known
from gateway.upstream.request import Deadlines, ModelRequest
from memories.errors import DomainError, InvalidRequest
from memories.limits import VECTOR_BYTES

# Servers commonly drop an idle connection after 5 s; ours must be the side that gives it up.
_KEEP_ALIVE = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=4.0)
T = TypeVar("T")


class OpenAIModel:
    """The models of OpenAI-compatible servers, and those in this process that are reached the same way: the demo model
    and an embedding model."""

    def __init__(self, known: Known = known) -> None:
        self._clients: dict[str, tuple[asyncio.AbstractEventLoop, UpstreamClient]] = {}
        self._known = known

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        adapted = AdaptedRequest(request, self._known, stream=True)
        deadlines, custom = Deadlines(request, adapted.dialect), adapted.custom_calls()
        said = False
        while True:
            try:
                async with (
                    self._opened(adapted, deadlines) as response,
                    aclosing(_chunks(response, deadlines, alone=request.alone)) as chunks,
                ):
                    async for chunk in chunks:
                        said = True
                        if deadlines.begun:
                            adapted.helped()
                        yield custom.taken(chunk)
                if held := custom.rest():
                    yield held
                return
            except DomainError as fault:
                if not said and adapted.again(fault):
                    continue
                if said or not refuses_to_stream(fault):
                    raise
                break
        adapted.stream = False
        yield custom.taken(chunk_of_completion(await self._completion(adapted, deadlines)))
        if held := custom.rest():
            yield held

    async def complete(self, request: ModelRequest) -> dict[str, Any]:
        adapted = AdaptedRequest(request, self._known, stream=False)
        answer = await self._completion(adapted, Deadlines(request, adapted.dialect))
        return adapted.custom_calls().completion(answer)

    async def passed(self, request: ModelRequest) -> bytes:
        adapted = AdaptedRequest(request, self._known, stream=False)
        deadlines = Deadlines(request, adapted.dialect)
        return await _accepted(adapted, lambda: self._whole(adapted, deadlines, Body.passed, Body(VECTOR_BYTES)))

    async def close(self) -> None:
        """Close the connections of this loop's clients; the next request makes new ones."""
        loop = asyncio.get_running_loop()
        for name, (owner, client) in list(self._clients.items()):
            if owner is loop:
                del self._clients[name]
                await client.close()

    async def _completion(self, adapted: AdaptedRequest, deadlines: Deadlines) -> dict[str, Any]:
        def ask() -> Coroutine[Any, Any, dict[str, Any]]:
            if adapted.streams:
                return self._collected(adapted, deadlines)
            return self._whole(adapted, deadlines, Body.completion, Body())

        return usual(await _accepted(adapted, ask), alone=adapted.request.alone)

    async def _collected(self, adapted: AdaptedRequest, deadlines: Deadlines) -> dict[str, Any]:
        deadlines.whole = deadlines.begun = deadlines.finished = False
        collected = Collected()
        async with (
            self._opened(adapted, deadlines) as response,
            aclosing(_chunks(response, deadlines, alone=adapted.request.alone)) as chunks,
        ):
            async for chunk in chunks:
                collected.take(chunk)
        return collected.completion()

    async def _whole(
        self, adapted: AdaptedRequest, deadlines: Deadlines, read: Callable[[Body, httpx2.Request], T], body: Body
    ) -> T:
        deadlines.whole, deadlines.begun = True, False
        async with self._opened(adapted, deadlines) as response, aclosing(_pieces(response, deadlines)) as pieces:
            async for data in pieces:
                deadlines.begun = True
                body.feed(data)
            return read(body, response.request)

    @asynccontextmanager
    async def _opened(self, adapted: AdaptedRequest, deadlines: Deadlines) -> AsyncGenerator[httpx2.Response]:
        """Yield the response to a request with its body not yet read, and close it in the end. Faults until then are
        raised as the gateway's errors."""
        client = self._client(adapted.request.upstream)
        dialect = adapted.dialect
        # Headers of a dialect are given with each request, since the dialect may change while a client is in use.
        asked = client.opened(
            adapted.request.path,
            adapted.body(),
            headers={**dialect.headers_with(client.api_key), **adapted.request.headers()},
            query=dict(dialect.query),
            limits=_timeout(dialect),
        )
        response: httpx2.Response | None = None
        try:
            async with asyncio.timeout_at(deadlines.next()):
                with adapted.request.span.current():
                    response = await asked
            yield response
        except TimeoutError:
            raise deadlines.fault() from None
        except WIRE_ERRORS as error:
            raise domain_error(error) from error
        finally:
            if response is not None:
                await response.aclose()

    def _client(self, upstream: str) -> UpstreamClient:
        loop = asyncio.get_running_loop()
        found = self._clients.get(upstream)
        if found is None or found[0] is not loop:
            found = self._clients[upstream] = (loop, _make_client(upstream))
        return found[1]


async def _accepted(adapted: AdaptedRequest, ask: Callable[[], Awaitable[T]]) -> T:
    """Return an answer in one piece; the request is repeated with changes if it is refused."""
    while True:
        try:
            answer = await ask()
        except RequestRefused as refusal:
            if not adapted.again(refusal):
                raise
        else:
            adapted.helped()
            return answer


async def _pieces(response: httpx2.Response, deadlines: Deadlines) -> AsyncGenerator[bytes]:
    """Yield the bytes of a body as they arrive. What goes wrong after the end of an answer ends the body. Raises
    UpstreamSilent, UpstreamTimeout."""
    body = response.aiter_bytes()
    while True:
        try:
            async with asyncio.timeout_at(deadlines.next()):
                data = await anext(body, None)
            if deadlines.over:  # nothing times out where there is always more to read
                raise TimeoutError
        except TimeoutError:
            if deadlines.finished:
                return
            raise deadlines.fault() from None
        except WIRE_ERRORS:
            if deadlines.finished:
                return
            raise
        if data is None:
            return
        yield data


async def _chunks(response: httpx2.Response, deadlines: Deadlines, *, alone: bool) -> AsyncGenerator[Chunk]:
    """Yield the chunks of a streamed answer. Some servers answer with one JSON document instead; that is the only
    chunk. Raises DomainErrors, ValueError."""
    lines, events, document, answered = Lines(), Events(response.request, alone=alone), Body(), False
    async with aclosing(_pieces(response, deadlines)) as pieces:
        async for data in pieces:
            for line in lines.feed(data):
                chunk = events.chunk_of(line)
                if chunk is None:
                    document.maybe(line)
                    continue
                if chunk is DONE:
                    if not answered:
                        raise UpstreamUnreachable(NO_CHOICE)
                    return
                if is_whole(chunk) and not deadlines.begun:
                    chunk = chunk_of_completion(chunk)
                answered = answered or bool(choices_of(chunk))
                deadlines.begun = deadlines.begun or says_something(chunk)
                deadlines.finished = deadlines.finished or is_finished(chunk)
                yield chunk
    if deadlines.finished:
        return
    document.maybe(lines.rest())
    if not document.begun:
        raise UpstreamUnreachable(CUT_OFF)
    yield usual(chunk_of_completion(document.completion(response.request)), alone=alone)


def is_demo() -> bool:
    """Return True if the built-in demo model answers: only while no upstream at all is configured."""
    return not settings.DAYBOOK_UPSTREAMS


def _make_client(upstream: str) -> UpstreamClient:
    if is_demo() and upstream == "default":
        return _client_in_process(DemoTransport())
    if settings.EMBEDDING_PATH and upstream == IN_PROCESS:
        return _client_in_process(EmbeddingTransport(settings.EMBEDDING_PATH))
    address = settings.DAYBOOK_UPSTREAMS.get(upstream)
    if address is None:
        raise InvalidRequest(missing_upstream(upstream))
    if settings.DAYBOOK_UPSTREAM_LOOPBACK_ONLY and not _is_loopback(address["url"]):
        raise RuntimeError("A test called a model server that is not on this machine.")
    timeout = _timeout(dialect_of(upstream))
    # No retries in the SDK: it would turn a time limit into a multiple of it. The caller decides about another try.
    return UpstreamClient(
        base_url=address["url"],
        api_key=address["key"] or NO_KEY,
        timeout=timeout,
        http_client=http_client(timeout),
    )


def _client_in_process(transport: httpx2.AsyncBaseTransport) -> UpstreamClient:
    """Return the client of a model in this process, which `transport` reaches; its address is never looked up."""
    return UpstreamClient(
        base_url="http://in-process.invalid/v1",
        api_key=NO_KEY,
        http_client=openai.DefaultAsyncHttpxClient(transport=transport),
    )


def _timeout(dialect: Dialect) -> openai.Timeout:
    """Return the time limits of the SDK. It has no limit for reading, since each request brings its own (Deadlines)."""
    return openai.Timeout(None, connect=dialect.connect_seconds or settings.UPSTREAM_CONNECT_SECONDS)


def http_client(timeout: openai.Timeout) -> httpx2.AsyncClient:
    """Return the client that carries the requests to one upstream."""
    return openai.DefaultAioHttpClient(timeout=timeout, limits=_KEEP_ALIVE)


def missing_upstream(upstream: str) -> str:
    """Return the message for an upstream that an agent names and nobody has configured."""
    if upstream == "default":
        return "The default upstream is not configured. Set OPENAI_BASE_URL or OPENAI_API_KEY."
    return f"No upstream is called {upstream}. Set DAYBOOK_UPSTREAM_{upstream.upper()}_URL."


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False

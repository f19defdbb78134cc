"""The client for OpenAI-compatible model servers. It yields OpenAI chunks, or returns one completion, as plain
dictionaries.

Requests are sent by the openai SDK without its typed objects: a pydantic model per chunk takes longer than the rest of
a turn. There is one SDK client per upstream and process. Every fault is raised as one of the gateway's errors."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar

import httpx2
import openai
from django.conf import settings

from gateway.demo.transport import DemoTransport
from gateway.errors import RequestRefused, UpstreamUnreachable
from gateway.upstream.adapted import AdaptedRequest
from gateway.upstream.answer import (
    Chunk,
    JSONDocument,
    chunk_of_completion,
    max_body_bytes,
    normalised,
)
from gateway.upstream.cache import UpstreamCache, upstream_cache
from gateway.upstream.client import UpstreamClient
from gateway.upstream.faults import NO_KEY, WIRE_ERRORS, connection_error, refusal_error, refuses_to_stream
from gateway.upstream.in_process import IN_PROCESS, EmbeddingTransport
from gateway.upstream.reading import beginning, chunks_of, collected, document_of, is_compressed, is_stream
from gateway.upstream.request import CHAT, ModelRequest
from gateway.upstream_options import UPSTREAM_NAME
from memories.errors import DomainError, InvalidRequest
from memories.limits import VECTOR_BYTES

COMPRESSED = (
    "The model server compressed its answer, although it was asked not to. Turn that off there or in its proxy."
)
# Servers commonly drop an idle connection after 5 s; we must close it first.
_KEEP_ALIVE = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=4.0)
T = TypeVar("T")


class OpenAIModel:
    """The models of OpenAI-compatible servers. The demo model and an embedding model in this process are reached the
    same way."""

    def __init__(self, cache: UpstreamCache = upstream_cache) -> None:
        self._clients: dict[str, tuple[asyncio.AbstractEventLoop, UpstreamClient]] = {}
        self._cache = cache

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        adapted = AdaptedRequest(request, self._cache, stream=True)
        started = False
        while True:
            try:
                async with self._opened(adapted) as response, aclosing(chunks_of(response, adapted)) as chunks:
                    async for chunk in chunks:
                        started = True
                        if adapted.deadlines.begun:
                            adapted.accepted()
                        yield chunk
                return
            except DomainError as fault:
                if not started and adapted.adapt_to(fault):
                    continue
                if started or not refuses_to_stream(fault):
                    raise
                break
        adapted.stream = False
        yield chunk_of_completion(await self._completion(adapted))

    async def complete(self, request: ModelRequest) -> dict[str, Any]:
        return await self._completion(AdaptedRequest(request, self._cache, stream=False))

    async def embeddings(self, request: ModelRequest) -> bytes:
        adapted = AdaptedRequest(request, self._cache, stream=False)

        async def ask() -> bytes:
            async with self._opened(adapted) as response:
                return await document_of(response, adapted, JSONDocument.embeddings, VECTOR_BYTES)

        return await _retried(adapted, ask)

    async def close(self) -> None:
        """Close the connections of this loop's clients; the next request makes new ones."""
        loop = asyncio.get_running_loop()
        for name, (owner, client) in list(self._clients.items()):
            if owner is loop:
                del self._clients[name]
                await client.close()

    async def _completion(self, adapted: AdaptedRequest) -> dict[str, Any]:
        async def ask() -> dict[str, Any]:
            async with self._opened(adapted) as response:
                if adapted.streams or (adapted.request.path == CHAT and is_stream(response)):
                    return await collected(response, adapted)
                return await document_of(response, adapted, JSONDocument.completion, max_body_bytes())

        return normalised(await _retried(adapted, ask), single_choice=adapted.request.single_choice)

    @asynccontextmanager
    async def _opened(self, adapted: AdaptedRequest) -> AsyncGenerator[httpx2.Response]:
        """Yield the response before its body is read, and close it at the end. Faults meanwhile are raised as the
        gateway's errors."""
        client = self._client(adapted.request.upstream)
        dialect, deadlines = adapted.dialect, adapted.deadlines
        deadlines.restart(whole=not adapted.streams)
        # A dialect's headers go with each request, since the dialect may change while the client is in use.
        sending = client.opened(
            adapted.request.path,
            adapted.body,
            is_long=adapted.request.is_long,
            headers={**dialect.headers_with(client.api_key), **adapted.request.headers()},
            query=dict(dialect.query),
            # Deadlines limits the rest of the time.
            limits=openai.Timeout(None, connect=dialect.connect_seconds or settings.UPSTREAM_CONNECT_SECONDS),
        )
        response: httpx2.Response | None = None
        refusal = b""
        try:
            async with asyncio.timeout_at(deadlines.next()):
                with adapted.request.span.current():
                    response = await sending
                    if not response.is_success:
                        refusal = await beginning(response)
            if not response.is_success:
                raise refusal_error(response, refusal)
            if is_compressed(response):
                raise UpstreamUnreachable(COMPRESSED)
            yield response
        except TimeoutError:
            raise deadlines.fault() from None
        except WIRE_ERRORS as error:
            raise connection_error(error, answered=response is not None) from error
        finally:
            if response is not None:
                await response.aclose()

    def _client(self, upstream: str) -> UpstreamClient:
        loop = asyncio.get_running_loop()
        found = self._clients.get(upstream)
        if found is None or found[0] is not loop:
            found = self._clients[upstream] = (loop, _make_client(upstream))
        return found[1]


async def _retried(adapted: AdaptedRequest, ask: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `ask`, repeating the request with changes if the server refuses it."""
    while True:
        try:
            answer = await ask()
        except RequestRefused as refusal:
            if not adapted.adapt_to(refusal):
                raise
        else:
            adapted.accepted()
            return answer


def is_demo() -> bool:
    """Return True if the built-in demo model answers, that is, if no upstream is configured."""
    return not settings.DAYBOOK_UPSTREAMS


def _make_client(upstream: str) -> UpstreamClient:
    transport: httpx2.AsyncBaseTransport
    if is_demo() and upstream == "default":
        transport = DemoTransport()
    elif settings.EMBEDDING_PATH and upstream == IN_PROCESS:
        transport = EmbeddingTransport(settings.EMBEDDING_PATH)
    elif address := settings.DAYBOOK_UPSTREAMS.get(upstream):
        return UpstreamClient(base_url=address["url"], api_key=address["key"] or NO_KEY, http_client=http_client())
    else:
        raise InvalidRequest(missing_upstream(upstream))
    http = openai.DefaultAsyncHttpxClient(transport=transport)
    return UpstreamClient(base_url="http://in-process.invalid/v1", api_key=NO_KEY, http_client=http)  # never resolved


def http_client() -> httpx2.AsyncClient:
    return openai.DefaultAioHttpClient(limits=_KEEP_ALIVE)


def missing_upstream(upstream: str) -> str:
    """Return the error message for an upstream that an agent names but that is not configured."""
    if upstream == "default":
        return "The default upstream is not configured. Set OPENAI_BASE_URL or OPENAI_API_KEY."
    if not re.fullmatch(UPSTREAM_NAME, upstream):
        return f"No upstream is called {upstream}: their names consist of lower-case letters, digits and _."
    return f"No upstream is called {upstream}. Set DAYBOOK_UPSTREAM_{upstream.upper()}_URL."

"""Reads the body of an answer: a stream of chunks or one JSON document. Data that does not arrive in time, or is no
answer, is raised as one of the gateway's errors."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import httpx2

from gateway.errors import UpstreamUnreachable
from gateway.upstream.adapted import AdaptedRequest
from gateway.upstream.answer import (
    CUT_OFF,
    DONE,
    NO_CHOICE,
    Chunk,
    EventReader,
    JSONDocument,
    LineSplitter,
    choices_of,
    chunk_of_completion,
    has_content,
    is_finished,
    max_body_bytes,
    normalised,
    with_deltas,
)
from gateway.upstream.collected import CompletionBuilder
from gateway.upstream.error_body import MAX_ERROR_BYTES
from gateway.upstream.faults import WIRE_ERRORS
from gateway.upstream.request import Deadlines

T = TypeVar("T")
Parse = Callable[[JSONDocument, httpx2.Request], T]


async def chunks_of(response: httpx2.Response, adapted: AdaptedRequest) -> AsyncGenerator[Chunk]:
    """Yield the chunks of a streamed answer. Some servers send one JSON document instead, which becomes a single chunk.
    Raises DomainErrors, ValueError."""
    deadlines, single_choice = adapted.deadlines, adapted.request.single_choice
    lines, events = LineSplitter(), EventReader(response.request, single_choice=single_choice)
    document, answered = JSONDocument(max_body_bytes()), False
    async with aclosing(_pieces(response, deadlines)) as pieces:
        async for data in pieces:
            for line in lines.feed(data):
                chunk = _chunk_of(line, events, deadlines)
                if chunk is None:
                    document.feed_line(line)
                    continue
                if chunk is DONE:
                    if answered:
                        return
                    if not document.begun:
                        raise UpstreamUnreachable(NO_CHOICE)
                    continue  # 9router ends a document like a stream
                chunk = with_deltas(chunk, begun=deadlines.begun)
                answered = answered or bool(choices_of(chunk))
                if has_content(chunk):
                    deadlines.begun, deadlines.finished = True, is_finished(chunk)
                yield chunk
    if deadlines.finished:
        return
    if not document.begun:
        raise UpstreamUnreachable(CUT_OFF)
    yield normalised(chunk_of_completion(document.completion(response.request)), single_choice=single_choice)


async def collected(response: httpx2.Response, adapted: AdaptedRequest) -> dict[str, Any]:
    """Return the completion whose chunks an answer has. Raises as `chunks_of` does."""
    builder = CompletionBuilder()
    async with aclosing(chunks_of(response, adapted)) as chunks:
        async for chunk in chunks:
            builder.add(chunk)
    return builder.completion()


async def document_of(response: httpx2.Response, adapted: AdaptedRequest, parse: Parse[T], max_bytes: int) -> T:
    """Return what `parse` makes of an answer in one JSON document of up to `max_bytes`. Raises DomainErrors."""
    document = JSONDocument(max_bytes)
    async with aclosing(_pieces(response, adapted.deadlines)) as pieces:
        async for data in pieces:
            adapted.deadlines.begun = True
            document.feed(data)
    return parse(document, response.request)


async def beginning(response: httpx2.Response) -> bytes:
    """Return the beginning of a body that describes an error; nothing of a compressed one."""
    body = bytearray()
    if is_compressed(response):
        return b""
    async with aclosing(response.aiter_bytes()) as pieces:
        async for data in pieces:
            body += data
            if len(body) >= MAX_ERROR_BYTES:
                break
    return bytes(body[:MAX_ERROR_BYTES])


def is_compressed(response: httpx2.Response) -> bool:
    """Return True for a body that cannot be read, since its server compressed it."""
    codings = response.headers.get("content-encoding", "").lower()
    return any(name in codings for name in ("gzip", "deflate", "br", "zstd"))


def is_stream(response: httpx2.Response) -> bool:
    """Return True for a stream, which some servers send although they were not asked to (mini-sglang, Unsloth)."""
    return response.headers.get("content-type", "").lower().startswith("text/event-stream")


async def _pieces(response: httpx2.Response, deadlines: Deadlines) -> AsyncGenerator[bytes]:
    """Yield the bytes of a body as they arrive, and a newline after them, since some servers omit the last one. After
    the end of the answer a fault or an incomplete line just ends the body. Raises UpstreamSilent, UpstreamTimeout."""
    body = response.aiter_bytes()
    while True:
        try:
            async with asyncio.timeout_at(deadlines.next()):
                data = await anext(body, None)
            if deadlines.over:  # a body that always has data ready never times out
                raise TimeoutError
        except (TimeoutError, *WIRE_ERRORS) as error:
            if deadlines.finished:
                return
            if isinstance(error, TimeoutError):
                raise deadlines.fault() from None
            raise
        if data is None:
            deadlines.ended = True
            yield b"\n"
            return
        yield data


def _chunk_of(line: bytes, events: EventReader, deadlines: Deadlines) -> Chunk | None:
    try:
        return events.chunk_of(line)
    except ValueError:
        if deadlines.ended and deadlines.finished:
            return None
        if deadlines.ended:  # the last line is not complete
            raise UpstreamUnreachable(CUT_OFF) from None
        raise

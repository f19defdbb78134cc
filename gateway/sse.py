"""Server-sent events: how a stream is written and which headers keep proxies from holding it back."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from django.http import StreamingHttpResponse


def event(name: str, data: Any, *, id: int | None = None) -> bytes:
    """One event of the native API."""
    head = f"id: {id}\n" if id is not None else ""
    return f"{head}event: {name}\ndata: ".encode() + encode(data, (", ", ": ")) + b"\n\n"


def data_line(data: Any) -> bytes:
    """One chunk as the OpenAI API writes it."""
    return b"data: " + encode(data) + b"\n\n"


def encode(data: Any, separators: tuple[str, str] = (",", ":")) -> bytes:
    """JSON; readable in every script."""
    try:
        return json.dumps(data, ensure_ascii=False, separators=separators, default=str).encode()
    except UnicodeEncodeError:  # half a character, which a model server may send in two chunks: escapes can carry it
        return json.dumps(data, separators=separators, default=str).encode()


DONE_LINE = b"data: [DONE]\n\n"


class Begun:
    """A generator whose first piece was taken already, and which closes with it however far it was read."""

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes]) -> None:
        self._first: bytes | None = first
        self._rest = rest

    def __aiter__(self) -> "Begun":
        return self

    async def __anext__(self) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return await self._rest.__anext__()

    async def aclose(self) -> None:
        """Close the generator: what it does stops now."""
        await self._rest.aclose()


async def begin(stream: AsyncGenerator[bytes]) -> Begun:
    """Run a generator up to its first piece. Raises what goes wrong until then."""
    return Begun(await anext(stream), stream)


class EventStream(StreamingHttpResponse):
    """A streamed answer, never buffered. `source` is what it was made from: config.asgi_handler reads it directly, and
    closes it when the client goes."""

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        super().__init__(
            source,
            content_type="text/event-stream",
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )
        self.source = source


def response(stream: AsyncIterator[bytes]) -> EventStream:
    """Return a streamed answer, never buffered."""
    return EventStream(stream)

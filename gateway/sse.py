"""Server-sent events: their format, and measures against proxies that buffer or close idle streams."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, Self, TypeVar

from django.http import StreamingHttpResponse

from memories.json_output import json_line

E = TypeVar("E")


def event(name: str, data: Any, *, id: int | None = None) -> bytes:
    """Return an event of the native API."""
    head = f"id: {id}\n" if id is not None else ""
    return f"{head}event: {name}\ndata: ".encode() + encode(data, (", ", ": ")) + b"\n\n"


def data_line(data: Any) -> bytes:
    """Return a chunk in the format of the OpenAI API."""
    return b"data: " + encode(data) + b"\n\n"


def encode(data: Any, separators: tuple[str, str] = (",", ":")) -> bytes:
    """Return JSON on one line, without escapes for other scripts."""
    # A lone surrogate becomes its escape in JSON: a model server may split a pair over two chunks.
    return json_line(data, separators=separators, default=str).encode(errors="backslashreplace")


DONE_LINE = b"data: [DONE]\n\n"


KEEP_ALIVE = b": keep-alive\n\n"
KEEP_ALIVE_SECONDS = 10.0
_QUEUE_SIZE = 16  # pieces buffered for a slow client


class KeepAliveStream:
    """Runs a generator of pieces in its own task, so that a keep-alive comment can be sent while the model or our tools
    produce nothing. Comments are sent after ten to twenty seconds without a piece.

    `late_error` turns an error into a piece if something has been sent already. `keep_alive` is the comment, or an
    API's own event for this purpose."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes],
        late_error: Callable[[Exception], bytes] | None = None,
        keep_alive: bytes = KEEP_ALIVE,
    ) -> None:
        self._pieces = pieces
        self._keep_alive = keep_alive
        self._late_error = late_error
        self._ready: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUE_SIZE)
        self._first: bytes | None = None
        self._error: Exception | None = None
        self._quiet = self._sent = self._ended = False
        self._task = asyncio.create_task(self._run())
        self._timer = asyncio.get_running_loop().call_later(KEEP_ALIVE_SECONDS, self._send_keep_alive)

    async def begin(self) -> Self:
        """Wait for the first piece or the first comment, and raise any error that occurs before it."""
        try:
            self._first = await self.__anext__()
        except BaseException:
            await self.aclose()
            raise
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._first is not None:
            piece, self._first = self._first, None
            return piece
        try:
            found = None if self._ended and self._ready.empty() else await self._ready.get()
        except asyncio.CancelledError:  # the reader is gone
            await self.aclose()
            raise
        if found is not None:
            self._sent = True
            return found
        error, self._error = self._error, None
        if error is None:
            raise StopAsyncIteration
        if self._late_error is None or not self._sent:
            raise error
        return self._late_error(error)

    async def aclose(self) -> None:
        """Close the generator, which stops its work."""
        await asyncio.sleep(0)  # a task cancelled before it starts would leave its generator, and thus a run, open
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _run(self) -> None:
        try:
            async with aclosing(self._pieces) as pieces:
                async for piece in pieces:
                    self._quiet = False
                    await self._ready.put(piece)
        except Exception as error:  # noqa: BLE001 - raised or sent where the pieces are read
            self._error = error
        finally:
            self._ended = True
            self._timer.cancel()
            if self._ready.empty():  # a reader may be waiting
                self._ready.put_nowait(None)

    def _send_keep_alive(self) -> None:
        if self._quiet and self._ready.empty():
            self._ready.put_nowait(self._keep_alive)
        self._quiet = True
        self._timer = asyncio.get_running_loop().call_later(KEEP_ALIVE_SECONDS, self._send_keep_alive)


async def with_pauses(events: AsyncGenerator[E], seconds: Callable[[], float | None]) -> AsyncGenerator[E | None]:
    """Yield the events of a generator, and None when none arrived for `seconds()`, which is called before each wait and
    returns None for no limit. The generator is closed at the end."""
    async with aclosing(events):
        following = asyncio.ensure_future(anext(events, None))
        try:
            while True:
                await asyncio.wait({following}, timeout=seconds())
                if not following.done():
                    yield None
                elif (event := following.result()) is None:
                    return
                else:
                    following = asyncio.ensure_future(anext(events, None))
                    yield event
        finally:
            following.cancel()
            await asyncio.wait({following})


class EventStream(StreamingHttpResponse):
    """A streamed response that is never buffered. config.serving.asgi_handler reads its `source`, and closes it when
    the client disconnects."""

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        super().__init__(
            source, content_type="text/event-stream", headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        )
        self.source = source

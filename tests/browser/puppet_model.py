"""A model, installed in gateway.upstream, that a test controls word by word from another thread."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from gateway.upstream import ModelRequest
from memories.errors import DomainError

_END = object()


class PuppetModel:
    """`say` sends text immediately, `end` completes the answer, `fail` aborts it. `requests` holds the requests."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.requests: list[ModelRequest] = []
        self._loop = loop
        self._events: asyncio.Queue[Any] = asyncio.Queue()

    def say(self, text: str) -> None:
        """Send text."""
        self._put(text)

    def think(self, text: str) -> None:
        """Send reasoning."""
        self._put({"reasoning_content": text})

    def call(self, name: str, arguments: str) -> None:
        """Call a tool and end the step."""
        function = {"name": name, "arguments": arguments}
        self._put({"tool_calls": [{"index": 0, "id": "call_0", "type": "function", "function": function}]})
        self.end()

    def end(self) -> None:
        """Complete the answer."""
        self._put(_END)

    def fail(self, error: DomainError) -> None:
        """Abort with this error."""
        self._put(error)

    def answer(self, text: str) -> None:
        """Send text and complete the answer."""
        self.say(text)
        self.end()

    def _put(self, event: Any) -> None:
        self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[dict[str, Any]]:
        """Yield the chunks that the test sends."""
        self.requests.append(request)
        while True:
            event = await self._events.get()
            if isinstance(event, Exception):
                raise event
            if event is _END:
                break
            delta = {"content": event} if isinstance(event, str) else event
            yield {"model": "puppet", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield {"model": "puppet", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        yield {"choices": [], "usage": {"prompt_tokens": 8000, "completion_tokens": 8, "total_tokens": 8008}}

    async def complete(self, request: ModelRequest) -> dict[str, Any]:
        """Return the whole answer."""
        self.requests.append(request)
        text = ""
        while (event := await self._events.get()) is not _END:
            if isinstance(event, Exception):
                raise event
            text += event
        message = {"role": "assistant", "content": text}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {}}

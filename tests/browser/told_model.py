"""A model at the seam of gateway.upstream that says what a test tells it, word by word, across threads."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from gateway.upstream import ModelRequest
from memories.errors import DomainError

_END = object()


class ToldModel:
    """`say` goes out at once, `end` finishes the answer, `fail` breaks it. `requests` is what it was asked."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.requests: list[ModelRequest] = []
        self._loop = loop
        self._lines: asyncio.Queue[Any] = asyncio.Queue()

    def say(self, text: str) -> None:
        """Say this next."""
        self._tell(text)

    def think(self, text: str) -> None:
        """Think this next."""
        self._tell({"reasoning_content": text})

    def call(self, name: str, arguments: str) -> None:
        """Call a tool, which ends this step."""
        function = {"name": name, "arguments": arguments}
        self._tell({"tool_calls": [{"index": 0, "id": "call_0", "type": "function", "function": function}]})
        self.end()

    def end(self) -> None:
        """The answer is complete."""
        self._tell(_END)

    def fail(self, error: DomainError) -> None:
        """Break off with this error."""
        self._tell(error)

    def answer(self, text: str) -> None:
        """Say this and be done."""
        self.say(text)
        self.end()

    def _tell(self, line: Any) -> None:
        self._loop.call_soon_threadsafe(self._lines.put_nowait, line)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[dict[str, Any]]:
        """Chunks as the test tells them."""
        self.requests.append(request)
        while True:
            line = await self._lines.get()
            if isinstance(line, Exception):
                raise line
            if line is _END:
                break
            delta = {"content": line} if isinstance(line, str) else line
            yield {"model": "told", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield {"model": "told", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        yield {"choices": [], "usage": {"prompt_tokens": 8000, "completion_tokens": 8, "total_tokens": 8008}}

    async def complete(self, request: ModelRequest) -> dict[str, Any]:
        """The same in one piece."""
        self.requests.append(request)
        said = ""
        while (line := await self._lines.get()) is not _END:
            if isinstance(line, Exception):
                raise line
            said += line
        message = {"role": "assistant", "content": said}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {}}

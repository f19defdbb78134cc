"""Model servers in this process that fail as scripted, one for each upstream, distinguished by their ports; and a clock
that only advances while something sleeps."""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
URL = "http://127.0.0.1:{port}/v1"
UPSTREAMS = {"a": 1, "b": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a server does with one request: it answers (`text`, `calls`, `thought`), refuses the connection, hangs,
    answers with an error, whose text may be `endless`, or disconnects after its text."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    thought: str = ""
    refuses: bool = False
    hangs: bool = False
    disconnects: bool = False
    status: int = 200
    code: str | None = None
    endless: bool = False
    headers: dict[str, str] = field(default_factory=dict)


REFUSES = Step(refuses=True)
HANGS = Step(hangs=True)
DISCONNECTS = Step(disconnects=True)
OVERLOADED = Step(status=503)


def says(text: str, **fields: Any) -> Step:
    return Step(text=text, **fields)


def rate_limited(retry_after: str = "", **headers: str) -> Step:
    """Return a step with status 429, and with Retry-After if given."""
    return Step(status=429, headers={"Retry-After": retry_after, **headers} if retry_after else headers)


class Clock:
    """A clock that advances only while something sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds


class Servers(httpx2.AsyncBaseTransport):
    """The transport to all servers. A request without a step fails the test."""

    def __init__(self) -> None:
        self.steps: dict[str, deque[Step]] = defaultdict(deque)
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.released: asyncio.Event | None = None  # if set, answers wait for it

    def script(self, upstream: str, *steps: Step) -> None:
        """Append steps."""
        self.steps[upstream].extend(steps)

    @property
    def order(self) -> str:
        """Return the upstreams that got requests, in order."""
        return "".join(upstream for upstream, _ in self.requests)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        upstream = next(name for name, port in UPSTREAMS.items() if port == request.url.port)
        body = json.loads(await request.aread())
        self.requests.append((upstream, body))
        assert self.steps[upstream], f"{upstream} got an unexpected request"
        step = self.steps[upstream].popleft()
        if self.released is not None:
            await self.released.wait()
        return await _answer(step, body)


async def _answer(step: Step, body: dict[str, Any]) -> httpx2.Response:
    if step.refuses:
        raise httpx2.ConnectError("refused")
    if step.hangs:
        await asyncio.Event().wait()
    if step.endless:
        return httpx2.Response(step.status, content=_endless())
    if step.status != 200:
        error = {"error": {"message": "Scripted.", "code": step.code}}
        return httpx2.Response(step.status, json=error, headers=step.headers)
    calls = [
        {"index": at, "id": f"c{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for at, (name, given) in enumerate(step.calls)
    ]
    message = {"role": "assistant", "content": step.text or None}
    message |= {"reasoning_content": step.thought} if step.thought else {}
    message |= {"tool_calls": calls} if calls else {}
    head = {"id": "up", "model": body["model"]}
    finish = "tool_calls" if calls else "stop"
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": finish}
        content = json.dumps({**head, "choices": [choice], "usage": USAGE}).encode()
        pieces = [content[: len(content) // 2]] if step.disconnects else [content]
        return httpx2.Response(200, content=_sent(pieces, step))
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [(message, None)] if message.keys() - {"role", "content"} or step.text else []
    deltas += [] if step.disconnects else [({}, finish)]
    lines = [
        json.dumps({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}) for delta, end in deltas
    ]
    lines += [] if step.disconnects else [json.dumps({**head, "choices": [], "usage": USAGE}), "[DONE]"]
    return httpx2.Response(200, content=_sent([f"data: {line}\n\n".encode() for line in lines], step))


async def _sent(pieces: list[bytes], step: Step) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if step.disconnects:
        raise httpx2.ReadError("reset")


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield b"Out of memory. "
        await asyncio.sleep(0)

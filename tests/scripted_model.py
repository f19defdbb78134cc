"""The model's double, installed in gateway.upstream. It plays its steps in order.

An unexpected call or an unused step fails the test."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from gateway.upstream import Chunk, ModelRequest
from memories.errors import UpstreamTimeout


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """A scripted step: thinking and text in pieces, or a refusal, then tool calls as (name, JSON arguments). `cites`
    are addresses that the text is attributed to."""

    thinks: tuple[str, ...] = ()
    pieces: tuple[str, ...] = ()
    refuses: str = ""
    cites: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    usage: dict[str, int] = field(
        default_factory=lambda: {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    )
    finish_reason: str = ""
    logprobs: bool = False  # each streamed piece of the text comes with its log probabilities


@dataclass(frozen=True, slots=True)
class Hangs:
    """A step that says some text and then nothing until the request times out."""

    pieces: tuple[str, ...] = ()


def says(*pieces: str) -> Says:
    """Return a step with text only."""
    return Says(pieces=pieces)


def calls(*made: tuple[str, str]) -> Says:
    """Return a step with tool calls only."""
    return Says(calls=made)


class ScriptedModel:
    """Steps are Says, Hangs, or an exception to raise. `calls` holds the requests."""

    def __init__(self) -> None:
        self.calls: list[ModelRequest] = []
        self._steps: deque[Says | Hangs | Exception] = deque()
        self._unscripted = 0
        self.embedded: list[tuple[str, ...]] = []
        self.embedding_fault: Exception | None = None

    def script(self, *steps: Says | Hangs | Exception | str) -> None:
        """Append steps; a plain string is a step that says it."""
        self._steps.extend(says(step) if isinstance(step, str) else step for step in steps)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        step = self._next(request)
        for piece in step.thinks if isinstance(step, Says) else ():
            yield _chunk({"reasoning_content": piece})
        for piece in step.pieces:
            chunk = _chunk({"content": piece})
            if isinstance(step, Says) and step.logprobs:
                chunk["choices"][0]["logprobs"] = {"content": [{"token": piece, "logprob": -0.5}]}
            yield chunk
        if isinstance(step, Says) and step.refuses:
            yield _chunk({"refusal": step.refuses})
        if isinstance(step, Says) and step.cites:
            yield _chunk({"annotations": _citations(step)})
        if isinstance(step, Hangs):
            await _time_out(request)
        for index, (name, arguments) in enumerate(step.calls):
            call = {"index": index, "id": f"call_{index}", "function": {"name": name, "arguments": arguments}}
            yield _chunk({"tool_calls": [call]})
        yield _chunk({}, finish=step.finish_reason or ("tool_calls" if step.calls else "stop"))
        yield {"model": "scripted", "choices": [], "usage": step.usage}

    async def complete(self, request: ModelRequest) -> dict[str, Any]:
        step = self._next(request)
        if isinstance(step, Hangs):
            await _time_out(request)
        assert isinstance(step, Says)
        message: dict[str, Any] = {"role": "assistant", "content": "".join(step.pieces) or None}
        if step.thinks:
            message["reasoning_content"] = "".join(step.thinks)
        if step.refuses:
            message["refusal"] = step.refuses
        if step.cites:
            message["annotations"] = _citations(step)
        if step.calls:
            message["tool_calls"] = [
                {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for i, (name, arguments) in enumerate(step.calls)
            ]
        finish = step.finish_reason or ("tool_calls" if step.calls else "stop")
        return {
            "id": "scripted",
            "object": "chat.completion",
            "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": step.usage,
        }

    async def embeddings(self, request: ModelRequest) -> bytes:
        """Embed a text as its letter counts, so that texts with the same letters are similar. Raise
        `embedding_fault`."""
        texts = request.parameters["input"]
        self.embedded.append(tuple(texts))
        if self.embedding_fault:
            raise self.embedding_fault
        vectors = [[text.casefold().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
        rows = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        return json.dumps({"data": rows}).encode()

    def assert_complete(self) -> None:
        """Fail unless every step ran and there was no unexpected call."""
        assert not self._unscripted, f"{self._unscripted} model call(s) were not scripted"
        assert not self._steps, f"{len(self._steps)} scripted step(s) never ran"

    def _next(self, request: ModelRequest) -> Says | Hangs:
        self.calls.append(request)
        if not self._steps:
            self._unscripted += 1  # counted, in case the code under test swallows the error
            raise AssertionError(f"model call {len(self.calls)} was not scripted")
        step = self._steps.popleft()
        if isinstance(step, Exception):
            raise step
        return step


async def _time_out(request: ModelRequest) -> None:
    """Say nothing until the request's time limit, then raise the timeout."""
    await asyncio.sleep(request.seconds or settings.RUN_SECONDS)
    raise UpstreamTimeout("The model server took too long to answer.")


def _citations(step: Says) -> list[dict[str, Any]]:
    return [{"type": "url_citation", "url_citation": {"url": url}} for url in step.cites]


def _chunk(delta: dict[str, Any], finish: str | None = None) -> Chunk:
    return {"id": "scripted", "model": "scripted", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

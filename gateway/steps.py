"""One model step: what came over the wire, gathered.
Text goes on as it comes; tool calls are kept until they are whole."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from gateway.errors import UpstreamUnreachable
from gateway.upstream import Chunk, ModelRequest, model
from memories.errors import TooLarge, UpstreamTimeout
from memories.storable import storable_text
from memories.tools import ToolCall

_MARGIN = 5.0
_MOST_TOKENS = 1_000_000_000  # no answer has more; larger figures are nonsense
_COUNTED = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILED = ("prompt_tokens_details", "completion_tokens_details")  # figures by name, such as cached_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """A finished step."""

    text: str
    calls: list[ToolCall]
    usage: dict[str, Any]
    model: str
    finish_reason: str
    choice: dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Step:
    """A step that is under way. `deadline` is in the event loop's time."""

    deadline: float
    bytes_left: int
    texts: list[str] = field(default_factory=list)
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    finish_reason: str = ""
    choice: dict[str, Any] = field(default_factory=dict)

    def take(self, choice: dict[str, Any], part: dict[str, Any]) -> str:
        """Take in a choice's delta or message; returns its text. Raises TooLarge."""
        if reason := choice.get("finish_reason"):
            self.finish_reason = reason
        calls = part.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                self._take_call(call, position)
        text = said_in(part.get("content"))
        if text:
            text = storable_text(text)
            self.texts.append(text)
            self.bytes_left -= len(text.encode())
            if self.bytes_left < 0:
                raise TooLarge("The answer is longer than the gateway keeps; it was cut off.")
        return text

    def result(self) -> StepResult:
        """What the step came to."""
        calls = [
            ToolCall(id=call["id"] or f"call_{index}", name=call["name"], arguments=call["arguments"])
            for index, call in sorted(self.calls.items())
            if call["name"]
        ]
        return StepResult(
            text="".join(self.texts),
            calls=_distinct(calls),
            usage=self.usage,
            model=self.model,
            finish_reason=self.finish_reason or "stop",
            choice=self.choice,
        )

    def _take_call(self, call: dict[str, Any], position: int) -> None:
        gathered = self.calls.setdefault(call.get("index", position), {"id": "", "name": "", "arguments": ""})
        function = call.get("function")
        if not isinstance(function, dict):
            return
        arguments = function.get("arguments") or ""
        gathered["id"] = storable_text(str(call.get("id") or gathered["id"]))
        gathered["name"] += storable_text(str(function.get("name") or ""))
        gathered["arguments"] += storable_text(arguments if isinstance(arguments, str) else json.dumps(arguments))


async def stream_step(request: ModelRequest, step: Step) -> AsyncGenerator[tuple[dict[str, Any], str]]:
    """Stream a step: `(choice, text)` for each chunk that says something. Raises DomainErrors."""
    async with aclosing(model().stream(request)) as stream:
        while True:
            chunk = await next_chunk(stream, step.deadline)
            if chunk is None:
                return
            step.model = chunk.get("model") or step.model
            step.usage = usage_of(chunk) or step.usage
            for choice in chunk.get("choices") or ():
                if not isinstance(choice, dict):
                    continue
                delta = choice.get("delta") or {}
                if choice.get("index"):
                    yield choice, ""  # further choices that a client asked for are its own affair
                    continue
                text = step.take(choice, delta)
                if text or any(value for key, value in delta.items() if key not in {"role", "tool_calls", "content"}):
                    yield choice, text


async def next_chunk(stream: AsyncGenerator[Chunk], deadline: float) -> Chunk | None:
    """The next chunk, or None at the end. `deadline` is in the event loop's time. Raises UpstreamTimeout."""
    if deadline - asyncio.get_running_loop().time() > settings.UPSTREAM_IDLE_SECONDS + _MARGIN:
        # The longest silence ends before the deadline: no timer of our own for each chunk.
        return await anext(stream, None)
    try:
        async with asyncio.timeout_at(deadline):
            return await anext(stream, None)
    except TimeoutError:
        raise UpstreamTimeout("The model server took too long to answer.") from None


async def complete_step(request: ModelRequest, step: Step) -> AsyncGenerator[tuple[dict[str, Any], str]]:
    """The same in one piece. Raises DomainErrors."""
    try:
        async with asyncio.timeout_at(step.deadline):
            answer = await model().complete(request)
    except TimeoutError:
        raise UpstreamTimeout("The model server took too long to answer.") from None
    step.model = answer.get("model") or ""
    step.usage = usage_of(answer)
    step.choice = answer
    choice = answer["choices"][0]
    if not isinstance(choice, dict):
        raise UpstreamUnreachable("The model server gave an answer that holds no choice.")
    yield choice, step.take(choice, choice.get("message") or {})


def usage_of(answer: dict[str, Any]) -> dict[str, Any]:
    """The usage an upstream gave, with figures that can be added up and stored; {} for none."""
    given = answer.get("usage")
    if not isinstance(given, dict):
        return {}
    return given | {name: _counted(given.get(name)) for name in _COUNTED if name in given}


def _counted(value: Any) -> int:
    try:
        return min(max(int(value), 0), _MOST_TOKENS)
    except (TypeError, ValueError, OverflowError):
        return 0


def said_in(content: Any) -> str:
    """The text of a message's or delta's content; some servers give it in parts."""
    if isinstance(content, list):
        return "".join(said_in(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def add_usage(total: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """The sum of two usages: of the figures every upstream gives, and of their details where there are any."""
    if not (more or total):
        return {}
    summed: dict[str, Any] = {name: _figure(total, name) + _figure(more, name) for name in _COUNTED}
    for name in _DETAILED:
        one, other = (_details(usage, name) for usage in (total, more))
        if one or other:
            summed[name] = {key: one.get(key, 0) + other.get(key, 0) for key in one | other}
    return summed


def usage_since(usage: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What came to a usage after it stood at `before`."""
    less: dict[str, Any] = {name: -_figure(before, name) for name in _COUNTED}
    for name in _DETAILED:
        less[name] = {key: -value for key, value in _details(before, name).items()}
    return add_usage(usage, less) if usage else {}


def _figure(usage: dict[str, Any], name: str) -> int:
    return int(usage.get(name) or 0)


def _details(usage: dict[str, Any], name: str) -> dict[str, int]:
    given = usage.get(name)
    return {key: value for key, value in given.items() if isinstance(value, int)} if isinstance(given, dict) else {}


def _distinct(calls: list[ToolCall]) -> list[ToolCall]:
    """Some servers repeat their call ids; results are matched by id."""
    seen: set[str] = set()
    found = []
    for index, call in enumerate(calls):
        fresh = call.id if call.id not in seen else f"{call.id}_{index}"
        seen.add(fresh)
        found.append(ToolCall(id=fresh, name=call.name, arguments=call.arguments))
    return found

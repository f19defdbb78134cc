"""One model step: what came over the wire, gathered.
Text goes on as it comes; tool calls are kept until they are whole."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.errors import UpstreamUnreachable
from gateway.upstream import ModelRequest, model
from gateway.upstream.answer import choices_of
from memories.errors import TooLarge
from memories.storable import storable_text
from memories.tools import ToolCall

MOST_CALLS = 128  # tool calls of one step
_MOST_TOKENS = 1_000_000_000  # no answer has more; larger figures are nonsense
_COUNTED = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILED = ("prompt_tokens_details", "completion_tokens_details")  # figures by name, such as cached_tokens
_MOST_DETAILS = 20
_LONGEST_NAME = 200  # as long as the column of a run's model
_TOLD_APART = frozenset({"role", "tool_calls", "content"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStepResult:
    """A finished step."""

    text: str
    calls: list[ToolCall]
    usage: dict[str, Any]
    model: str
    finish_reason: str
    was_ended: bool  # the server said why the model stopped
    choice: dict[str, Any]


@dataclass(slots=True)
class GatheredCall:
    """A tool call whose name and arguments arrive in pieces."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ModelStep:
    """A step that is under way. `deadline` is in the event loop's time; `bytes_left` counts down with what the model
    writes, text and tool calls alike."""

    deadline: float
    bytes_left: int
    texts: list[str] = field(default_factory=list)
    calls: list[GatheredCall] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    finish_reason: str = ""
    choice: dict[str, Any] = field(default_factory=dict)
    _numbered: dict[int, GatheredCall] = field(default_factory=dict)

    def take(self, choice: dict[str, Any], part: dict[str, Any], *, whole: bool = False) -> str:
        """Take in a choice's delta, or with `whole` its complete message; returns its text. Raises TooLarge."""
        self.finish_reason = _name_in(choice.get("finish_reason")) or self.finish_reason
        calls = part.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._take_call(call, whole=whole)
        text = said_in(part.get("content"))
        if text:
            text = storable_text(text)
            self.texts.append(text)
            self._count(text)
        return text

    def limited(self, request: ModelRequest) -> ModelRequest:
        """Return the request with the time that is left for this step."""
        return replace(request, seconds=max(self.deadline - asyncio.get_running_loop().time(), 0.001))

    def result(self) -> ModelStepResult:
        """Return what the step came to."""
        calls = [
            ToolCall(id=call.id or f"call_{index}", name=call.name, arguments="".join(call.arguments))
            for index, call in enumerate(self.calls)
            if call.name
        ]
        return ModelStepResult(
            text="".join(self.texts),
            calls=_distinct(calls),
            usage=self.usage,
            model=self.model,
            finish_reason=self.finish_reason or "stop",
            was_ended=bool(self.finish_reason),
            choice=self.choice,
        )

    def _take_call(self, call: dict[str, Any], *, whole: bool) -> None:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        call_id = storable_text(str(call.get("id") or ""))
        name = storable_text(str(function.get("name") or ""))
        given = function.get("arguments") or ""
        arguments = storable_text(given if isinstance(given, str) else json.dumps(given))
        self._count(call_id, name, arguments)
        index = call.get("index")
        gathered: GatheredCall | None = None
        if not whole:
            gathered = self._numbered.get(index) if isinstance(index, int) else self._unnumbered(call_id, name)
        if gathered is None:
            gathered = GatheredCall()
            self.calls.append(gathered)
            if isinstance(index, int) and not whole:
                self._numbered[index] = gathered
            if len(self.calls) > MOST_CALLS:
                raise TooLarge(f"The model made more than {MOST_CALLS} tool calls in one step.")
        gathered.id = gathered.id or call_id
        gathered.name += name
        gathered.arguments.append(arguments)

    def _unnumbered(self, call_id: str, name: str) -> GatheredCall | None:
        """Return the call that a piece without an index goes on with; None where a new one begins, as its name says."""
        for known in reversed(self.calls):
            if call_id and known.id == call_id:
                return known
        last = self.calls[-1] if self.calls else None
        return None if last is None or (name and last.name) else last

    def _count(self, *texts: str) -> None:
        for text in texts:
            self.bytes_left -= len(text.encode())
        if self.bytes_left < 0:
            raise TooLarge("The answer is longer than the gateway keeps; it was cut off.")


async def stream_step(request: ModelRequest, step: ModelStep) -> AsyncGenerator[tuple[dict[str, Any], str]]:
    """Stream a step: `(choice, text)` for each chunk that says something. Raises DomainErrors."""
    async with aclosing(model().stream(step.limited(request))) as stream:
        async for chunk in stream:
            step.model = _name_in(chunk.get("model")) or step.model
            step.usage = usage_of(chunk) or step.usage
            for choice in choices_of(chunk):
                given = choice.get("delta")
                delta = given if isinstance(given, dict) else {}
                if choice.get("index"):
                    yield choice, ""  # further choices that a client asked for are its own affair
                    continue
                text = step.take(choice, delta)
                if text or any(value for key, value in delta.items() if key not in _TOLD_APART):
                    yield choice, text


async def complete_step(request: ModelRequest, step: ModelStep) -> AsyncGenerator[tuple[dict[str, Any], str]]:
    """Take a step in one piece, for clients that get the upstream's whole choices: putting these together from a
    stream could lose what only that upstream gives. The request's own deadline is its only time limit until the answer
    begins. Raises DomainErrors."""
    answer = await model().complete(step.limited(request))
    step.model = _name_in(answer.get("model"))
    step.usage = usage_of(answer)
    step.choice = answer
    choice = answer["choices"][0]
    if not isinstance(choice, dict):
        raise UpstreamUnreachable("The model server gave an answer that holds no choice.")
    message = choice.get("message")
    yield choice, step.take(choice, message if isinstance(message, dict) else {}, whole=True)


def usage_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the usage an upstream gave, with figures that can be added up and stored; {} for none."""
    given = answer.get("usage")
    if not isinstance(given, dict):
        return {}
    counted = {name: _counted(given.get(name)) for name in _COUNTED if name in given}
    return given | counted | {name: _counted_details(given[name]) for name in _DETAILED if name in given}


def _counted_details(given: Any) -> dict[str, int]:
    figures = (
        [(key, value) for key, value in given.items() if isinstance(value, int)] if isinstance(given, dict) else []
    )
    return {_name_in(key): _counted(value) for key, value in figures[:_MOST_DETAILS]}


def _name_in(value: Any) -> str:
    """Return a name that an upstream gave, as it can be stored; "" for anything but text."""
    return storable_text(value)[:_LONGEST_NAME] if isinstance(value, str) else ""


def _counted(value: Any) -> int:
    try:
        return min(max(int(value), 0), _MOST_TOKENS)
    except (TypeError, ValueError, OverflowError):
        return 0


def said_in(content: Any) -> str:
    """Return the text of a message's or delta's content; some servers give it in parts."""
    if isinstance(content, list):
        return "".join(said_in(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def add_usage(total: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return the sum of two usages: of the figures every upstream gives, and of their details where there are any."""
    if not (more or total):
        return {}
    summed: dict[str, Any] = {name: _figure(total, name) + _figure(more, name) for name in _COUNTED}
    for name in _DETAILED:
        one, other = (_details(usage, name) for usage in (total, more))
        if one or other:
            summed[name] = {key: one.get(key, 0) + other.get(key, 0) for key in one | other}
    return summed


def usage_since(usage: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return what came to a usage after it stood at `before`."""
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

"""One model step: what came over the wire, gathered.
Text goes on as it comes; tool calls are kept until they are whole."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.errors import UpstreamUnreachable
from gateway.upstream import ModelRequest, model
from gateway.upstream.answer import choices_of
from gateway.upstream.call_ids import LONGEST, made_id
from gateway.upstream.kept import Gathered, GatheredParts, Kept, Room, with_kept
from gateway.upstream.usage import usage_of
from memories.errors import TooLarge
from memories.storable import storable_text
from memories.tools import ToolCall

MOST_CALLS = 128  # tool calls of one step
_LONGEST_NAME = 200  # as long as the column of a run's model
_TOLD_APART = frozenset({"role", "tool_calls", "content"})
_KNOWN = frozenset({"id", "object", "created", "model", "choices", "usage", "obfuscation"})  # of a chunk
_NOTHING: Mapping[str, Any] = {}


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
    around: Mapping[str, Any]  # what stood beside the choices of a stream: service_tier, system_fingerprint, …
    kept: Kept  # what its message carries beside text and calls

    def message(self, names: Mapping[str, str] = _NOTHING) -> dict[str, Any]:
        """Return the step as a message of the assistant, with its calls in the model's order; `names` are other ids
        than the model's own, under which a client knows its calls."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [call_json(replace(call, id=names.get(call.id, call.id))) for call in self.calls]
        calls = {names.get(call_id, call_id): more for call_id, more in self.kept.calls.items()}
        return with_kept(message, replace(self.kept, calls=calls))


@dataclass(slots=True)
class GatheredCall:
    """A tool call whose name and arguments arrive in pieces."""

    more: Gathered
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
    around: Mapping[str, Any] = field(default_factory=dict)
    asked: tuple[str, str] = ("", "")  # upstream and model that answered
    _room: Room = field(default_factory=Room)
    _more: Gathered = field(init=False)
    _parts: GatheredParts = field(init=False)
    _numbered: dict[int, GatheredCall] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._more, self._parts = Gathered(self._room), GatheredParts(self._room)

    def take(self, choice: dict[str, Any], part: dict[str, Any], *, whole: bool = False) -> str:
        """Take in a choice's delta, or with `whole` its complete message; returns its text. Raises TooLarge."""
        self.finish_reason = _name_in(choice.get("finish_reason")) or self.finish_reason
        calls = part.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._take_call(call, whole=whole)
        if whole:
            self._more.take_whole(part)
        elif part.keys() - _TOLD_APART:
            self._more.take_message(part)
        content = part.get("content")
        self._parts.take(content, before=self.texts)
        text = said_in(content)
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
        upstream, model = self.asked
        named = _identified([call for call in self.calls if call.name])
        parts = self._parts.whole()
        fields = {**self._more.whole(), **({"content": parts} if parts else {})}
        return ModelStepResult(
            text="".join(self.texts),
            calls=[
                ToolCall(id=call_id, name=call.name, arguments="".join(call.arguments))
                for call_id, call in named.items()
            ],
            usage=self.usage,
            model=self.model,
            finish_reason=self.finish_reason or "stop",
            was_ended=bool(self.finish_reason),
            choice=self.choice,
            around=self.around,
            kept=Kept(
                upstream=upstream,
                model=model,
                fields=fields,
                calls={call_id: {**call.more.whole(), "id": call.id} for call_id, call in named.items()},
            ),
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
            gathered = GatheredCall(Gathered(self._room))
            self.calls.append(gathered)
            if isinstance(index, int) and not whole:
                self._numbered[index] = gathered
            if len(self.calls) > MOST_CALLS:
                raise TooLarge(f"The model made more than {MOST_CALLS} tool calls in one step.")
        gathered.id = gathered.id or call_id
        gathered.more.take_call(call)
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
            around = {name: value for name, value in chunk.items() if name not in _KNOWN and value is not None}
            if around and not around.items() <= step.around.items():
                step.around = {**step.around, **around}
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
    step.asked = request.answered_by


async def complete_step(request: ModelRequest, step: ModelStep) -> AsyncGenerator[tuple[dict[str, Any], str]]:
    """Take a step in one piece, for clients that get the upstream's whole choices: putting these together from a
    stream could lose what only that upstream gives. The request's own deadline is its only time limit until the answer
    begins. Raises DomainErrors."""
    answer = await model().complete(step.limited(request))
    step.asked = request.answered_by
    step.model = _name_in(answer.get("model"))
    step.usage = usage_of(answer)
    step.choice = answer
    choice = answer["choices"][0]
    if not isinstance(choice, dict):
        raise UpstreamUnreachable("The model server gave an answer that holds no choice.")
    message = choice.get("message")
    yield choice, step.take(choice, message if isinstance(message, dict) else {}, whole=True)


def _name_in(value: Any) -> str:
    """Return a name that an upstream gave, as it can be stored; "" for anything but text."""
    return storable_text(value)[:_LONGEST_NAME] if isinstance(value, str) else ""


def said_in(content: Any) -> str:
    """Return the text of a message's or delta's content; some servers give it in parts."""
    if isinstance(content, list):
        return "".join(said_in(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def call_json(call: ToolCall) -> dict[str, Any]:
    """Return a tool call as OpenAI messages hold it."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _identified(calls: Sequence[GatheredCall]) -> dict[str, GatheredCall]:
    """Return the calls of a step by id; one that came without an id, with one that is too long or with that of another
    call is given one: results are matched by id."""
    found: dict[str, GatheredCall] = {}
    for call in calls:
        usable = call.id and call.id not in found and len(call.id) <= LONGEST
        found[call.id if usable else made_id(call.id, taken=found)] = call
    return found

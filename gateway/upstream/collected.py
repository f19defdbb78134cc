"""A streamed answer as the whole one that was asked for: some models only stream."""

from dataclasses import dataclass, field
from typing import Any

from gateway.errors import UpstreamUnreachable
from gateway.upstream.answer import NO_CHOICE, Chunk, choices_of
from gateway.upstream.calls import GatheredCall, GatheredCalls, called
from gateway.upstream.kept import Gathered, GatheredParts, Room
from gateway.upstream.outgoing import said_in
from memories.errors import TooLarge
from memories.storable import storable_text

_MOST_CHOICES = 128
_OF_CHUNKS = frozenset({"choices", "object"})
_OF_CHOICES = frozenset({"index", "delta", "logprobs"})


@dataclass(slots=True)
class _Choice:
    """One choice that arrives in pieces."""

    room: Room
    texts: list[str] = field(default_factory=list)
    beside: dict[str, Any] = field(default_factory=dict)  # of which the last value counts
    logprobs: Gathered = field(init=False)
    more: Gathered = field(init=False)
    parts: GatheredParts = field(init=False)
    calls: GatheredCalls = field(init=False)

    def __post_init__(self) -> None:
        self.logprobs, self.more, self.parts = Gathered(self.room), Gathered(self.room), GatheredParts(self.room)
        self.calls = GatheredCalls(self.room, self.room.take)

    def take(self, choice: dict[str, Any]) -> None:
        given = choice.get("delta")
        delta = given if isinstance(given, dict) else {}
        self.beside |= {name: value for name, value in choice.items() if name not in _OF_CHOICES and value is not None}
        if isinstance(choice.get("logprobs"), dict):
            self.logprobs.take_message({"logprobs": choice["logprobs"]})
        self.more.take_message(delta)
        self.calls.take(delta.get("tool_calls"), whole=False)
        self.parts.take(delta.get("content"), before=self.texts)
        if text := storable_text(said_in(delta.get("content"))):
            self.room.take(text)
            self.texts.append(text)

    def whole(self, index: int) -> dict[str, Any]:
        content = self.parts.gathered() or "".join(self.texts) or None
        message = {"role": "assistant", **self.more.whole(), "content": content}
        if calls := [_whole_call(call_id, call) for call_id, call in self.calls.named().items()]:
            message["tool_calls"] = calls
        logprobs = self.logprobs.whole() or {"logprobs": None}
        return {"index": index, "message": message, **logprobs, "finish_reason": "stop", **self.beside}


class Collected:
    """Collects the chunks of one answer."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}
        self._room = Room()

    def take(self, chunk: Chunk) -> None:
        """Add a chunk. Raises TooLarge."""
        self._head |= {name: value for name, value in chunk.items() if name not in _OF_CHUNKS and value is not None}
        for choice in choices_of(chunk):
            index = choice.get("index")
            at = index if isinstance(index, int) else 0
            if at not in self._choices and len(self._choices) == _MOST_CHOICES:
                raise TooLarge(f"The model server sent more than {_MOST_CHOICES} answers to one request.")
            self._choices.setdefault(at, _Choice(self._room)).take(choice)

    def completion(self) -> dict[str, Any]:
        """Return the answer as an OpenAI chat.completion. Raises UpstreamUnreachable if there was no choice."""
        if not self._choices:
            raise UpstreamUnreachable(NO_CHOICE)
        choices = [choice.whole(index) for index, choice in sorted(self._choices.items())]
        return {**self._head, "object": "chat.completion", "choices": choices}


def _whole_call(call_id: str, call: GatheredCall) -> dict[str, Any]:
    more, made = call.more.whole(), called(call.name, "".join(call.arguments), custom=call.custom)
    kind = made["type"]
    return {**more, "id": call_id, **made, kind: {**(more.get(kind) or {}), **made[kind]}}

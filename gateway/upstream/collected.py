"""Builds a message from its pieces, and a completion from the chunks of a stream, for models that only stream."""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.messages import content_text
from gateway.tool_calls import calls_in
from gateway.upstream.answer import Chunk, choices_of, max_body_bytes
from gateway.upstream.calls import CallAccumulator, PartialCall, call_json
from gateway.upstream.kept import FieldAccumulator, PartAccumulator, SizeBudget
from gateway.upstream.usage import newer_usage
from memories.errors import TooLarge
from memories.storable import storable_text

MAX_CHOICES = 128
_CHUNK_FIELDS = frozenset({"choices", "object"})
_CHOICE_FIELDS = frozenset({"index", "delta", "logprobs"})


class MessageAccumulator:
    """An assistant message that is streamed in pieces: its text so far, tool calls, parts that are not text, and other
    fields. `count` is called with each text, also those of calls."""

    def __init__(self, budget: SizeBudget, count: Callable[[str], None]) -> None:
        self.texts: list[str] = []
        self.extra, self.parts = FieldAccumulator(budget), PartAccumulator(budget)
        self.calls = CallAccumulator(budget, count)
        self._count = count

    def add(self, piece: Mapping[str, Any], *, whole: bool = False) -> str:
        """Add a delta or, with `whole`, a complete message, and return the text in it. Raises TooLarge."""
        for call in calls_in(piece):
            self.calls.add(call, whole=whole)
        if whole:
            self.extra.add_whole_message(piece)
        else:
            self.extra.add_message(piece)
        self.parts.add(piece.get("content"), before=self.texts)
        return self.add_text(content_text(piece.get("content")))

    def add_text(self, text: str) -> str:
        """Add a piece of the text, and return it in storable form. Raises TooLarge."""
        if text:
            text = storable_text(text)
            self.texts.append(text)
            self._count(text)
        return text


class _Choice:
    """One choice that is streamed in pieces."""

    def __init__(self, budget: SizeBudget) -> None:
        self.fields: dict[str, Any] = {}
        self.logprobs = FieldAccumulator(budget)
        self.message = MessageAccumulator(budget, budget.spend)

    def add(self, choice: dict[str, Any]) -> None:
        self.fields |= {
            name: value for name, value in choice.items() if name not in _CHOICE_FIELDS and value is not None
        }
        if isinstance(choice.get("logprobs"), dict):
            self.logprobs.add_message({"logprobs": choice["logprobs"]})
        if isinstance(delta := choice.get("delta"), dict):
            self.message.add(delta)

    def result(self, index: int) -> dict[str, Any]:
        content = self.message.parts.parts() or "".join(self.message.texts) or None
        message = {"role": "assistant", **self.message.extra.result(), "content": content}
        if calls := [_call_json(call_id, call) for call_id, call in self.message.calls.by_id().items()]:
            message["tool_calls"] = calls
        logprobs = self.logprobs.result() or {"logprobs": None}
        return {"index": index, "message": message, **logprobs, "finish_reason": "stop", **self.fields}


class CompletionBuilder:
    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}
        self._budget = SizeBudget(max_body_bytes())

    def add(self, chunk: Chunk) -> None:
        """Add a chunk. Raises TooLarge."""
        fields = {name: value for name, value in chunk.items() if name not in _CHUNK_FIELDS and value is not None}
        if "usage" in fields:
            fields["usage"] = newer_usage(self._fields.get("usage", {}), fields["usage"])
        self._fields |= fields
        for choice in choices_of(chunk):
            given = choice.get("index")
            index = given if isinstance(given, int) else 0
            if index not in self._choices and len(self._choices) == MAX_CHOICES:
                raise TooLarge(f"The model server sent more than {MAX_CHOICES} answers to one request.")
            self._choices.setdefault(index, _Choice(self._budget)).add(choice)

    def completion(self) -> dict[str, Any]:
        """Return the answer as an OpenAI chat.completion."""
        choices = [choice.result(index) for index, choice in sorted(self._choices.items())]
        return {**self._fields, "object": "chat.completion", "choices": choices}


def _call_json(call_id: str, call: PartialCall) -> dict[str, Any]:
    extra, own = call.extra.result(), call_json(call.name, "".join(call.arguments), custom=call.custom)
    kind = own["type"]
    return {**extra, "id": call_id, **own, kind: {**(extra.get(kind) or {}), **own[kind]}}

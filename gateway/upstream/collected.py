"""Builds a completion from the chunks of a stream, for models that only stream."""

from typing import Any

from gateway.messages import content_text
from gateway.upstream.answer import Chunk, choices_of
from gateway.upstream.calls import CallAccumulator, PartialCall, call_json
from gateway.upstream.kept import FieldAccumulator, PartAccumulator, SizeBudget
from memories.errors import TooLarge
from memories.storable import storable_text

_MAX_CHOICES = 128
_CHUNK_FIELDS = frozenset({"choices", "object"})
_CHOICE_FIELDS = frozenset({"index", "delta", "logprobs"})


class _Choice:
    """One choice that is streamed in pieces."""

    def __init__(self, budget: SizeBudget) -> None:
        self.budget = budget
        self.texts: list[str] = []
        self.fields: dict[str, Any] = {}
        self.logprobs, self.extra = FieldAccumulator(budget), FieldAccumulator(budget)
        self.parts, self.calls = PartAccumulator(budget), CallAccumulator(budget, budget.spend)

    def add(self, choice: dict[str, Any]) -> None:
        given = choice.get("delta")
        delta = given if isinstance(given, dict) else {}
        self.fields |= {
            name: value for name, value in choice.items() if name not in _CHOICE_FIELDS and value is not None
        }
        if isinstance(choice.get("logprobs"), dict):
            self.logprobs.add_message({"logprobs": choice["logprobs"]})
        self.extra.add_message(delta)
        self.calls.add(delta.get("tool_calls"), whole=False)
        self.parts.add(delta.get("content"), before=self.texts)
        if text := storable_text(content_text(delta.get("content"))):
            self.budget.spend(text)
            self.texts.append(text)

    def result(self, index: int) -> dict[str, Any]:
        content = self.parts.parts() or "".join(self.texts) or None
        message = {"role": "assistant", **self.extra.result(), "content": content}
        if calls := [_call_json(call_id, call) for call_id, call in self.calls.by_id().items()]:
            message["tool_calls"] = calls
        logprobs = self.logprobs.result() or {"logprobs": None}
        return {"index": index, "message": message, **logprobs, "finish_reason": "stop", **self.fields}


class CompletionBuilder:
    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}
        self._budget = SizeBudget()

    def add(self, chunk: Chunk) -> None:
        """Add a chunk. Raises TooLarge."""
        self._fields |= {
            name: value for name, value in chunk.items() if name not in _CHUNK_FIELDS and value is not None
        }
        for choice in choices_of(chunk):
            given = choice.get("index")
            index = given if isinstance(given, int) else 0
            if index not in self._choices and len(self._choices) == _MAX_CHOICES:
                raise TooLarge(f"The model server sent more than {_MAX_CHOICES} answers to one request.")
            self._choices.setdefault(index, _Choice(self._budget)).add(choice)

    def completion(self) -> dict[str, Any]:
        """Return the answer as an OpenAI chat.completion."""
        choices = [choice.result(index) for index, choice in sorted(self._choices.items())]
        return {**self._fields, "object": "chat.completion", "choices": choices}


def _call_json(call_id: str, call: PartialCall) -> dict[str, Any]:
    extra, own = call.extra.result(), call_json(call.name, "".join(call.arguments), custom=call.custom)
    kind = own["type"]
    return {**extra, "id": call_id, **own, kind: {**(extra.get(kind) or {}), **own[kind]}}

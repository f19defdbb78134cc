"""Kept fields: what a model server sends in addition to text and tool calls, such as reasoning, signatures and fields
of its own. They are stored with the message and sent back unchanged, but only to the same upstream and model: some
servers refuse a request without them, and others refuse the fields of another server."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memories.errors import TooLarge
from memories.storable import storable

# Fields that the gateway handles itself: of a message, of a call, of a call's function.
_MESSAGE_FIELDS = frozenset({"role", "content", "tool_calls"})
_CALL_FIELDS = frozenset({"index", "id", "type", "function", "custom"})
_FUNCTION_FIELDS = frozenset({"name", "arguments"})
# Strings within nested fields that are streamed in pieces. All other nested strings arrive whole.
_STREAMED = frozenset({"text", "thinking", "summary", "data", "transcript"})
# Top-level strings of a message that arrive whole. All other ones are streamed in pieces.
_WHOLE = frozenset({"id", "type", "name", "format", "signature", "thought_signature"})
_MAX_DEPTH = 20
_MAX_OPEN = 100  # newest entries of a list that a piece may continue


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFields:
    """The kept fields of one assistant message, with the upstream and model that sent them. `calls` has the kept fields
    of each tool call, and the model's own `id` for it, by the id in the message. `text_before` is the number of
    characters of the message's text that were sent to the client before each of its calls, if others followed."""

    upstream: str
    model: str
    fields: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    text_before: dict[str, int] = field(default_factory=dict)

    def is_from(self, upstream: str, model: str) -> bool:
        return (self.upstream, self.model) == (upstream, model)

    def as_json(self) -> dict[str, Any]:
        stored = {"upstream": self.upstream, "model": self.model, "fields": self.fields, "calls": self.calls}
        return {**stored, "text_before": self.text_before} if self.text_before else stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "KeptFields":
        given = {name: stored[name] for name in ("upstream", "model", "fields", "calls")}
        return cls(**given, text_before=stored.get("text_before") or {})


class AssistantMessage(dict[str, Any]):
    """An OpenAI assistant message with its kept fields. Other packages treat it as a plain dictionary."""

    kept: KeptFields | None = None


def kept_of(message: Mapping[str, Any]) -> KeptFields | None:
    """Return the kept fields of a message, or None if it has none, like a client's message."""
    return message.kept if isinstance(message, AssistantMessage) else None


def with_kept(message: Mapping[str, Any], kept: KeptFields | None) -> dict[str, Any]:
    if kept is None:
        return dict(message)
    carried = AssistantMessage(message)
    carried.kept = kept
    return carried


class SizeBudget:
    """The number of bytes that an answer may still have."""

    def __init__(self, left: int) -> None:
        self._left = left

    def spend(self, text: str) -> None:
        """Subtract the size of a text. Raises TooLarge."""
        self._left -= len(text.encode(errors="surrogatepass"))
        if self._left < 0:
            raise TooLarge("The answer exceeds the gateway's size limit and was cut off.")


class _Pieces(list[str]):
    """A string that is still being received."""


class FieldAccumulator:
    """Merges fields that are streamed in pieces. Strings are joined, list entries are matched by `_entry_for`, and any
    other value replaces the previous one."""

    def __init__(self, budget: SizeBudget) -> None:
        self._fields: dict[str, Any] = {}
        self._budget = budget

    def _entry_for(self, entries: Sequence[Any], item: Mapping[str, Any]) -> Any:
        """Return the list entry that a piece continues: the one with the same `index`, or without an index the last
        thought if it is not signed yet (LiteLLM). Other entries without an index are whole."""
        if not isinstance(item.get("index"), int):
            last = entries[-1] if entries and item.get("type") == "thinking" else None
            unsigned = isinstance(last, dict) and last.get("type") == "thinking" and not last.get("signature")
            return last if unsigned else None
        newest = reversed(entries[-_MAX_OPEN:])
        same = (entry for entry in newest if isinstance(entry, dict) and entry.get("index") == item["index"])
        return next((entry for entry in same if item.get("type") in {None, entry.get("type")}), None)

    def add_message(self, part: Mapping[str, Any]) -> None:
        """Add the fields of a delta or a message, except role, content and tool calls. Raises TooLarge."""
        for name, value in part.items():
            if name not in _MESSAGE_FIELDS:
                self._merge(self._fields, name, value, append=name not in _WHOLE)

    def add_whole_message(self, message: Mapping[str, Any]) -> None:
        """Add the fields of a message that was not streamed, unchanged."""
        given = ((name, value) for name, value in message.items() if name not in _MESSAGE_FIELDS)
        self._fields |= {name: value for name, value in given if value is not None}

    def add_call(self, call: Mapping[str, Any]) -> None:
        """Add the fields of a piece of a tool call, except id, name and arguments. Raises TooLarge."""
        for name in call.keys() - _CALL_FIELDS:
            self._merge(self._fields, name, call[name], append=False)
        function = call.get("function")
        if isinstance(function, dict) and (names := function.keys() - _FUNCTION_FIELDS):
            self._merge(self._fields, "function", {name: function[name] for name in names}, append=False)

    def result(self) -> dict[str, Any]:
        """Return the fields merged so far."""
        joined: dict[str, Any] = _joined(self._fields)
        return joined

    def _merge(self, into: dict[str, Any], name: str, value: Any, *, append: bool, depth: int = 0) -> None:
        if value is None or depth > _MAX_DEPTH:
            return
        known = into.get(name)
        if isinstance(value, str):
            self._budget.spend(value)
            if not append:
                into[name] = value
            elif isinstance(known, _Pieces):
                known.append(value)
            else:
                into[name] = _Pieces([value])
        elif isinstance(value, dict):
            inner = into[name] = known if isinstance(known, dict) else {}
            for key, item in value.items():
                self._merge(inner, key, item, append=key in _STREAMED, depth=depth + 1)
        elif isinstance(value, list):
            entries = into[name] = known if isinstance(known, list) and not isinstance(known, _Pieces) else []
            for item in value:
                self._merge_entry(entries, item, depth + 1)
        else:
            into[name] = value

    def _merge_entry(self, entries: list[Any], item: Any, depth: int) -> None:
        """Merge a list item into the entry that it continues, or append it."""
        if not isinstance(item, dict):
            holder: dict[str, Any] = {}
            self._merge(holder, "item", item, append=False, depth=depth)
            entries.extend(holder.values())
            return
        known = self._entry_for(entries, item)
        if known is None:
            known = {}
            entries.append(known)
        for key, value in item.items():
            self._merge(known, key, value, append=key in _STREAMED, depth=depth + 1)


class PartAccumulator(FieldAccumulator):
    """Merges content in parts that are not all text, such as Mistral's thinking. A piece continues the last part if
    both are text of the same type."""

    def __init__(self, budget: SizeBudget) -> None:
        super().__init__(budget)
        self._parts: list[dict[str, Any]] = []

    def _entry_for(self, entries: Sequence[Any], item: Mapping[str, Any]) -> Any:
        last, kind = entries[-1] if entries else None, item.get("type")
        continues = isinstance(last, dict) and last.get("type") == kind and str(kind) in _STREAMED
        return last if continues else None

    def add(self, content: Any, *, before: Sequence[str]) -> None:
        """Add the content of a delta. `before` is the text before the first part that is not text. Raises TooLarge."""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) and content else content
        if not isinstance(parts, list):
            return
        if not self._parts:
            if all(not isinstance(part, dict) or part.get("type", "text") == "text" for part in parts):
                return
            parts = [*({"type": "text", "text": text} for text in before), *parts]
        for part in parts:
            if isinstance(part, dict):
                self._merge_entry(self._parts, part, 0)

    def parts(self) -> list[dict[str, Any]]:
        """Return the parts, or an empty list if all of the content is text."""
        return list(map(_joined, self._parts))


def _joined(value: Any) -> Any:
    if isinstance(value, _Pieces):
        return storable("".join(value))
    if isinstance(value, list):
        return [_joined(item) for item in value]
    if isinstance(value, dict):
        return {storable(name): _joined(item) for name, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None  # NaN and infinity are not valid JSON for the database
    return storable(value)

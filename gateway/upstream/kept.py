"""What a model server sends beside text and tool calls: reasoning, signatures, refusals, fields of its own. It is kept
with the message and sent again unchanged to the same upstream and model: some servers refuse a request without it, and
others refuse fields of another server."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.upstream.answer import longest_body
from memories.errors import TooLarge
from memories.storable import storable

_OURS = frozenset({"role", "content", "tool_calls"})  # fields that the gateway reads itself
_CALL_OURS = frozenset({"index", "id", "type", "function", "custom"})
_FUNCTION_OURS = frozenset({"name", "arguments"})
# Texts within other fields that arrive in pieces; every other text there arrives whole.
_GROWING = frozenset({"text", "thinking", "summary", "data", "transcript"})
# Texts of a message that are sent whole, where the others arrive in pieces.
_WHOLE = frozenset({"id", "type", "name", "format", "signature", "thought_signature"})
_DEEPEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The further fields of one assistant message, with the upstream and model that sent them. `calls` are by the ids
    in the message; each has the model's own `id` and the call's further fields."""

    upstream: str
    model: str
    fields: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)

    def is_of(self, upstream: str, model: str) -> bool:
        """Return True if they come from that model of that upstream."""
        return (self.upstream, self.model) == (upstream, model)

    def as_json(self) -> dict[str, Any]:
        """Return the form that is stored."""
        return {"upstream": self.upstream, "model": self.model, "fields": self.fields, "calls": self.calls}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Kept":
        """Read the stored form."""
        return cls(**{name: stored[name] for name in ("upstream", "model", "fields", "calls")})


class AssistantMessage(dict[str, Any]):
    """An OpenAI message of the assistant with its kept fields; a plain dictionary to all but gateway.upstream."""

    kept: Kept | None = None


def kept_of(message: Mapping[str, Any]) -> Kept | None:
    """Return the kept fields of a message; None for one that a client wrote."""
    return message.kept if isinstance(message, AssistantMessage) else None


def with_kept(message: Mapping[str, Any], kept: Kept | None) -> dict[str, Any]:
    """Return the message with these kept fields."""
    if kept is None:
        return dict(message)
    carried = AssistantMessage(message)
    carried.kept = kept
    return carried


class Room:
    """The number of characters that may still be kept of one answer."""

    def __init__(self) -> None:
        self._left = longest_body()

    def take(self, text: str) -> None:
        """Subtract the length of a text. Raises TooLarge."""
        self._left -= len(text)
        if self._left < 0:
            raise TooLarge("The answer is longer than the gateway keeps; it was cut off.")


class _Pieces(list[str]):
    """A text that is still arriving."""


class Gathered:
    """Fields that arrive in pieces. Texts are joined, entries of lists are matched by type and `index`, and of
    everything else the last value counts."""

    def __init__(self, room: Room) -> None:
        self._fields: dict[str, Any] = {}
        self._room = room

    def _continued(self, entries: Sequence[Any], item: Mapping[str, Any]) -> Any:
        """Return the entry of a list that a piece continues: both have numbers. Whole entries have none."""
        if not isinstance(item.get("index"), int):
            return None
        same = (one for one in reversed(entries) if isinstance(one, dict) and one.get("index") == item["index"])
        return next((one for one in same if item.get("type") in {None, one.get("type")}), None)

    def take_message(self, part: Mapping[str, Any]) -> None:
        """Add the fields of a delta or a message beside role, content and tool calls. Raises TooLarge."""
        for name, value in part.items():
            if name not in _OURS:
                self._merge(self._fields, name, value, grows=name not in _WHOLE)

    def take_whole(self, message: Mapping[str, Any]) -> None:
        """Add a message that arrived in one piece, unchanged."""
        more = {name: value for name, value in message.items() if name not in _OURS and value is not None}
        self._fields |= more

    def take_call(self, call: Mapping[str, Any]) -> None:
        """Add the fields of a piece of a tool call beside id, name and arguments. Raises TooLarge."""
        for name in call.keys() - _CALL_OURS:
            self._merge(self._fields, name, call[name], grows=False)
        function = call.get("function")
        if isinstance(function, dict) and (more := function.keys() - _FUNCTION_OURS):
            self._merge(self._fields, "function", {name: function[name] for name in more}, grows=False)

    def whole(self) -> dict[str, Any]:
        """Return the fields gathered so far."""
        joined = _joined(self._fields)
        return joined if isinstance(joined, dict) else {}

    def _merge(self, into: dict[str, Any], name: str, value: Any, *, grows: bool, depth: int = 0) -> None:
        if value is None or depth > _DEEPEST:
            return
        known = into.get(name)
        if isinstance(value, str):
            self._room.take(value)
            if not grows:
                into[name] = value
            elif isinstance(known, _Pieces):
                known.append(value)
            else:
                into[name] = _Pieces([value])
        elif isinstance(value, dict):
            inner = into[name] = known if isinstance(known, dict) else {}
            for key, item in value.items():
                self._merge(inner, key, item, grows=key in _GROWING, depth=depth + 1)
        elif isinstance(value, list):
            entries = into[name] = known if isinstance(known, list) and not isinstance(known, _Pieces) else []
            for item in value:
                self._add(entries, item, depth + 1)
        else:
            into[name] = value

    def _add(self, entries: list[Any], item: Any, depth: int) -> None:
        """Add an entry of a list to the entry that it continues, else at the end."""
        if not isinstance(item, dict):
            holder: dict[str, Any] = {}
            self._merge(holder, "item", item, grows=False, depth=depth)
            entries.extend(holder.values())
            return
        known = self._continued(entries, item)
        if known is None:
            known = {}
            entries.append(known)
        for key, value in item.items():
            self._merge(known, key, value, grows=key in _GROWING, depth=depth + 1)


class GatheredParts(Gathered):
    """Content in parts that are not all text, such as Mistral's thinking, kept unchanged. A part continues the last one
    if both are texts of one kind."""

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self._parts: list[dict[str, Any]] = []

    def _continued(self, entries: Sequence[Any], item: Mapping[str, Any]) -> Any:
        last, kind = entries[-1] if entries else None, item.get("type")
        goes_on = isinstance(last, dict) and last.get("type") == kind and str(kind) in _GROWING
        return last if goes_on else None

    def take(self, content: Any, *, before: Sequence[str]) -> None:
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
                self._add(self._parts, part, 0)

    def gathered(self) -> list[dict[str, Any]]:
        """Return the parts; an empty list if all of the content was text."""
        return [part for part in map(_joined, self._parts) if isinstance(part, dict)]


def _joined(value: Any) -> Any:
    if isinstance(value, _Pieces):
        return storable("".join(value))
    if isinstance(value, list):
        return [_joined(item) for item in value]
    if isinstance(value, dict):
        return {storable(name): _joined(item) for name, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON that a database cannot store
    return storable(value)

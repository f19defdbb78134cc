"""Assembles the tool calls of one model step from their pieces: calls of functions, whose arguments are JSON, and of
custom tools, whose input is free text.

The model's own id of a call is sent back unchanged, since some models read it. It is replaced only if it is missing,
repeated or too long, or if it comes from another model and has a shape that the server refuses. The replacement has
nine letters and digits, which every server accepts, and depends only on the id it replaces and the calls before it, so
that a growing conversation keeps its prefix for prompt caches."""

import hashlib
import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from gateway.tool_calls import ObjectEnd
from gateway.upstream.custom_tools import input_in
from gateway.upstream.kept import FieldAccumulator, SizeBudget
from memories.errors import TooLarge
from memories.storable import storable_text
from memories.tools import ToolCall

MAX_CALLS = 128  # per step
MAX_ID_CHARS = 128  # the length of the database column
SHAPES = {
    "any": re.compile(r".{1,128}", re.DOTALL),
    "short": re.compile(r".{1,40}", re.DOTALL),  # OpenAI
    "word": re.compile(r"[A-Za-z0-9_-]{1,64}"),  # Anthropic
    "nine": re.compile(r"[A-Za-z0-9]{9}"),  # Mistral
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCall(ToolCall):
    """A complete call. If `custom`, it calls a custom tool and `arguments` is its input."""

    custom: bool = False

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, **call_json(self.name, self.arguments, custom=self.custom)}


def call_json(name: str, arguments: str, *, custom: bool) -> dict[str, Any]:
    """Return a call without its id as an OpenAI message has it."""
    if custom:
        return {"type": "custom", "custom": {"name": name, "input": arguments}}
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


@dataclass(slots=True)
class PartialCall:
    """A call whose name and arguments are streamed in pieces. If it is `held`, it calls a function in place of a custom
    tool, whose input can only be read from the complete arguments."""

    extra: FieldAccumulator
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    end: ObjectEnd = field(default_factory=ObjectEnd)
    custom: bool = False
    held: bool = False

    def complete(self) -> None:
        """Convert a call of a function in place of a custom tool, since no pieces follow."""
        if self.held:
            text = storable_text(input_in("".join(self.arguments)))
            self.held, self.custom, self.arguments = False, True, [text]


class CallAccumulator:
    """The calls of a step so far, in the order in which they began. `count` is called with the text of each piece.
    `custom_names` are those of the request's custom tools."""

    custom_names: frozenset[str] = frozenset()

    def __init__(self, budget: SizeBudget, count: Callable[[str], None]) -> None:
        self.calls: list[PartialCall] = []
        self._budget = budget
        self._count = count
        self._by_index: dict[int, PartialCall] = {}

    def add(self, piece: dict[str, Any], *, whole: bool) -> None:
        """Add a piece of a call or, with `whole`, a complete one. Raises TooLarge."""
        function, custom = piece.get("function"), piece.get("custom")
        is_custom = isinstance(custom, dict)
        part = custom if isinstance(custom, dict) else function if isinstance(function, dict) else {}
        call_id = storable_text(str(piece.get("id") or ""))
        name = storable_text(str(part.get("name") or ""))
        given = part.get("input" if is_custom else "arguments") or ""
        arguments = storable_text(given if isinstance(given, str) else json.dumps(given))
        for text in (call_id, name, arguments):
            self._count(text)
        call = self._call_for(piece.get("index"), call_id, name, whole=whole)
        call.id = call.id or call_id
        call.custom = call.custom or is_custom
        call.extra.add_call(piece)
        if name and not call.arguments:  # some servers repeat the name so far with every piece
            call.name = name if name.startswith(call.name) else call.name + name
        call.held = call.name in self.custom_names and not call.custom
        if arguments:
            call.arguments.append(arguments)

    def by_id(self) -> dict[str, PartialCall]:
        """Return the calls that have a name, completed, by id. A missing, repeated or too long id is replaced, since
        results are matched by id."""
        calls: dict[str, PartialCall] = {}
        for call in self.calls:
            call.complete()
            if not call.name:
                continue
            usable = call.id and call.id not in calls and len(call.id) <= MAX_ID_CHARS
            calls[call.id if usable else replacement_id(call.id, taken=calls)] = call
        return calls

    def _call_for(self, index: Any, call_id: str, name: str, *, whole: bool) -> PartialCall:
        """Return the call that a piece continues, or a new one."""
        has_index = isinstance(index, int) and not whole
        known = None
        if not whole:
            known = self._by_index.get(index) if has_index else self._without_index(call_id, name)
        if known is not None and not (has_index and _begins_another(known, call_id, name)):
            return known
        new = PartialCall(FieldAccumulator(self._budget))
        self.calls.append(new)
        if has_index:
            self._by_index[index] = new
        if len(self.calls) > MAX_CALLS:
            raise TooLarge(f"The model made more than {MAX_CALLS} tool calls in one step.")
        return new

    def _without_index(self, call_id: str, name: str) -> PartialCall | None:
        """Return the call that a piece without an index continues. Return None if the piece begins a new call: both it
        and the last call have a name."""
        for known in reversed(self.calls):
            if call_id and known.id == call_id:
                return known
        last = self.calls[-1] if self.calls else None
        return None if last is None or (name and last.name) else last


def _begins_another(known: PartialCall, call_id: str, name: str) -> bool:
    """Return True if a piece begins another call than the known one with the same index, as on servers that number
    every call 0: it has a name and either another id, or no id while the known call is complete."""
    if not name or not known.name:
        return False
    if call_id:
        return bool(known.id) and known.id != call_id
    return known.end.reached(known.arguments)


def replacement_id(unusable: str, *, taken: Collection[str]) -> str:
    """Return a nine-character id for an unusable one: always the same one, unless it is taken."""
    attempt = 0
    while (new := hashlib.sha256(f"{attempt}:{unusable}".encode(errors="replace")).hexdigest()[:9]) in taken:
        attempt = max(attempt + 1, len(taken))  # a client may send thousands of calls with the same id
    return new

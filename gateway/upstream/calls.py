"""The tool calls of one model step, gathered from pieces: calls of functions, whose arguments are JSON, and of custom
tools, whose input is any text."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gateway.tool_calls import ObjectEnd
from gateway.upstream.call_ids import LONGEST, made_id
from gateway.upstream.kept import Gathered, Room
from memories.errors import TooLarge
from memories.storable import storable_text
from memories.tools import ToolCall

MOST_CALLS = 128  # of one step


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCall(ToolCall):
    """A complete call. `custom`: of a custom tool; `arguments` is its input."""

    custom: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the call in the form of OpenAI messages."""
        return {"id": self.id, **called(self.name, self.arguments, custom=self.custom)}


def called(name: str, arguments: str, *, custom: bool) -> dict[str, Any]:
    """Return a call without its id."""
    if custom:
        return {"type": "custom", "custom": {"name": name, "input": arguments}}
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


@dataclass(slots=True)
class GatheredCall:
    """A call whose name and arguments arrive in pieces."""

    more: Gathered
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    end: ObjectEnd = field(default_factory=ObjectEnd)
    custom: bool = False


class GatheredCalls:
    """The calls of a step so far, in the order in which they began. `count` is called with the size of each piece."""

    def __init__(self, room: Room, count: Callable[[str], None]) -> None:
        self.begun: list[GatheredCall] = []
        self._room = room
        self._count = count
        self._numbered: dict[int, GatheredCall] = {}

    def take(self, pieces: Any, *, whole: bool) -> None:
        """Add the `tool_calls` of a delta, or with `whole` those of a complete message. Raises TooLarge."""
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict):
                self._take(piece, whole=whole)

    def named(self) -> dict[str, GatheredCall]:
        """Return the calls that have a name, by id. A call whose id is missing, too long or that of another call gets a
        new one, since results are matched by id."""
        found: dict[str, GatheredCall] = {}
        for call in self.begun:
            if not call.name:
                continue
            usable = call.id and call.id not in found and len(call.id) <= LONGEST
            found[call.id if usable else made_id(call.id, taken=found)] = call
        return found

    def _take(self, piece: dict[str, Any], *, whole: bool) -> None:
        function, custom = piece.get("function"), piece.get("custom")
        is_custom = isinstance(custom, dict)
        part = custom if isinstance(custom, dict) else function if isinstance(function, dict) else {}
        call_id = storable_text(str(piece.get("id") or ""))
        name = storable_text(str(part.get("name") or ""))
        given = part.get("input" if is_custom else "arguments") or ""
        arguments = storable_text(given if isinstance(given, str) else json.dumps(given))
        for text in (call_id, name, arguments):
            self._count(text)
        call = self._call_of(piece.get("index"), call_id, name, whole=whole)
        call.id = call.id or call_id
        call.custom = call.custom or is_custom
        call.more.take_call(piece)
        if name != call.name and not any(call.arguments):  # some servers repeat it with every piece
            call.name += name
        call.arguments.append(arguments)

    def _call_of(self, index: Any, call_id: str, name: str, *, whole: bool) -> GatheredCall:
        """Return the call that a piece continues, or a new one."""
        numbered = isinstance(index, int) and not whole
        known = None
        if not whole:
            known = self._numbered.get(index) if numbered else self._unnumbered(call_id, name)
        if known is not None and not (numbered and _begins(known, call_id, name)):
            return known
        begun = GatheredCall(Gathered(self._room))
        self.begun.append(begun)
        if numbered:
            self._numbered[index] = begun
        if len(self.begun) > MOST_CALLS:
            raise TooLarge(f"The model made more than {MOST_CALLS} tool calls in one step.")
        return begun

    def _unnumbered(self, call_id: str, name: str) -> GatheredCall | None:
        """Return the call that a piece without an index continues; None if the piece begins a new call, which it does
        if both it and the last call have a name."""
        for known in reversed(self.begun):
            if call_id and known.id == call_id:
                return known
        last = self.begun[-1] if self.begun else None
        return None if last is None or (name and last.name) else last


def _begins(known: GatheredCall, call_id: str, name: str) -> bool:
    """Return True if a piece with the index of a known call begins another one, as on servers that count no further
    than 0: it has a name, and another id, or none while the known call is complete."""
    if not name or not known.name:
        return False
    if call_id:
        return bool(known.id) and known.id != call_id
    return known.end.reached(known.arguments)

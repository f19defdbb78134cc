"""Checks the shape of tool calls in messages: when a client's messages are read, and when stored ones are read, since
some rows are older than the check."""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

_UNREAD = 20_000  # characters of arguments beyond which their ends are enough to know an object by
# What tells where an object ends: a backslash with the sign that it escapes, if that is in the same piece, and others.
_SIGNS = re.compile(r'\\.?|["{}\[\]]', re.DOTALL)
_NESTING = {"{": 1, "[": 1, "}": -1, "]": -1}
_PARTS = {"function": ("name", "arguments"), "custom": ("name", "input")}


def call_fault(call: Any) -> tuple[str, str] | None:
    """Return what is wrong with a call and what is expected, None if nothing is. Missing fields are not wrong, since
    clients send calls without a type or with empty arguments."""
    if not isinstance(call, dict):
        return "", "an object"
    for name in ("id", "type"):
        if not _is_text(call.get(name)):
            return f".{name}", "text"
    for kind, names in _PARTS.items():
        part = call.get(kind)
        if part is not None and not isinstance(part, dict):
            return f".{kind}", "an object"
        for name in names:
            if not _is_text((part or {}).get(name)):
                return f".{kind}.{name}", "text"
    return None


def calls_in(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tool calls in a message of unknown form."""
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def object_in(arguments: str) -> dict[str, Any]:
    """Return the object that the arguments of a call are. Nothing and `null` are an empty one, and an object that was
    written as a JSON text is that object; what a model wrote otherwise stands in one, under `arguments`."""
    given: Any = arguments.strip() or "{}"
    for _ in range(2):
        if isinstance(given, str):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                return {"arguments": arguments}
    return given if isinstance(given, dict) else {} if given is None else {"arguments": given}


def object_text(arguments: Any) -> str:
    """Return the arguments of a call as servers take them: what is an object as it was written, anything else as the
    text of `object_in`. Of very long ones only the ends are looked at."""
    text = arguments if isinstance(arguments, str) else ""
    if len(text) > _UNREAD and text[0] == "{" and text[-1] == "}":
        return text
    try:
        is_object = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        is_object = False
    return text if is_object else json.dumps(object_in(text), ensure_ascii=False)


class ObjectEnd:
    """Tells whether a JSON object that comes in pieces is complete. Each piece is read once."""

    def __init__(self) -> None:
        self._read = 0  # pieces
        self._is_object: bool | None = None  # None before the first sign
        self._depth = 0  # of brackets
        self._in_text = self._escaped = False

    def reached(self, pieces: Sequence[str]) -> bool:
        """Return True if these pieces, which are those of the last call and more, hold the whole object. What is not
        an object is never complete."""
        for piece in islice(pieces, self._read, None):
            if self._is_object is None and (begin := piece.lstrip()):
                self._is_object = begin.startswith("{")
            if self._is_object:
                self._take(piece)
        self._read = len(pieces)
        return bool(self._is_object) and self._depth == 0

    def _take(self, piece: str) -> None:
        begin = int(self._escaped)  # the first sign of this piece, if the last one ended with a backslash
        self._escaped = self._escaped and not piece
        for match in _SIGNS.finditer(piece, begin):
            sign = match.group()
            if sign == '"':
                self._in_text = not self._in_text
            elif sign == "\\":
                self._escaped = True
            elif not self._in_text:
                self._depth += _NESTING.get(sign, 0)


def sound_calls(given: Any) -> list[dict[str, Any]]:
    """Return the valid calls in a stored `tool_calls`."""
    return [call for call in given if call_fault(call) is None] if isinstance(given, list) else []


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)

"""Reads tools and tool calls in requests and messages. Calls are validated: those of clients, and stored ones, since
some rows are older than the check."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from memories.json_input import finite

_MAX_PARSED = 20_000  # characters; longer arguments that begin and end with braces count as an object
# The characters that determine where an object ends; a backslash with the character it escapes, if in the same piece.
_STRUCTURE = re.compile(r'\\.?|["{}\[\]]', re.DOTALL)
# A text, whose end may be missing, or a word or number outside of one.
_WORDS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*("|\\?\Z)|[\w+.-]+', re.DOTALL)
_WORD = re.compile(r"[\w+.-]*")
_NESTING = {"{": 1, "[": 1, "}": -1, "]": -1}
_CONSTANTS: Mapping[str, None] = {}  # NaN and Infinity, which are not JSON, become null
_PARTS = {"function": ("name", "arguments"), "custom": ("name", "input")}


def call_fault(call: Any) -> tuple[str, str] | None:
    """Return the path of a call's invalid field and the expected type, or None if the call is valid. Fields may be
    missing, since clients send calls without a type or with empty arguments."""
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
    """Return the tool calls in a message, which need not be well-formed."""
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def tool_names(tools: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Return the names of the tools in a request, of whichever type they are."""
    described = [part for tool in tools for part in (tool, tool.get("function"), tool.get("custom"))]
    names = (part.get("name") for part in described if isinstance(part, dict))
    return frozenset(name for name in names if isinstance(name, str))


def object_in(arguments: str) -> dict[str, Any]:
    """Return the arguments of a call as an object. Empty text and `null` become an empty object, an object in a JSON
    string becomes that object, and anything else becomes the value of `arguments` in a new one."""
    given: Any = arguments.strip() or "{}"
    for _ in range(2):
        if isinstance(given, str):
            try:
                given = json.loads(given, parse_constant=_CONSTANTS.get, parse_float=finite)
            except (ValueError, RecursionError):
                return {"arguments": arguments}
    return given if isinstance(given, dict) else {} if given is None else {"arguments": given}


def object_text(arguments: Any) -> str:
    """Return the arguments of a call as servers accept them: an object unchanged, anything else as the JSON of
    `object_in`. Very long arguments are recognised by their ends."""
    text = arguments if isinstance(arguments, str) else ""
    if len(text) > _MAX_PARSED and text[0] == "{" and text[-1] == "}":
        return text
    try:
        is_object = isinstance(json.loads(text, parse_constant=int), dict)  # int raises ValueError for NaN
    except (ValueError, RecursionError):
        is_object = False
    return text if is_object else json.dumps(object_in(text), ensure_ascii=False)


class ObjectEnd:
    """Detects whether a JSON object that arrives in pieces is complete. Each piece is read once."""

    def __init__(self) -> None:
        self._read = 0  # number of pieces read
        self._is_object: bool | None = None  # None before the first character
        self._depth = 0  # nesting of brackets
        self._in_text = self._escaped = False

    def reached(self, pieces: Sequence[str]) -> bool:
        """Return True if the pieces contain the whole object. They must begin with those of the previous call. A value
        that is not an object is never complete."""
        for piece in pieces[self._read :]:
            if self._is_object is None and (begin := piece.lstrip()):
                self._is_object = begin.startswith("{")
            if self._is_object:
                self._take(piece)
        self._read = len(pieces)
        return bool(self._is_object) and self._depth == 0

    def _take(self, piece: str) -> None:
        begin = int(self._escaped)  # skips the first character if the last piece ended with a backslash
        self._escaped = self._escaped and not piece
        for match in _STRUCTURE.finditer(piece, begin):
            sign = match.group()
            if sign == '"':
                self._in_text = not self._in_text
            elif sign == "\\":
                self._escaped = True
            elif not self._in_text:
                self._depth += _NESTING.get(sign, 0)


class FiniteNumbers:
    """Replaces NaN, infinities and numbers that are too large with null in JSON that arrives in pieces, as `object_in`
    does in a whole text. Each piece is read once, however long a word becomes."""

    def __init__(self) -> None:
        self._begun = ""  # the quotation mark of the text that the next piece may continue
        self._word: list[str] = []  # the pieces of the word that the next one may continue

    def take(self, piece: str) -> str:
        """Return what can be sent after the next piece."""
        if self._word and _WORD.fullmatch(piece):
            self._word.append(piece)
            return ""
        sent_before = bool(self._begun)
        text = "".join((self._begun, *self._word, piece))
        self._begun, self._word = "", []
        return _WORDS.sub(self._replaced, text)[sent_before:]

    def end(self) -> str:
        """Return the rest, after the last piece."""
        return self._begun[1:] + _finite_word("".join(self._word))

    def _replaced(self, match: "re.Match[str]") -> str:
        word, end = match.group(0, 1)
        if end is not None and end != '"':  # the text continues; a backslash waits for the character it escapes
            self._begun = '"' + end
            return word.removesuffix(end)
        if end is None and match.end() == len(match.string):
            self._word = [word]
            return ""
        return word if end else _finite_word(word)


def _finite_word(word: str) -> str:
    try:
        value = json.loads(word, parse_constant=_CONSTANTS.get, parse_float=finite)
    except ValueError:
        return word
    return "null" if value is None else word


def valid_calls(given: Any) -> list[dict[str, Any]]:
    """Return the valid calls in a stored `tool_calls`."""
    return [call for call in given if call_fault(call) is None] if isinstance(given, list) else []


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)

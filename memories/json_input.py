"""Parsing of untrusted JSON, within the bounds of memories.limits: every body, tool call and import line.
The result can be stored in any database, sent on, and walked by recursive code."""

import json
import math
from collections.abc import Callable
from json.decoder import JSONArray, JSONObject  # type: ignore[attr-defined]
from typing import Any

from memories.errors import InvalidRequest
from memories.json_output import LongTextEncoder
from memories.limits import JSON_DEPTH, JSON_NUMBER, JSON_VALUES
from memories.storable import storable

_MARKS = b",[{"  # a text has at most one value more than these
_BUT_MARKS = bytes(set(range(256)).difference(_MARKS))
_BUT_MARKS_AND_QUOTES = bytes(set(_BUT_MARKS).difference(b'"'))
_AS_DIGITS = bytes(ord("0") if chr(code).isdecimal() else ord(" ") for code in range(128)).ljust(256)
_MANY = 10_000
_TOO_MANY_DIGITS = b"0" * (JSON_NUMBER + 1)
# Long texts are examined and parsed in parts, between which other threads may run.
_SLICE = 500_000
_MIN_CHARACTERS_PER_MARK = 200


def read_json(raw: bytes | str, *, what: str = "The body", repair: bool = False) -> Any:
    """Return the value of a JSON text. `what` names the text in errors. A byte order mark before it is ignored.

    Lone surrogates are refused, or replaced with `repair`. Raises InvalidRequest for text that is not UTF-8 or not
    JSON, and for more values, deeper nesting or longer numbers than the limits allow."""
    data = raw if isinstance(raw, bytes) else raw.encode("utf-8", "surrogatepass")
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest(f"{what} is not valid JSON.") from None
    starts = range(0, len(data), _SLICE)
    marks = b"".join([data[start : start + _SLICE].translate(None, _BUT_MARKS) for start in starts])
    if len(marks) > JSON_VALUES and _values(data) > JSON_VALUES:
        raise InvalidRequest(f"{what} holds more than {JSON_VALUES} values.")
    # Calling a Python function for each of many numbers would take longer than all the rest.
    has_long = len(marks) < _MANY or any(
        _TOO_MANY_DIGITS in data[start : start + _SLICE + JSON_NUMBER].translate(_AS_DIGITS) for start in starts
    )
    decoder = _InParts if len(text) > max(_SLICE, _MIN_CHARACTERS_PER_MARK * len(marks)) else json.JSONDecoder
    parse_int = _int if has_long else None
    try:
        value = decoder(parse_int=parse_int, parse_float=_float, parse_constant=_constant).decode(text)
    except _RefusedNumber as error:
        raise InvalidRequest(f"{what} holds {error}.") from None
    except ValueError:
        raise InvalidRequest(f"{what} is not valid JSON.") from None
    except RecursionError:
        raise _too_deep(what) from None
    if len(marks) - marks.count(b",") > JSON_DEPTH:
        _check_depth(value, what)
    # Only escapes can produce lone surrogates and NULs, which databases refuse. Testing for a backslash is fastest.
    if "\\" not in text or "\\u" not in text:
        return value
    has_surrogates = _has_surrogates(value)
    if has_surrogates and not repair:
        raise InvalidRequest(f"{what} holds a lone surrogate (half a character).")
    return storable(value) if has_surrogates or "\\u0000" in text else value


def finite(text: str) -> float | None:
    """Return a number, for `parse_float`, or None if it is too large (1e999): JSON has no infinity to write it with."""
    number = float(text)
    return number if math.isfinite(number) else None


class _InParts(json.JSONDecoder):
    """Parses the fields of the outermost object, and the items of lists there, in a call each: the C code parses
    everything in one, for 10 to 50 ms of 12 MB. Each call takes as long as parsing some ten values."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._scan: Callable[[str, int], Any] = self.scan_once  # type: ignore[has-type]  # of the C code
        self.scan_once = self._scan_outermost

    def _scan_outermost(self, text: str, start: int) -> Any:
        if text.startswith("{", start):
            return JSONObject((text, start + 1), self.strict, self._scan_field, None, None)
        return self._scan_field(text, start)

    def _scan_field(self, text: str, start: int) -> Any:
        return JSONArray((text, start + 1), self._scan) if text.startswith("[", start) else self._scan(text, start)


def _values(data: bytes) -> int:
    """Return an upper bound of the number of values, not counting marks inside strings."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Adjacent quotes do not change what is inside and outside of strings.
    return sum(map(len, data.translate(None, _BUT_MARKS_AND_QUOTES).replace(b'""', b"").split(b'"')[::2]))


def _check_depth(data: Any, what: str) -> None:
    level = [data] if isinstance(data, dict | list) else []
    for _ in range(JSON_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return
    raise _too_deep(what)


def _too_deep(what: str) -> InvalidRequest:
    return InvalidRequest(f"{what} has more than {JSON_DEPTH} levels of lists and objects.")


def _has_surrogates(data: Any) -> bool:
    try:
        json.dumps(data, ensure_ascii=False, cls=LongTextEncoder).encode()
    except UnicodeEncodeError:
        return True
    return False


class _RefusedNumber(ValueError):
    """A number that is refused. The message completes the sentence "The body holds …"."""


_TOO_LONG = _RefusedNumber(f"a number of more than {JSON_NUMBER} characters")


def _int(text: str) -> int:
    if len(text) > JSON_NUMBER:
        raise _TOO_LONG
    return int(text)


def _float(text: str) -> float:
    if len(text) > JSON_NUMBER:
        raise _TOO_LONG
    if (number := finite(text)) is None:
        raise _RefusedNumber("a number that is too large")
    return number


def _constant(name: str) -> None:
    raise _RefusedNumber(f"{name}, which is not a JSON number")

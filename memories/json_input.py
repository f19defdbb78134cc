"""JSON from outside: every body, tool call and import line is read here, with the bounds of memories.limits.
What is returned can be stored in any database, sent on, and walked by recursive code."""

import json
from typing import Any

from memories.errors import InvalidRequest
from memories.limits import JSON_DEPTH, JSON_NUMBER, JSON_VALUES
from memories.storable import storable


def read_json(raw: bytes | str, *, what: str = "The body", repair: bool = False) -> Any:
    """Return the value of a JSON text. `what` names the text in errors.

    Half characters (lone surrogates) are refused, or with `repair` replaced. Raises InvalidRequest for text that is not
    UTF-8 or not JSON, and for more values, deeper nesting or longer numbers than the limits allow."""
    try:
        text = raw.decode() if isinstance(raw, bytes) else raw
    except UnicodeDecodeError:
        raise InvalidRequest(f"{what} is not valid JSON.") from None
    if sum(map(text.count, ",[{")) > JSON_VALUES and _values(text) > JSON_VALUES:
        raise InvalidRequest(f"{what} holds more than {JSON_VALUES} values.")
    try:
        data = json.loads(text, parse_int=_whole, parse_float=_decimal, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise InvalidRequest(f"{what} is not valid JSON.") from None
    _check_depth(data, text, what)
    if "\\u" not in text:
        return data
    # Only escapes can smuggle in half a character or a NUL, which databases refuse.
    if not repair and _has_half_characters(data):
        raise InvalidRequest(f"{what} holds half a character (a lone surrogate).")
    return storable(data)


def _values(text: str) -> int:
    """Return an upper bound of the number of values outside of strings."""
    outside = text.replace("\\\\", "").replace('\\"', "").split('"')[::2]
    return sum(part.count(",") + part.count("[") + part.count("{") for part in outside)


def _check_depth(data: Any, text: str, what: str) -> None:
    if text.count("[") + text.count("{") <= JSON_DEPTH:
        return
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
    raise InvalidRequest(f"{what} has more than {JSON_DEPTH} levels of lists and objects.")


def _has_half_characters(data: Any) -> bool:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _whole(text: str) -> int:
    if len(text) > JSON_NUMBER:
        raise ValueError("too many digits")
    return int(text)


def _decimal(text: str) -> float:
    number = float(text) if len(text) <= JSON_NUMBER else float("inf")
    if number in (float("inf"), float("-inf")):
        raise ValueError("not a number that JSON can hold")
    return number


def _refuse(name: str) -> None:
    raise ValueError(name)

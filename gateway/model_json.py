"""Finds JSON objects in model answers: in fences, between words, several in a row, or with trailing commas."""

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_TRIES = 200  # braces at which parsing is tried, so that an answer full of code takes little time
_MAX_REPAIRS = 5
_TOKENS = re.compile(r'\\.|"|,(?=\s*[}\]])', re.DOTALL)
_decoder = json.JSONDecoder(strict=False)


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text in order, without those nested in another one."""
    start, repairs = text.find("{"), 0
    for _ in range(MAX_TRIES):
        if start < 0:
            return
        data, end = _object_at(text, start)
        if data is None and repairs < _MAX_REPAIRS:
            repairs += 1
            rest = _without_trailing_commas(text[start:])
            data, end = _object_at(rest, 0)
            if data is not None:
                text = rest
        if data is not None:
            yield data
        start = text.find("{", end if data is not None else start + 1)


def _object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    try:
        data, end = _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start
    return (data if isinstance(data, dict) else None), end


def _without_trailing_commas(text: str) -> str:
    """Return the text without commas before closing brackets, except within strings."""
    kept: list[str] = []
    at, in_string = 0, False
    for token in _TOKENS.finditer(text):
        if token[0] == '"':
            in_string = not in_string
        elif token[0] == "," and not in_string:
            kept.append(text[at : token.start()])
            at = token.end()
    return "".join((*kept, text[at:]))

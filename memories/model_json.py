"""Finds JSON objects in model answers: in fences, between words, several in a row, with comments or trailing commas."""

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_TRIES = 200  # braces at which parsing is tried, so that an answer full of code takes little time
_MAX_REPAIRS = 5
_TOKENS = re.compile(r'"(?:\\.|[^"\\])*+"?|//[^\n]*|,(?=(?:\s|//[^\n]*)*+[}\]])', re.DOTALL)
_decoder = json.JSONDecoder(strict=False)


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text in order, without those nested in another one."""
    return (data for _, _, data in located_objects_in(text))


def located_objects_in(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the same objects, each with its start (behind what was repaired approximately) and the text between the one
    before and it."""
    start, after, repairs, gone = text.find("{"), 0, 0, 0
    for _ in range(MAX_TRIES):
        if start < 0:
            return
        data, end = _object_at(text, start)
        read, at = text, start
        if data is None and repairs < _MAX_REPAIRS:
            repairs += 1
            rest = _repaired(text[start:])
            data, end = _object_at(rest, 0)
            if data is not None:
                text, gone, start = rest, gone + start, 0
        if data is not None:
            yield gone + start, read[after:at], data
            after = end
        start = text.find("{", end if data is not None else start + 1)


def _object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    try:
        data, end = _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start
    return (data if isinstance(data, dict) else None), end


def _repaired(text: str) -> str:
    """Return the text without comments and without commas before closing brackets, except within strings."""
    return _TOKENS.sub(lambda token: token[0] if token[0][0] == '"' else "", text)

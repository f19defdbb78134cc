"""JSON objects in what models answer: in fences, between words, one after another, with a comma before a bracket."""

import json
import re
from collections.abc import Iterator
from typing import Any

MOST_TRIES = 200  # braces at which an object is looked for, so that a page of code takes little time
_MOST_REPAIRS = 5
_TOKENS = re.compile(r'\\.|"|,(?=\s*[}\]])', re.DOTALL)
_decoder = json.JSONDecoder(strict=False)


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, in their order, without those that stand within another one."""
    start, repairs = text.find("{"), 0
    for _ in range(MOST_TRIES):
        if start < 0:
            return
        data, end = _object_at(text, start)
        if data is None and repairs < _MOST_REPAIRS:
            repairs += 1
            rest = _without_last_commas(text[start:])
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


def _without_last_commas(text: str) -> str:
    """Return the text without commas that stand before a closing bracket, unless they are within a string."""
    kept: list[str] = []
    at, in_string = 0, False
    for token in _TOKENS.finditer(text):
        if token[0] == '"':
            in_string = not in_string
        elif token[0] == "," and not in_string:
            kept.append(text[at : token.start()])
            at = token.end()
    return "".join((*kept, text[at:]))

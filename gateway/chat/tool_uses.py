"""Formats stored tool calls for people: name, arguments and result, for the transcript and the admin."""

import json
from collections.abc import Mapping
from typing import Any

from memories.storable import storable

_TRUNCATED = "… (cut here)"


def tool_use(
    call: Mapping[str, Any], results: Mapping[str, str], *, max_chars: int, words: bool = True
) -> dict[str, Any]:
    """Return a stored call and its result, each as (name, value) pairs, or else as text truncated to `max_chars`; only
    its name unless the reader may see `words`. `results` maps call ids to texts."""
    called = call.get("function") or call.get("custom") or {}
    source = str(called.get("arguments", called.get("input", "")))
    key = str(call.get("id", ""))
    source, result = (source, results.get(key, "")) if words else ("", "")
    arguments, result_pairs = _pairs(source, max_chars), _pairs(result, max_chars)
    return {
        "name": str(called.get("name", "tool")),
        "arguments": arguments,
        "arguments_text": "" if arguments else _truncate(source, max_chars),
        "result": result_pairs,
        "result_text": "" if result_pairs else _truncate(result, max_chars),
        "answered": key in results,
    }


def _pairs(text: str, max_chars: int) -> list[tuple[str, str]]:
    """Return a JSON object as (name, value) pairs; an empty list for any other or a longer text."""
    if not text.startswith("{") or len(text) > max_chars:
        return []
    try:
        found = storable(json.loads(text))
        return [(name.replace("_", " "), _value(value)) for name, value in found.items() if value not in (None, "")]
    except (ValueError, RecursionError):
        return []


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(map(str, value)) or "none"
    return json.dumps(value, ensure_ascii=False)


def _truncate(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[:max_chars] + _TRUNCATED

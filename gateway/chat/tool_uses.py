"""Calls of tools as people read them: name, arguments and result, from the stored messages. For the transcript, and for
a turn's page in the admin."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Pairs = Sequence[tuple[str, str]]
_CUT = "… (cut here)"


def tool_use(
    call: Mapping[str, Any], results: Mapping[str, str], *, longest: int, words: bool = True
) -> dict[str, Any]:
    """Return a stored call with its result, each as names and values or else as text, cut to `longest` characters;
    without `words` only its name. `results` are texts by the ids of calls."""
    called = call.get("function") or call.get("custom") or {}
    given = str(called.get("arguments", called.get("input", "")))
    key = str(call.get("id", ""))
    shown, came = (given, results.get(key, "")) if words else ("", "")
    arguments, back = _pairs(shown, longest), _pairs(came, longest)
    return {
        "name": str(called.get("name", "tool")),
        "arguments": arguments,
        "arguments_text": "" if arguments else _short(shown, longest),
        "result": back,
        "result_text": "" if back else _short(came, longest),
        "answered": key in results,
    }


def _pairs(text: str, longest: int) -> list[tuple[str, str]]:
    """Return a JSON object as names and values; nothing for any other text, or for a very long one."""
    if not text.startswith("{") or len(text) > longest:
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [(str(name).replace("_", " "), _value(value)) for name, value in found.items() if value not in (None, "")]


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(map(str, value)) or "none"
    return json.dumps(value, ensure_ascii=False)


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + _CUT

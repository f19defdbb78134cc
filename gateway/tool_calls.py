"""Calls of tools within a message, and their shape: it is checked where a client's messages enter, and again where
stored ones are read, for rows that are older than the check."""

from collections.abc import Mapping
from typing import Any

_PARTS = {"function": ("name", "arguments"), "custom": ("name", "input")}


def call_fault(call: Any) -> tuple[str, str] | None:
    """Return where a call is wrong and what should be there, None for a sound one. What is left out is not wrong:
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
    """Return the calls of tools that a foreign message holds, of whatever form they are."""
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def sound_calls(given: Any) -> list[dict[str, Any]]:
    """Return the calls among what a message holds as `tool_calls`; what is none is left out."""
    return [call for call in given if call_fault(call) is None] if isinstance(given, list) else []


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)

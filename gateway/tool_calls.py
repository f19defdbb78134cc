"""Checks the shape of tool calls in messages: when a client's messages are read, and when stored ones are read, since
some rows are older than the check."""

from collections.abc import Mapping
from typing import Any

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


def sound_calls(given: Any) -> list[dict[str, Any]]:
    """Return the valid calls in a stored `tool_calls`."""
    return [call for call in given if call_fault(call) is None] if isinstance(given, list) else []


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)

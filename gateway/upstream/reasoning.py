"""Extracts a model's reasoning, for which every server uses another field."""

from collections.abc import Mapping
from typing import Any

_TEXTS = ("reasoning_content", "reasoning")


def reasoning_in(part: Mapping[str, Any]) -> str:
    """Return the reasoning in a delta or a message; "" if there is none, or if it is encrypted."""
    for name in _TEXTS:
        if isinstance(part.get(name), str) and part[name]:
            return str(part[name])
    if text := _thinking(part):  # some proxies
        return text
    details = part.get("reasoning_details")
    if isinstance(details, list):
        return "".join(_text(item, ("text", "summary")) for item in details)
    content = part.get("content")
    if isinstance(content, list):  # Mistral
        return "".join(_thinking(item) for item in content if isinstance(item, dict) and item.get("type") == "thinking")
    return ""


def without_thinking(text: str) -> str:
    """Return a text without a leading <think> section: some servers leave it in the text, and some of them omit the
    opening tag. Return "" if the section is never closed."""
    thinking, end_tag, rest = text.partition("</think>")
    has_start_tag = thinking.lstrip().startswith("<think>")
    if end_tag and (has_start_tag or "<think>" not in thinking):
        return rest.lstrip()
    return "" if has_start_tag else text


def _thinking(item: Mapping[str, Any]) -> str:
    value = item.get("thinking")
    if isinstance(value, list):
        return "".join(_text(part, ("text",)) for part in value)
    return value if isinstance(value, str) else ""


def _text(item: Any, names: tuple[str, ...]) -> str:
    values = (item.get(name) for name in names) if isinstance(item, dict) else ()
    return next((text for text in values if isinstance(text, str)), "")

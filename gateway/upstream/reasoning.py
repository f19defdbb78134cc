"""A model's reasoning, for which each server has its own name."""

from collections.abc import Mapping
from typing import Any

_TEXTS = ("reasoning_content", "reasoning")


def reasoning_in(part: Mapping[str, Any]) -> str:
    """Return the reasoning in a delta or a message; "" if there is none, or if it is encrypted."""
    for name in _TEXTS:
        if isinstance(part.get(name), str) and part[name]:
            return str(part[name])
    if thought := _thinking(part):  # of some proxies
        return thought
    details = part.get("reasoning_details")
    if isinstance(details, list):
        return "".join(_text(item, ("text", "summary")) for item in details)
    content = part.get("content")
    if isinstance(content, list):  # Mistral's
        return "".join(_thinking(item) for item in content if isinstance(item, dict) and item.get("type") == "thinking")
    return ""


def without_thinking(text: str) -> str:
    """Return a text without the thinking that it begins with: some servers leave that in the text, between tags, and
    some leave out the first tag. Thinking that was cut off is all there is."""
    thought, tag, rest = text.partition("</think>")
    begins = thought.lstrip().startswith("<think>")
    if tag and (begins or "<think>" not in thought):
        return rest.lstrip()
    return "" if begins else text


def _thinking(item: Mapping[str, Any]) -> str:
    said = item.get("thinking")
    if isinstance(said, list):
        return "".join(_text(one, ("text",)) for one in said)
    return said if isinstance(said, str) else ""


def _text(item: Any, names: tuple[str, ...]) -> str:
    found = (item.get(name) for name in names) if isinstance(item, dict) else ()
    return next((text for text in found if isinstance(text, str)), "")

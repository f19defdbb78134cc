"""How many tokens a request will take: an estimate, the same for every upstream, on the safe side of four characters
a token (other scripts take more tokens per character)."""

import json
from collections.abc import Sequence
from typing import Any

from gateway.runs.fingerprint import text_of

CHARS_PER_TOKEN = 4
_PER_MESSAGE = 6


def estimate_text(text: str) -> int:
    """Tokens of a text: four ASCII characters a token, one and a half other ones."""
    plain = sum(1 for character in text if character < "\x80") if not text.isascii() else len(text)
    return plain // CHARS_PER_TOKEN + (len(text) - plain) * 2 // 3 + 1


def estimate_message(message: dict[str, Any]) -> int:
    """Tokens of a message with its tool calls; parts that are not text count with a flat amount."""
    content = message.get("content")
    size = estimate_text(text_of(content)) + _PER_MESSAGE
    if isinstance(content, list):
        size += 500 * sum(1 for part in content if isinstance(part, dict) and part.get("type") != "text")
    if calls := message.get("tool_calls"):
        size += estimate_text(json.dumps(calls))
    return size


def estimate(messages: Sequence[dict[str, Any]]) -> int:
    """Tokens of a request's messages."""
    return sum(map(estimate_message, messages))

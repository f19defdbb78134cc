"""How many tokens a request will take: the estimate of memories.tokens with what messages add to their texts."""

import json
from collections.abc import Sequence
from typing import Any

from gateway.runs.fingerprint import text_of
from memories.tokens import text_tokens

_PER_MESSAGE = 6


def estimate_message(message: dict[str, Any]) -> int:
    """Tokens of a message with its tool calls; parts that are not text count with a flat amount."""
    content = message.get("content")
    size = text_tokens(text_of(content)) + _PER_MESSAGE
    if isinstance(content, list):
        size += 500 * sum(1 for part in content if isinstance(part, dict) and part.get("type") != "text")
    if calls := message.get("tool_calls"):
        size += text_tokens(json.dumps(calls))
    return size


def estimate(messages: Sequence[dict[str, Any]]) -> int:
    """Tokens of a request's messages."""
    return sum(map(estimate_message, messages))

"""Estimates the tokens of requests: those of the texts (memories.tokens) and the overhead of messages."""

import json
from collections.abc import Sequence
from typing import Any

from gateway.messages import text_of
from gateway.upstream.dialects import dialect_of
from gateway.upstream.kept import kept_of
from memories.tokens import text_tokens

_PER_MESSAGE = 6
_NO_TARGET = ("", "")


def estimate_message(message: dict[str, Any], target: tuple[str, str] = _NO_TARGET) -> int:
    """Return the estimated tokens of a message with its tool calls. A part that is not text counts as 500. Kept fields
    count only if `target` is the upstream and model to which they are sent back."""
    content = message.get("content")
    size = text_tokens(text_of(content)) + _PER_MESSAGE
    if isinstance(content, list):
        size += 500 * sum(1 for part in content if isinstance(part, dict) and part.get("type") != "text")
    if calls := message.get("tool_calls"):
        size += text_tokens(json.dumps(calls))
    kept = kept_of(message)
    if kept is not None and kept.is_from(*target) and dialect_of(kept.upstream).replay_reasoning:
        size += text_tokens(json.dumps(kept.fields)) if kept.fields else 0
    return size


def estimate(messages: Sequence[dict[str, Any]], target: tuple[str, str] = _NO_TARGET) -> int:
    """Return the estimated tokens of messages for the upstream and model `target`."""
    return sum(estimate_message(message, target) for message in messages)

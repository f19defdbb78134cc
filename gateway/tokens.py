"""Estimates the tokens of a request: memories.tokens, and what messages add to their texts."""

import json
from collections.abc import Sequence
from typing import Any

from gateway.runs.fingerprint import text_of
from gateway.upstream.dialects import dialect_of
from gateway.upstream.kept import kept_of
from memories.tokens import text_tokens

_PER_MESSAGE = 6
_NOBODY = ("", "")


def estimate_message(message: dict[str, Any], asked: tuple[str, str] = _NOBODY) -> int:
    """Return the estimated tokens of a message with its tool calls; parts that are not text count with a fixed number.
    Kept fields count only if `asked` is the upstream and model that they are sent back to."""
    content = message.get("content")
    size = text_tokens(text_of(content)) + _PER_MESSAGE
    if isinstance(content, list):
        size += 500 * sum(1 for part in content if isinstance(part, dict) and part.get("type") != "text")
    if calls := message.get("tool_calls"):
        size += text_tokens(json.dumps(calls))
    kept = kept_of(message)
    if kept is not None and kept.is_from(*asked) and dialect_of(kept.upstream).replay_reasoning:
        size += text_tokens(json.dumps(kept.fields)) if kept.fields else 0
    return size


def estimate(messages: Sequence[dict[str, Any]], asked: tuple[str, str] = _NOBODY) -> int:
    """Tokens of a request's messages to an upstream and model."""
    return sum(estimate_message(message, asked) for message in messages)

"""Estimates the tokens of requests: those of the texts (memories.tokens) and the overhead of messages."""

import json
from collections.abc import Sequence
from typing import Any

from gateway.messages import other_parts, text_of
from gateway.upstream.dialects import dialect_of
from gateway.upstream.kept import kept_of
from gateway.upstream.request import ModelTarget
from memories.tokens import text_tokens

_PER_MESSAGE = 6


def estimate_message(message: dict[str, Any], target: ModelTarget | None = None) -> int:
    """Return the estimated tokens of a message with its tool calls. A part that is not text counts as 500. Kept fields
    count only if they are sent back to `target`."""
    content = message.get("content")
    size = text_tokens(text_of(content)) + _PER_MESSAGE + 500 * len(other_parts(content))
    if calls := message.get("tool_calls"):
        size += text_tokens(json.dumps(calls))
    kept = kept_of(message)
    if kept and target and kept.is_from(target.upstream, target.model) and dialect_of(kept.upstream).replay_reasoning:
        size += text_tokens(json.dumps(kept.fields)) if kept.fields else 0
    return size


def estimate(messages: Sequence[dict[str, Any]], target: ModelTarget | None = None) -> int:
    """Return the estimated tokens of messages that are sent to `target`."""
    return sum(estimate_message(message, target) for message in messages)

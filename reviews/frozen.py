"""The frozen conversation: an immutable range of append-only messages, read once into the worker's memory."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from gateway.models import Message, Run
from reviews.models import ReviewRun

CONTEXT_MESSAGES = 4
CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenConversation:
    """What a review reads: messages for the model, and the hash that names them."""

    messages: tuple[dict[str, Any], ...]
    sha256: str


def read_frozen(review: ReviewRun, *, reviewed_through: int) -> FrozenConversation:
    """The turns since the last review that ended well, with some context before, cut at the token limit (oldest first).
    User and assistant words are verbatim; tool results are only mentioned: a web page is no evidence about a person."""
    first = max(1, reviewed_through + 1 - CONTEXT_MESSAGES)
    rows = (
        Message.objects.filter(
            owner_id=review.owner_id, session=review.session, seq__gte=first, seq__lte=review.last_seq
        )
        .exclude(kind=Message.Kind.COMMAND)
        .exclude(run__superseded=True)
        .exclude(run__state__in=[Run.State.FAILED, Run.State.RUNNING])
        .order_by("-seq")
    )
    left = settings.REVIEW_TOKENS * CHARS_PER_TOKEN
    messages: list[dict[str, Any]] = []
    for row in rows:
        message = as_evidence(row)
        if message is None:
            continue
        left -= len(message["content"])
        if left < 0 and messages:
            break
        messages.append(message)
    messages.reverse()
    digest = hashlib.sha256(json.dumps(messages, ensure_ascii=False).encode()).hexdigest()
    return FrozenConversation(messages=tuple(messages), sha256=digest)


def as_evidence(row: Message) -> dict[str, Any] | None:
    """A message as the reviewer sees it, or None for one that says nothing."""
    if row.role == Message.Role.TOOL:
        return {"role": "assistant", "content": f"[tool result, {len(row.text)} characters]"}
    return {"role": row.role, "content": row.text} if row.text.strip() else None

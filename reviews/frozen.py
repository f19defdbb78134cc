"""The frozen conversation: an immutable range of append-only messages, read once into the worker's memory.

It contains completed turns only, and none that the person edited or regenerated before the review began."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from gateway.models import Message, Run, Session
from gateway.runs.instructions import earlier_instructions
from gateway.runs.utterances import (
    answers_elsewhere,
    earlier_rows,
    newest_within,
    tool_result_words,
    unread_and_unstored,
    utterances_of,
)
from gateway.runs.wrappers import own_words
from gateway.tokens import estimate_message
from memories.evidence import Conversation, Utterance
from memories.tokens import characters_within
from reviews.models import Extraction, ReviewRun

CONTEXT_MESSAGES = 4
# More rows would exceed any token limit.
_MAX_MESSAGES = 2000
# For the note in the middle of a truncated message, and the overhead of a message.
_NOTE_TOKENS = 20
# HISTORY: messages that a client sent with its first request.
_CONVERSATION_KINDS = (Message.Kind.CHAT, Message.Kind.HISTORY)
# Messages of completed turns that are not superseded or temporary, and those without a turn.
_IN_CURRENT_TURNS = Q(run__isnull=True) | Q(run__state=Run.State.COMPLETED, run__superseded=False, run__temporary=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenConversation:
    """A review's input. `messages` are sent to the model, `sha256` is their hash, and `has_news` is True if the person
    wrote any of them since the last review. `evidence` has the same messages untruncated and with tool results, after
    earlier ones, which the answers may repeat."""

    messages: tuple[dict[str, Any], ...] = ()
    sha256: str = ""
    has_news: bool = False
    evidence: Conversation = field(default_factory=Conversation)


def reviewable(owner_id: UUID | OuterRef, session_id: UUID | OuterRef) -> QuerySet[Message]:
    """Return the messages that a review may read: those of current turns, and the client's history."""
    rows = Message.objects.filter(owner_id=owner_id, session_id=session_id)
    return rows.filter(_IN_CURRENT_TURNS).exclude(kind=Message.Kind.COMMAND)


def last_reviewable_seq(owner_id: UUID, session_id: UUID) -> int:
    """Return the number of the last message that a review could read now, which excludes those of an open turn."""
    return int(reviewable(owner_id, session_id).aggregate(last=Max("seq"))["last"] or 0)


def unreviewed(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """Return the sessions with a message of a person that no review has read."""
    messages = reviewable(OuterRef("owner_id"), OuterRef("pk")).filter(seq__gt=OuterRef("reviewed_through"))
    return sessions.filter(Exists(messages.filter(role=Message.Role.USER, kind__in=_CONVERSATION_KINDS)))


def read_frozen(review: ReviewRun, *, reviewed_through: int) -> FrozenConversation:
    """Return the turns since the last successful review and up to CONTEXT_MESSAGES messages before them; the oldest are
    dropped at the token limit. Messages are verbatim except for text that the client wrapped around them; of tool
    results only the length is shown, since a web page is no evidence about a person."""
    if review.session_id is None:
        return FrozenConversation()
    # The context does not include cleared or forgotten messages either.
    floor = Extraction.objects.filter(session_id=review.session_id).values_list("floor_seq", flat=True).first() or 0
    known = reviewable(review.owner_id, review.session_id).filter(seq__gt=floor, seq__lte=review.last_seq)
    rows = known.filter(seq__gt=reviewed_through - CONTEXT_MESSAGES)
    tokens_left = settings.REVIEW_TOKENS
    max_tokens = tokens_left // 2  # one giant message must not push out the message it answers
    messages: list[dict[str, Any]] = []
    has_news = False
    read: list[Message] = []
    for row in rows.order_by("-seq")[:_MAX_MESSAGES]:
        message = message_for_review(row)
        if message is None:
            read.append(row)  # its calls tell whose results follow
            continue
        if estimate_message(message) > max_tokens:
            message["content"] = truncate_middle(message["content"], max_tokens)
        tokens_left -= estimate_message(message)
        if tokens_left < 0:
            while messages and messages[-1]["role"] != "user":
                messages.pop()  # an answer whose question was dropped
            break
        messages.append(message)
        read.append(row)
        is_new = row.seq > reviewed_through and row.role == Message.Role.USER and row.kind in _CONVERSATION_KINDS
        has_news = has_news or is_new
    messages.reverse()
    digest = hashlib.sha256(json.dumps(messages, ensure_ascii=False).encode()).hexdigest()
    return FrozenConversation(
        messages=tuple(messages),
        sha256=digest,
        has_news=has_news,
        evidence=_evidence(review.owner_id, review.session_id, known, read[::-1]),
    )


def _evidence(owner_id: UUID, session_id: UUID, known: QuerySet[Message], read: list[Message]) -> Conversation:
    """Return the messages `read`, oldest first, after earlier ones of `known`, which their answers may repeat."""
    earlier = earlier_rows(known.filter(seq__lt=read[0].seq)) if read else []
    rows = [*earlier, *read]
    said = utterances_of(rows)
    before, page_left = newest_within(said[: len(earlier)])
    return session_evidence(owner_id, session_id, rows, [*before, *said[len(earlier) :]], unread=page_left)


def session_evidence(
    owner_id: UUID, session_id: UUID, rows: Sequence[Message], said: Sequence[Utterance], *, unread: bool = False
) -> Conversation:
    """Return what was said in these messages of a session as evidence. `unread`: more was said than is in `said`."""
    unread_there, unstored = unread_and_unstored(rows)
    return Conversation(
        said,
        answers=answers_elsewhere(owner_id, session_id),
        earlier_instructions=earlier_instructions(owner_id, session_id),
        unread=unread or unread_there,
        unstored=unstored,
    )


def message_for_review(row: Message) -> dict[str, Any] | None:
    """Return a message as it is sent to the reviewing model, or None if it is empty."""
    if row.role == Message.Role.TOOL:
        return {"role": "assistant", "content": tool_result_words(row.text)}
    text = own_words(row.text) if row.role == Message.Role.USER else row.text
    return {"role": row.role, "content": text} if text.strip() else None


def truncate_middle(text: str, max_tokens: int) -> str:
    """Return the beginning and the end of a text that is too long, with a note between them."""
    half = max(0, max_tokens - _NOTE_TOKENS) / 2
    head, tail = characters_within(text, half), characters_within(reversed(text), half)
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[len(text) - tail :]}"

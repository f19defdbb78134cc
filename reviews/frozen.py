"""The frozen conversation: an immutable range of append-only messages, read once into the worker's memory.

Only turns that completed and still stand are read: a failed or stopped turn was not completed, and a turn that was
edited or regenerated before the review began has been taken back by the person."""

import hashlib
import json
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from gateway.models import Message, Run, Session
from gateway.runs.answers import answers_elsewhere
from gateway.runs.wrappers import own_words
from gateway.tokens import estimate_message
from memories.evidence import Speaker, Utterance
from memories.tokens import characters_within
from memories.tools import TOOLS
from reviews.models import Extraction, ReviewRun

CONTEXT_MESSAGES = 4
# Rows beyond this many are out of any token limit.
_MOST_MESSAGES = 2000
# The note between the two ends of a message that was cut, and what a message adds to its text.
_TOKENS_OF_NOTE = 20
_TOOL_RESULT = re.compile(r"\[tool result, \d+ characters\]")
# Also what was said before a client brought the conversation here.
_SPOKEN = (Message.Kind.CHAT, Message.Kind.HISTORY)
STANDING = Q(run__isnull=True) | Q(run__state=Run.State.COMPLETED, run__superseded=False, run__temporary=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenConversation:
    """What a review reads: messages for the model, the hash that names them, and whether any of them was not reviewed
    before; and the same messages whole, with what tools said, for the evidence of what it writes, beside `answers` that
    were given elsewhere."""

    messages: tuple[dict[str, Any], ...] = ()
    sha256: str = ""
    has_news: bool = False
    spoken: tuple[Utterance, ...] = ()
    answers: tuple[str, ...] = ()


def reviewable(owner_id: UUID, session_id: UUID) -> QuerySet[Message]:
    """Return the messages a review may read: of completed turns that stand, and history that the client brought."""
    rows = Message.objects.filter(owner_id=owner_id, session_id=session_id)
    return rows.filter(STANDING).exclude(kind=Message.Kind.COMMAND)


def said_through(owner_id: UUID, session_id: UUID) -> int:
    """Return the number of the last message that a review could read now; what an open turn says comes later."""
    return int(reviewable(owner_id, session_id).aggregate(last=Max("seq"))["last"] or 0)


def unreviewed(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """Return those of the sessions in which a person said something that no review has read."""
    said = Message.objects.filter(
        STANDING,
        owner_id=OuterRef("owner_id"),
        session_id=OuterRef("pk"),
        seq__gt=OuterRef("reviewed_through"),
        role=Message.Role.USER,
        kind__in=_SPOKEN,
    )
    return sessions.filter(Exists(said))


def read_frozen(review: ReviewRun, *, reviewed_through: int) -> FrozenConversation:
    """Return the turns since the last review that ended well, with some context before, cut at the token limit (oldest
    first). User and assistant words are verbatim, without what a client put around them; tool results are only
    mentioned: a web page is no evidence about a person."""
    if review.session_id is None:
        return FrozenConversation()
    # Messages that were cleared or forgotten are left out of the context too.
    floor = Extraction.objects.filter(session_id=review.session_id).values_list("floor_seq", flat=True).first() or 0
    first = max(floor + 1, reviewed_through + 1 - CONTEXT_MESSAGES)
    rows = reviewable(review.owner_id, review.session_id).filter(seq__gte=first, seq__lte=review.last_seq)
    left = settings.REVIEW_TOKENS
    longest = left // 2  # one giant message must not hide the one it answers
    messages: list[dict[str, Any]] = []
    has_news = False
    read: list[Message] = []
    for row in rows.order_by("-seq")[:_MOST_MESSAGES]:
        message = as_evidence(row)
        if message is None:
            continue
        if estimate_message(message) > longest:
            message["content"] = cut(message["content"], longest)
        left -= estimate_message(message)
        if left < 0:
            while messages and messages[-1]["role"] != "user":
                messages.pop()  # an answer whose question is cut off
            break
        messages.append(message)
        read.append(row)
        is_new = row.seq > reviewed_through and row.role == Message.Role.USER and row.kind in _SPOKEN
        has_news = has_news or is_new
    messages.reverse()
    digest = hashlib.sha256(json.dumps(messages, ensure_ascii=False).encode()).hexdigest()
    return FrozenConversation(
        messages=tuple(messages),
        sha256=digest,
        has_news=has_news,
        spoken=spoken_of(read[::-1]),
        answers=tuple(answers_elsewhere(review.owner_id, review.session_id)),
    )


def spoken_of(rows: Sequence[Message]) -> tuple[Utterance, ...]:
    """Return messages as evidence sees them: whole, and with what tools said."""
    calls = [call for row in rows for call in row.calls]
    ours = {str(call.get("id")) for call in calls if (call.get("function") or {}).get("name") in TOOLS}
    return tuple(
        Utterance(
            speaker=_speaker(row, ours), text=row.text, session_id=row.session_id, run_id=row.run_id, message_id=row.pk
        )
        for row in rows
    )


def _speaker(row: Message, ours: Set[str]) -> Speaker:
    if row.role == Message.Role.USER:
        return Speaker.PERSON
    if row.role == Message.Role.TOOL:
        return Speaker.MEMORY if row.tool_call_id in ours else Speaker.TOOL
    return Speaker.TOOL if _TOOL_RESULT.fullmatch(row.text) else Speaker.ASSISTANT


def as_evidence(row: Message) -> dict[str, Any] | None:
    """Return a message as the reviewer sees it, or None for one that says nothing."""
    if row.role == Message.Role.TOOL:
        return {"role": "assistant", "content": tool_result_words(row.text)}
    words = own_words(row.text) if row.role == Message.Role.USER else row.text
    return {"role": row.role, "content": words} if words.strip() else None


def tool_result_words(result: str) -> str:
    """Return what stands for the result of a tool."""
    return f"[tool result, {len(result)} characters]"


def cut(text: str, most_tokens: int) -> str:
    """Return the beginning and the end of a message that is too long to be read whole."""
    half = max(0, most_tokens - _TOKENS_OF_NOTE) / 2
    head, tail = characters_within(text, half), characters_within(reversed(text), half)
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[len(text) - tail :]}"

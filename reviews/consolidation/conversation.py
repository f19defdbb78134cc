"""A session's conversation as extraction reads it: without secrets, and truncated in the middle to a token budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import scanning
from gateway.runs.utterances import utterances_of
from memories.evidence import Conversation
from memories.tokens import text_tokens
from reviews.frozen import message_for_review, reviewable, session_evidence

Item = dict[str, Any]
_ITEM_TOKENS = 8  # overhead of an item
_NOTE_TOKENS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """Items `{role, content}` in order, the number of the last message read, and the number of redacted secrets.
    `conversation` has the same messages as evidence for the notes."""

    items: tuple[Item, ...]
    through_seq: int
    redacted: int
    conversation: Conversation


def read_record(owner_id: UUID, session_id: UUID, *, floor: int, token_limit: int) -> SessionRecord:
    """Read a session's messages after `floor`. Tool results are replaced by placeholders."""
    items: list[Item] = []
    through = redacted = 0
    rows = list(reviewable(owner_id, session_id).filter(seq__gt=floor).order_by("seq"))
    for row in rows:
        through = row.seq
        if message := message_for_review(row):
            clean = scanning.redact(message["content"])
            redacted += clean.count
            items.append({"role": message["role"], "content": clean.text})
    return SessionRecord(
        items=tuple(keep_both_ends(items, token_limit)),
        through_seq=through,
        redacted=redacted,
        conversation=session_evidence(owner_id, session_id, rows, utterances_of(rows)),
    )


def keep_both_ends(items: Sequence[Item], token_limit: int) -> list[Item]:
    """Return the beginning and the end of a conversation, within the limit, and a note in place of the middle. The
    beginning states what the person wants, and the end what was agreed on."""
    if sum(map(_cost, items)) <= token_limit:
        return list(items)
    half = max(0, token_limit - _NOTE_TOKENS) // 2
    head, used = _take(items, half, from_end=False)
    tail, _ = _take(items[used:][::-1], half, from_end=True)
    left_out = len(items) - len(head) - len(tail)
    note = {"role": "note", "content": f"[… {left_out} messages in the middle are left out …]"}
    return [*head, note, *tail[::-1]]


def _take(items: Sequence[Item], budget: int, *, from_end: bool) -> tuple[list[Item], int]:
    taken: list[Item] = []
    for item in items:
        cost = _cost(item)
        if cost > budget:
            # Of a message that exceeds the rest of the budget, keep the part nearer to that end of the conversation.
            room = int((budget - _ITEM_TOKENS) * (4 if item["content"].isascii() else 1.5))
            if room > _ITEM_TOKENS:
                text = item["content"][-room:] if from_end else item["content"][:room]
                taken.append({**item, "content": f"… {text}" if from_end else f"{text} …"})
            break
        taken.append(item)
        budget -= cost
    return taken, len(taken)


def _cost(item: Item) -> int:
    return text_tokens(item["content"]) + _ITEM_TOKENS

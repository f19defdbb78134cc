"""Conversations that an import brings are sessions, which the gateway keeps: it registers here how they are looked up,
stored and removed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from memories.caller import KeyLimits
from memories.database.batches import Slices
from memories.imports.found import Conversation, ImportedMessage
from memories.registered import Registered

PART_MESSAGES = 500
"""Messages that are stored as one session, in one transaction; a longer conversation becomes several."""
PART_CHARACTERS = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationStore:
    """What the gateway does with conversations. `check` raises Conflict where sessions of the book cannot be stored;
    `known` returns those of the keys whose conversations the owner has; `add` stores some in the caller's
    transaction, for a change set; `remove` removes those of a change set that a key may use, and returns how many they
    were."""

    check: Callable[[UUID, str, KeyLimits], None]
    known: Callable[[UUID, Sequence[str]], set[str]]
    add: Callable[[UUID, str, KeyLimits, UUID, Sequence[Conversation]], None]
    remove: Callable[[UUID, UUID, KeyLimits], Slices[int]]


conversation_store = Registered[ConversationStore]("how conversations are kept")


def in_parts(conversation: Conversation) -> list[Conversation]:
    """Return a conversation as it is stored: whole, or cut into parts that are short enough for one transaction."""
    parts: list[list[ImportedMessage]] = [[]]
    size = 0
    for said in conversation.messages:
        if len(parts[-1]) >= PART_MESSAGES or (parts[-1] and size + len(said.text) > PART_CHARACTERS):
            parts.append([])
            size = 0
        parts[-1].append(said)
        size += len(said.text)
    if len(parts) == 1:
        return [conversation]
    return [_part(conversation, number, messages) for number, messages in enumerate(parts, start=1)]


def _part(whole: Conversation, number: int, messages: Sequence[ImportedMessage]) -> Conversation:
    if number == 1:
        return replace(whole, messages=messages)
    return replace(
        whole,
        key=f"{whole.key}-{number}",
        title=f"{whole.title} ({number})".strip(),
        began_at=next((said.at for said in messages if said.at), None),
        messages=messages,
    )

"""Store imported conversations. They become sessions, which belong to the gateway: it registers here how they are
looked up, stored and removed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from memories.caller import KeyLimits
from memories.database.batches import Slices
from memories.imports.contents import Conversation, ImportedMessage
from memories.registered import Registered

PART_MESSAGES = 500
"""Messages that are stored as one session, in one transaction. Longer conversations are split."""
PART_CHARACTERS = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationStore:
    """The gateway's functions for conversations. `check` raises Conflict if sessions cannot be stored for the book;
    `known` returns the keys, of those given, whose conversations the owner has; `add` stores conversations in the
    caller's transaction, for a change set; `index` then makes an owner's conversations searchable; `remove` deletes
    those of a change set within a key's limits and returns their number."""

    check: Callable[[UUID, str, KeyLimits], None]
    known: Callable[[UUID, Sequence[str]], set[str]]
    add: Callable[[UUID, str, KeyLimits, UUID, Sequence[Conversation]], None]
    index: Callable[[UUID], Slices[None]]
    remove: Callable[[UUID, UUID, KeyLimits], Slices[int]]


conversation_store = Registered[ConversationStore]("how conversations are kept")


def split_conversation(conversation: Conversation) -> list[Conversation]:
    """Split a conversation into parts that are short enough for one transaction each."""
    parts: list[list[ImportedMessage]] = [[]]
    size = 0
    for message in conversation.messages:
        if len(parts[-1]) >= PART_MESSAGES or (parts[-1] and size + len(message.text) > PART_CHARACTERS):
            parts.append([])
            size = 0
        parts[-1].append(message)
        size += len(message.text)
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
        began_at=next((message.at for message in messages if message.at), None),
        messages=messages,
    )

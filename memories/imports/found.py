"""What a reader finds in a file: memories, conversations, and entries that it refuses. Plain values; nothing is looked
up or written."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from memories.entry_rules import MAX_CATEGORY
from memories.errors import DomainError, TooLarge
from memories.limits import IMPORT_CONVERSATIONS, IMPORT_LINES, IMPORT_MESSAGES, KEYWORD_LENGTH, KEYWORDS_GIVEN
from memories.services import MemoryFields
from memories.storable import storable_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One memory to import. `line` orders it, `place` says where it stands. `number` names a memory of the book that it
    changes: the one that was made at `made_at`, if that is said. Another owner's export has other numbers."""

    line: int
    place: str
    number: int | None = None
    made_at: datetime | None = None
    book: str
    fields: MemoryFields


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMessage:
    """One message of a conversation."""

    role: str  # user | assistant
    text: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation that took place elsewhere. `key` is the same whenever the same conversation is read."""

    line: int
    place: str
    key: str
    title: str
    began_at: datetime | None
    messages: Sequence[ImportedMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """An entry that is left out, and why."""

    line: int
    place: str
    error: DomainError


@dataclass(slots=True, kw_only=True)
class Found:
    """Everything that one import brings, gathered by a reader; bounded."""

    book: str
    with_conversations: bool = True
    entries: list[Entry] = field(default_factory=list)
    conversations: list[Conversation] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    formats: dict[str, None] = field(default_factory=dict)  # those that were read, in order
    names: dict[str, str] = field(default_factory=dict)  # of projects, by their ids elsewhere
    line: int = 0
    _messages: int = 0

    def next_line(self) -> int:
        """Return the number of the next entry: one more than the last."""
        self.line += 1
        return self.line

    def memory(self, place: str, fields: MemoryFields) -> None:
        """Add a memory to the import's book, after those that were added before. Raises TooLarge."""
        self.add(Entry(line=self.next_line(), place=place, book=self.book, fields=fields))

    def add(self, entry: Entry) -> None:
        """Add a memory. Raises TooLarge for more than an import may have."""
        if len(self.entries) >= IMPORT_LINES:
            raise TooLarge(f"An import has at most {IMPORT_LINES} memories. Split it.", limit=IMPORT_LINES)
        self.entries.append(entry)

    def refuse(self, place: str, error: DomainError) -> None:
        """Leave an entry out. Raises TooLarge for more than an import may have."""
        if len(self.refused) >= IMPORT_LINES:
            raise TooLarge(f"More than {IMPORT_LINES} entries of the file cannot be read.", limit=IMPORT_LINES)
        self.refused.append(Refused(line=self.next_line(), place=place, error=error))

    def conversation(
        self,
        place: str,
        source: str,
        id: str,
        *,
        title: str,
        began_at: datetime | None,
        messages: Sequence[ImportedMessage],
    ) -> None:
        """Add a conversation, unless nobody said anything in it. Where it has no id, its words identify it.

        Raises TooLarge for more conversations or messages than an import may have."""
        spoken = [
            ImportedMessage(role=said.role, text=text, at=said.at)
            for said in messages
            if (text := storable_text(said.text).strip())
        ]
        if not spoken or not self.with_conversations:
            return
        self._messages += len(spoken)
        if len(self.conversations) >= IMPORT_CONVERSATIONS or self._messages > IMPORT_MESSAGES:
            raise TooLarge(
                f"An import has at most {IMPORT_CONVERSATIONS} conversations with {IMPORT_MESSAGES} messages. "
                "Split it.",
                limit=IMPORT_CONVERSATIONS,
            )
        words = id or "\n".join([title, *(said.text for said in spoken)])
        self.conversations.append(
            Conversation(
                line=self.next_line(),
                place=place,
                key=sha256(storable_text(f"{source}:{words}").encode()).hexdigest()[:32],
                title=" ".join(storable_text(title).split()),
                began_at=began_at or next((said.at for said in spoken if said.at), None),
                messages=spoken,
            )
        )


def memory_fields(
    content: str,
    *,
    target: str = "user",
    category: str = "",
    keywords: Sequence[str] = (),
    expires_at: datetime | None = None,
) -> MemoryFields:
    """Return the fields of an imported memory. Elsewhere categories and keywords may be longer and more: what does not
    fit is cut off, and a category that was cut off stays whole as a keyword."""
    category = " ".join(storable_text(category).split())
    words = [category, *keywords] if len(category) > MAX_CATEGORY else list(keywords)
    return MemoryFields(
        content=content,
        target=target,
        category=category[:MAX_CATEGORY].strip() or "general",
        keywords=[word[:KEYWORD_LENGTH] for word in words[:KEYWORDS_GIVEN]],
        pinned=False,
        expires_at=expires_at,
    )

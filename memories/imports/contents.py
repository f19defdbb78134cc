"""The contents of an import as plain values: memories, conversations, and entries that could not be read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from memories.entry_rules import MAX_CATEGORY
from memories.errors import DomainError, TooLarge
from memories.evidence import HoldReason
from memories.limits import IMPORT_CONVERSATIONS, IMPORT_LINES, IMPORT_MESSAGES, KEYWORD_LENGTH, KEYWORDS_GIVEN
from memories.services import MemoryFields
from memories.storable import storable_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One memory to import. `line` gives its order, `place` its position in words. `number` is the memory of the book
    that it updates, provided that memory was created at `made_at`: other exports use the same numbers.

    A checked entry (memories.imports.book_state) has cleaned fields, the key and the scan hash of its content, and a
    `doubt` if it waits for a decision. `retried`: it was put off once, since another memory had its text."""

    line: int
    place: str
    number: int | None = None
    made_at: datetime | None = None
    book: str
    fields: MemoryFields
    key: str = ""
    scan_hash: str = ""
    doubt: HoldReason | None = None
    retried: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMessage:
    role: str  # user | assistant
    text: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation held in another system. `key` identifies it, so that a repeated import recognises it.
    `reads_elsewhere`: its model read something that is not in its messages, such as files or results of tools."""

    line: int
    place: str
    key: str
    title: str
    began_at: datetime | None
    messages: Sequence[ImportedMessage]
    reads_elsewhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedEntry:
    """An entry that cannot be imported, with the error."""

    line: int
    place: str
    error: DomainError


@dataclass(slots=True, kw_only=True)
class ImportContents:
    """Everything that a reader found in an upload. Its size is limited."""

    book: str
    with_conversations: bool = True
    entries: list[Entry] = field(default_factory=list)
    conversations: list[Conversation] = field(default_factory=list)
    refused: list[RefusedEntry] = field(default_factory=list)
    formats: dict[str, None] = field(default_factory=dict)  # formats that were read, in order
    project_names: dict[str, str] = field(default_factory=dict)  # by the other system's project id
    newest_context: tuple[datetime | None, str] = (None, "")  # saved memories in a file, with the time of their change
    line: int = 0
    _message_count: int = 0

    def next_line(self) -> int:
        self.line += 1
        return self.line

    def add_memory(self, place: str, fields: MemoryFields) -> None:
        """Append a memory for the import's book. Raises TooLarge."""
        self.add_entry(Entry(line=self.next_line(), place=place, book=self.book, fields=fields))

    def add_entry(self, entry: Entry) -> None:
        """Append an entry. Raises TooLarge if the import has too many."""
        if len(self.entries) >= IMPORT_LINES:
            raise TooLarge(f"An import has at most {IMPORT_LINES} memories. Split it.", limit=IMPORT_LINES)
        self.entries.append(entry)

    def refuse(self, place: str, error: DomainError) -> None:
        """Record an entry that cannot be imported. Raises TooLarge if there are too many."""
        if len(self.refused) >= IMPORT_LINES:
            raise TooLarge(f"More than {IMPORT_LINES} entries of the file cannot be read.", limit=IMPORT_LINES)
        self.refused.append(RefusedEntry(line=self.next_line(), place=place, error=error))

    def add_conversation(
        self,
        place: str,
        source: str,
        id: str,
        *,
        title: str,
        began_at: datetime | None,
        messages: Sequence[ImportedMessage],
        reads_elsewhere: bool,
    ) -> None:
        """Append a conversation unless all its messages are empty. Without an id, its text identifies it.

        Raises TooLarge if the import has too many conversations or messages."""
        messages = [
            ImportedMessage(role=message.role, text=text, at=message.at)
            for message in messages
            if (text := storable_text(message.text).strip())
        ]
        if not messages or not self.with_conversations:
            return
        self._message_count += len(messages)
        if len(self.conversations) >= IMPORT_CONVERSATIONS or self._message_count > IMPORT_MESSAGES:
            raise TooLarge(
                f"An import has at most {IMPORT_CONVERSATIONS} conversations with {IMPORT_MESSAGES} messages. "
                "Split it.",
                limit=IMPORT_CONVERSATIONS,
            )
        identity = id or "\n".join([title, *(message.text for message in messages)])
        self.conversations.append(
            Conversation(
                line=self.next_line(),
                place=place,
                key=sha256(storable_text(f"{source}:{identity}").encode()).hexdigest()[:32],
                title=" ".join(storable_text(title).split()),
                began_at=began_at or next((message.at for message in messages if message.at), None),
                messages=messages,
                reads_elsewhere=reads_elsewhere,
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
    """Return the fields of an imported memory. Other systems allow longer categories and more keywords: both are
    truncated, and a truncated category is kept in full as a keyword."""
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

"""Many writes of one transaction with a number of statements that does not depend on how many there are. The rules are
those of BookWriter, which stays the way to write a few: a revision for each change, one change set, one generation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.utils import timezone

from memories.models import EVIDENCE_COLUMNS, Book, Memory, Revision
from memories.outbox import next_numbers
from memories.selectors import live_in
from memories.services.rows import (
    evidence_of,
    memory_advance,
    memory_change,
    memory_changes,
    memory_new,
    memory_state,
    revision_new,
)
from memories.services.values import MemoryFields
from memories.services.writing import BookWriter, put_back
from memories.statements import Insert

_PAGE = 5_000
_CHANGING = (
    "target", "category", "content", "content_key", "keywords", "metadata", "pinned", "expires_at", "version",
    "scan_hash", "scan_rule", "scan_reason", "allowed_hash", "content_changed_at", "updated_at", "deleted_at",
    *EVIDENCE_COLUMNS,
)  # fmt: skip
_ADD: Insert[Memory] = Insert(Memory)
_CHANGE: Insert[Memory] = Insert(Memory, renewed=_CHANGING)
_REVISE: Insert[Revision] = Insert(Revision)


@dataclass(slots=True)
class BulkWriter:
    """Gathers writes to the open book of `writer`; `store` writes them."""

    writer: BookWriter
    _added: list[Memory] = field(default_factory=list)
    _changed: dict[UUID, Memory] = field(default_factory=dict)  # one may be changed twice
    _revisions: list[Revision] = field(default_factory=list)

    def add(self, fields: MemoryFields, *, scan_hash: str) -> None:
        """Add a memory of cleaned and scanned fields. The caller has looked for a repetition and at the budget."""
        memory = memory_new(self.writer.book, self.writer.source, fields, scan_hash=scan_hash)
        self._added.append(memory)
        self._revise(memory, Revision.Action.ADD, None)

    def update(self, memory: Memory, fields: MemoryFields, *, scan_hash: str = "") -> bool:
        """Change a memory of the book, read under its lock; words were scanned. Returns False if nothing is
        different."""
        before, changes = memory_state(memory), memory_changes(memory, fields)
        if not changes:
            return False
        memory_change(memory, changes, scan_hash=scan_hash, evidence=evidence_of(self.writer.source, fields))
        self._change(memory, Revision.Action.UPDATE, before)
        return True

    def delete(self, memory: Memory) -> Revision:
        """Turn a live memory of the book, read under its lock, into a tombstone. Returns the revision to be stored."""
        before = memory_state(memory)
        memory.deleted_at = timezone.now()
        return self._change(memory, Revision.Action.DELETE, before)

    def restore(self, memory: Memory, state: dict[str, Any], action: Revision.Action) -> bool:
        """Give a memory of the book, read under its lock, an earlier state, as `put_back` does. Returns False if
        nothing is different."""
        before = put_back(memory, state)
        if before is not None:
            self._change(memory, action, before)
        return before is not None

    def store(self) -> None:
        """Write what was gathered."""
        if self._added:
            numbers = next_numbers(self.writer.book.owner_id, "memory_seq", len(self._added))
            for number, memory in zip(numbers, self._added, strict=True):
                memory.number = number
        _ADD.execute(self._added)
        _CHANGE.execute(list(self._changed.values()))
        _REVISE.execute(self._revisions)
        self.writer.numbers += [memory.number for memory in (*self._added, *self._changed.values())]
        self._added, self._changed, self._revisions = [], {}, []

    def _change(self, memory: Memory, action: Revision.Action, before: dict[str, Any]) -> Revision:
        memory_advance(memory)
        self.writer.removed = self.writer.removed or memory.deleted_at is not None
        self._changed[memory.pk] = memory
        return self._revise(memory, action, before)

    def _revise(self, memory: Memory, action: Revision.Action, before: dict[str, Any] | None) -> Revision:
        writer = self.writer
        revision = revision_new(memory, action, before=before, change_set=writer.changes(), source=writer.source)
        self._revisions.append(revision)
        return revision


def live_rows(book: Book, *, numbers: Sequence[int]) -> dict[int, Memory]:
    """Return those of the memories of a book that are live, neither deleted nor expired, by number."""
    return {memory.number: memory for memory in live_in(book).filter(number__in=numbers)}


def known_keys(book: Book, keys: Sequence[str]) -> set[str]:
    """Return those of the content keys that a live memory of the book has."""
    return set(live_in(book).filter(content_key__in=keys).values_list("content_key", flat=True))


def live_keys(book: Book) -> Iterator[set[str]]:
    """Yield the content keys of all live memories of a book, a page at a time."""
    rows = live_in(book).order_by("number").values_list("number", "content_key")
    page = list(rows[:_PAGE])
    while page:
        yield {key for _, key in page}
        page = list(rows.filter(number__gt=page[-1][0])[:_PAGE]) if len(page) == _PAGE else []

"""Many writes of one transaction with a number of statements that does not depend on how many there are. The rules are
those of BookWriter, which stays the way to write a few: a revision for each change, one change set, one generation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet, Sum
from django.db.models.functions import Length
from django.utils import timezone

from memories.models import EVIDENCE_COLUMNS, Book, Memory, Revision, Target
from memories.outbox import next_numbers
from memories.selectors import standing, undeleted
from memories.services.books import book_limits
from memories.services.rows import (
    evidence_of,
    memory_advance,
    memory_change,
    memory_changes,
    memory_new,
    memory_state,
    over_budget,
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
class Budgets:
    """Characters that live memories of a book take, by target, kept up to date while memories come and go."""

    limits: dict[Target, int]
    used: dict[str, int]

    @classmethod
    def of(cls, book: Book | None, name: str) -> "Budgets":
        """Return the budgets of a book as they are now, also of one that does not exist yet."""
        limits = book_limits(name)
        used: dict[str, int] = {}
        if book is not None and any(limits.values()):
            sums = standing(book).values("target").annotate(sum=Sum(Length("content"))).order_by()
            used = {row["target"]: int(row["sum"]) for row in sums}
        return cls(limits, used)

    def take(self, target: str, needed: int, *, freed: int = 0, freed_of: str = "") -> None:
        """Note a memory of `needed` characters; `freed` is what its former text took. Raises OverBudget, unless it
        takes no more of this target than before."""
        had = freed if freed_of == target else 0
        used, limit = self.used.get(target, 0) - had, self.limits[Target(target)]
        if limit and needed > had and used + needed > limit:
            raise over_budget(target, used=used, limit=limit, needed=needed)
        if freed_of and freed_of != target:
            self.used[freed_of] = self.used.get(freed_of, 0) - freed
        self.used[target] = used + needed


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
    return {memory.number: memory for memory in standing(book).filter(number__in=numbers)}


def known_keys(book: Book, keys: Sequence[str], now: datetime) -> set[str]:
    """Those of the content keys that a live memory of the book has which has not expired."""
    rows = undeleted(book).filter(content_key__in=keys)
    return set(rows.exclude(expires_at__lte=now).values_list("content_key", flat=True))


def live_keys(book: Book, now: datetime) -> Iterator[set[str]]:
    """Return the content keys of all live memories of a book that have not expired, a page at a time."""
    rows = undeleted(book).order_by("number")
    page = list(_keys(rows, now))
    while page:
        yield {key for _, key in page}
        page = list(_keys(rows.filter(number__gt=page[-1][0]), now)) if len(page) == _PAGE else []


def _keys(rows: "QuerySet[Memory]", now: datetime) -> "QuerySet[Memory, tuple[int, str]]":
    return rows.exclude(expires_at__lte=now).values_list("number", "content_key")[:_PAGE]

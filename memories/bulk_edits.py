"""Bulk edits of selected memories of a book, stored as one change set and undone as one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from memories.database.batches import BatchSize, Slices
from memories.entry_rules import check_scan
from memories.models import Book, ChangeSet, Memory, Revision
from memories.selectors import live_condition, live_rows
from memories.services import BookWriter, MemoryFields, Source, book_changed, book_writing, memory_state

BulkAction = Literal["delete", "restore", "pin", "unpin", "categorise"]
Edit = Callable[[BookWriter, Sequence[int]], list[int]]
"""Changes the memories with these numbers where possible; returns the numbers of those that changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkEditResult:
    """The result, by memory number. Memories that were left alone do not exist or needed no change."""

    change_set: UUID | None
    changed: tuple[int, ...]
    left_alone: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the API representation."""
        return {
            "change_set": str(self.change_set) if self.change_set else None,
            "changed": [str(number) for number in self.changed],
            "left_alone": [str(number) for number in self.left_alone],
        }


def bulk_edit_slices(book: Book, numbers: Sequence[int], edit: Edit, source: Source) -> Slices[BulkEditResult]:
    """Apply an edit to many memories of a book, in slices: short transactions under its lock, one change set."""
    wanted = list(dict.fromkeys(numbers))
    size = BatchSize()
    change_set: ChangeSet | None = None
    changed: list[int] = []
    try:
        for batch in size.parts(wanted):
            with size.measured(), book_writing(book, source, change_set=change_set, silent=True) as writer:
                changed += edit(writer, batch)
            change_set = writer.change_set
            yield
    finally:  # also if the client disconnected
        if changed:
            book_changed(book, source, changed)
    done = set(changed)
    return BulkEditResult(
        change_set=change_set.pk if change_set else None,
        changed=tuple(changed),
        left_alone=tuple(number for number in wanted if number not in done),
    )


def edit_of(action: BulkAction, category: str = "") -> Edit:
    """Return the edit for an action. `category` is a cleaned one, for `categorise`. Raises BlockedByScan."""
    if category:
        check_scan("", (), category=category)
    setters = {
        "pin": MemoryFields(pinned=True),
        "unpin": MemoryFields(pinned=False),
        "categorise": MemoryFields(category=category),
    }
    return {"delete": _delete, "restore": _restore}.get(action) or _setter(setters[action])


def _delete(writer: BookWriter, numbers: Sequence[int]) -> list[int]:
    rows = live_rows(writer.book, numbers=numbers)
    for memory in rows.values():
        writer.gather_deleted(memory)
    return sorted(rows)


def _restore(writer: BookWriter, numbers: Sequence[int]) -> list[int]:
    rows = Memory.objects.filter(owner_id=writer.book.owner_id, book=writer.book, number__in=numbers)
    deleted = list(rows.exclude(live_condition()).order_by("number"))
    for memory in deleted:
        writer.gather_restored(memory, {**memory_state(memory), "deleted_at": None}, Revision.Action.RESTORE)
    return [memory.number for memory in deleted]


def allow(writer: BookWriter, numbers: Sequence[int]) -> list[int]:
    """Allow blocked memories in answers, as long as their text is unchanged. Only administrators may do this."""
    blocked = [memory for memory in live_rows(writer.book, numbers=numbers).values() if memory.blocked]
    for memory in blocked:
        writer.gather_allowed(memory)
    return sorted(memory.number for memory in blocked)


def _setter(fields: MemoryFields) -> Edit:
    def change(writer: BookWriter, numbers: Sequence[int]) -> list[int]:
        rows = live_rows(writer.book, numbers=numbers)
        return [number for number, memory in sorted(rows.items()) if writer.gather_changed(memory, fields)]

    return change

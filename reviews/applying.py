"""Applying staged writes to a book as it is now: at the end of a review, and when a person approves them.
Each write that no longer fits is refused with its reason, and the rest holds."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import transaction

from memories.errors import Conflict, DomainError
from memories.models import ChangeSet
from memories.services import BookWriter, MemoryFields, Source, WriteResult, book_writing
from reviews.models import ReviewRun


class BookCleared(Exception):
    """The book was cleared since the review began, so its writes may not be applied."""


def apply_writes(
    review: ReviewRun, writes: Sequence[dict[str, Any]], chosen: Sequence[dict[str, Any]], source: Source
) -> tuple[UUID | None, dict[int, DomainError]]:
    """Apply the chosen ones of a review's writes, in the caller's transaction, with the run's row locked.

    Marks them in place as `applied` (or `known`, where the book said so already); returns the change set of all the
    review's writes, None when there are none, and the refusals by index. Raises BookCleared."""
    refused: dict[int, DomainError] = {}
    done = {str(write["key"]): write for write in writes if write["state"] in {"applied", "known"}}
    with book_writing(review.book, source) as writer:
        if writer.book.epoch != review.book_epoch:
            raise BookCleared("The book was cleared meanwhile.")
        if review.change_set:  # some were approved before: all writes of a review are one group
            writer.change_set = ChangeSet.objects.get(pk=review.change_set)
        for write in chosen:
            try:
                with transaction.atomic():
                    written = _write(writer, write, done.get(write["key"]))
            except DomainError as error:
                refused[write["index"]] = error
                continue
            write |= {
                "state": "applied" if written.changed else "known",
                "memory_id": str(written.memory.number),
                "left_version": written.memory.version,
                "reason": "",
            }
            done[write["key"]] = write
        if not writer.numbers:
            writer.change_set = None
    return (writer.change_set.pk if writer.change_set else review.change_set), refused


def write_state(write: dict[str, Any]) -> dict[str, Any]:
    """Return a write as the run's row keeps it. What was refused is kept without its text, which may be why."""
    return {**write, "after": None, "keywords": None} if write["state"] == "refused" else write


def _write(writer: BookWriter, write: dict[str, Any], earlier: dict[str, Any] | None) -> WriteResult:
    """`earlier`: the write of the same review to the same memory that was applied last."""
    fields = MemoryFields(content=write["after"], category=write["category"], keywords=write["keywords"])
    if write["action"] == "add":
        fields.target = write["target"]
        return writer.add(fields)
    if earlier is None and not write["key"].isdecimal():
        raise Conflict("The memory that this would change was not saved.")
    number = int(earlier["memory_id"] if earlier else write["key"])
    version = int(earlier["left_version"] if earlier else write["version"])
    if write["action"] == "update":
        return writer.update(number, fields, version=version)
    if write["action"] == "delete":
        return writer.delete(number, version=version)
    raise LookupError(f"a staged write says {write['action']!r}")

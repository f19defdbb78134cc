"""Applying staged writes to a book as it is now: at the end of a review, and when a person approves them.
Each write that no longer fits is refused with its reason, and the rest holds."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memories.errors import Conflict, DomainError
from memories.models import ChangeSet, Evidence, EvidenceKind
from memories.services import BookWriter, MemoryFields, Source, WriteResult, book_writing
from reviews.models import ReviewRun
from reviews.writes import ReviewWrite, WriteState

_DONE = (WriteState.APPLIED, WriteState.KNOWN)


class BookCleared(Exception):
    """The book was cleared since the review began: nothing of before may come back."""


def apply_writes(
    review: ReviewRun, writes: Sequence[ReviewWrite], chosen: Sequence[ReviewWrite], source: Source
) -> tuple[UUID | None, dict[int, DomainError]]:
    """Apply the chosen ones of a review's writes, in the caller's transaction, with the run's row locked.

    Marks them in place as `applied` (or `known`, where the book said so already); returns the change set of all the
    review's writes, None when there are none, and the refusals by index. Raises BookCleared."""
    refused: dict[int, DomainError] = {}
    done = {write.key: write for write in writes if write.state in _DONE}
    with book_writing(review.book, source) as writer:
        if writer.book.epoch != review.book_epoch:
            raise BookCleared("The book was cleared meanwhile.")
        if review.change_set:  # some were approved before: all writes of a review are one group
            writer.change_set = ChangeSet.objects.get(pk=review.change_set)
        for write in chosen:
            try:
                with transaction.atomic():
                    written = _write(writer, write, done.get(write.key))
            except DomainError as error:
                refused[write.index] = error
                continue
            write.state = WriteState.APPLIED if written.changed else WriteState.KNOWN
            write.memory_id, write.left_version = str(written.memory.number), written.memory.version
            write.reason = ""
            done[write.key] = write
        if not writer.numbers:
            writer.change_set = None
    return (writer.change_set.pk if writer.change_set else review.change_set), refused


def _more(write: ReviewWrite) -> dict[str, Any]:
    """Return the fields that an import sets beside the words."""
    more = dict(write.more)
    if expires_at := more.get("expires_at"):
        more["expires_at"] = datetime.fromisoformat(expires_at)
    return more


def _write(writer: BookWriter, write: ReviewWrite, earlier: ReviewWrite | None) -> WriteResult:
    """`earlier`: the write of the same review to the same memory that was applied last."""
    fields = MemoryFields(content=write.after, category=write.category, keywords=write.keywords, **_more(write))
    if write.action != "delete":
        # What a person put in other words is theirs.
        fields.evidence = Evidence(kind=EvidenceKind.HAND) if write.edited else write.evidence
    if write.action == "add":
        fields.target = write.target
        return writer.add(fields)
    if earlier is None and not write.key.isdecimal():
        raise Conflict("The memory that this would change was not saved.")
    number = earlier.number if earlier else int(write.key)
    version = earlier.left_version if earlier else write.version
    if write.action == "update":
        return writer.update(number, fields, version=version)
    if write.action == "delete":
        return writer.delete(number, version=version)
    raise LookupError(f"a staged write says {write.action!r}")

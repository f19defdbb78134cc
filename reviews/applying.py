"""Applying staged writes to a book as it is now: at the end of a review, and when a person approves them.
Each write that no longer fits is refused with its reason, and the rest holds."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memories.errors import Conflict, DomainError, NotFound
from memories.models import ChangeSet, Evidence, EvidenceKind, Revision
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


def _fields(write: ReviewWrite, read: Mapping[str, Any]) -> MemoryFields:
    """Return what a write sets: of what it does not change in the memory, as it was `read`, nothing."""
    wanted = {"category": write.category, "keywords": write.keywords, **write.more}
    given = {name: value for name, value in wanted.items() if name not in read or read[name] != value}
    if expires_at := given.get("expires_at"):
        given["expires_at"] = datetime.fromisoformat(expires_at)
    # What a person put in other words is theirs.
    evidence = Evidence(kind=EvidenceKind.HAND) if write.edited else write.evidence
    return MemoryFields(content=write.after, evidence=evidence, **given)


def _write(writer: BookWriter, write: ReviewWrite, earlier: ReviewWrite | None) -> WriteResult:
    """Apply one write. `earlier` is the last applied write of the same review to the same memory."""
    if write.action == "add":
        fields = _fields(write, {})
        fields.target = write.target
        return writer.add(fields)
    if earlier is None and not write.key.isdecimal():
        raise Conflict("The memory that this would change was not saved.")
    number = earlier.number if earlier else int(write.key)
    version = earlier.left_version if earlier else write.version
    read: Mapping[str, Any] = {}
    if write.proposed:
        read, version = _as_read(writer, write, number, version), None
    if write.action == "update":
        return writer.update(number, _fields(write, read), version=version)
    if write.action == "delete":
        return writer.delete(number, version=version)
    raise LookupError(f"a staged write says {write.action!r}")


def _as_read(writer: BookWriter, write: ReviewWrite, number: int, version: int | None) -> Mapping[str, Any]:
    """Return the memory as it was when a write that a person approves was proposed. What else changed since stays; only
    other words are a conflict, unless the person gives words of their own. Raises Conflict."""
    try:
        memory = writer.memory(number)
    except NotFound:
        raise Conflict(f"Memory {number} was deleted or has expired in the meantime. Reject this.") from None
    revision = Revision.objects.filter(owner_id=memory.owner_id, memory=memory, version=version or 0).first()
    read = revision.after if revision else {}
    if read and not write.edited and memory.content not in (read["content"], write.after):
        instead = "reject this" if write.action == "delete" else "approve this with the words that it shall have"
        raise Conflict(f"Memory {number} was changed in the meantime. Read it again and {instead}.")
    return read

"""Applying staged writes to the current book, at the end of a review or when a person approves them. A write that no
longer applies is refused with a reason; the others are applied."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memories.errors import Conflict, DomainError, NotFound
from memories.models import ChangeSet, Evidence, EvidenceKind, Revision, WriteOrigin
from memories.services import BookWriter, MemoryFields, Source, WriteResult, book_writing
from reviews.errors import RunCancelled
from reviews.models import ReviewRun
from reviews.selectors import last_turn_read
from reviews.writes import ReviewWrite, WriteState

_STORED = (WriteState.APPLIED, WriteState.KNOWN)


def apply_writes(
    review: ReviewRun,
    writes: Sequence[ReviewWrite],
    chosen: Sequence[ReviewWrite],
    *,
    actor: str,
    origin: WriteOrigin,
    kind: ChangeSet.Kind,
) -> tuple[UUID | None, dict[int, DomainError]]:
    """Apply the chosen writes of a review, in the caller's transaction, which has locked the run's row.

    Sets the state of each to `applied`, or to `known` if the book contained it already. Returns the change set of the
    review (None if nothing was written), and the errors of refused writes by index. Raises RunCancelled."""
    turn = last_turn_read(review)
    source = Source(
        actor=actor, origin=origin, kind=kind, session_id=review.session_id, run_id=turn, review_id=review.pk
    )
    refused: dict[int, DomainError] = {}
    stored = {write.key: write for write in writes if write.state in _STORED}
    with book_writing(review.book, source) as writer:
        if writer.book.epoch != review.book_epoch:
            raise RunCancelled("The book was cleared meanwhile.")
        if review.change_set:  # all writes of a review share one change set, also if some were approved earlier
            writer.change_set = ChangeSet.objects.get(pk=review.change_set)
        for write in chosen:
            try:
                with transaction.atomic():
                    result = _write(writer, write, stored.get(write.key))
            except DomainError as error:
                refused[write.index] = error
                continue
            write.state = WriteState.APPLIED if result.changed else WriteState.KNOWN
            write.memory_id, write.left_version = str(result.memory.number), result.memory.version
            write.reason = ""
            stored[write.key] = write
        if not writer.numbers:
            writer.change_set = None
    return (writer.change_set.pk if writer.change_set else review.change_set), refused


def _fields(write: ReviewWrite, base: Mapping[str, Any]) -> MemoryFields:
    """Return the fields that a write sets, without those equal in `base`, the memory that it was made for."""
    values = {"category": write.category, "keywords": write.keywords, **write.more}
    changed = {name: value for name, value in values.items() if name not in base or base[name] != value}
    if expires_at := changed.get("expires_at"):
        changed["expires_at"] = datetime.fromisoformat(expires_at)
    # The person who edited a text is its author.
    evidence = Evidence(kind=EvidenceKind.HAND) if write.edited else write.evidence
    return MemoryFields(content=write.after, evidence=evidence, **changed)


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
    base = _base_of(writer, write, number, version)
    if write.action == "update":
        return writer.update(number, _fields(write, base))
    if write.action == "delete":
        return writer.delete(number)
    raise LookupError(f"unknown action of a staged write: {write.action!r}")


def _base_of(writer: BookWriter, write: ReviewWrite, number: int, version: int | None) -> Mapping[str, Any]:
    """Return the fields of the memory when the write was made. Other changes since then are kept; only a changed text
    is a conflict, unless the person edited a proposed one. Raises Conflict, NotFound."""
    try:
        memory = writer.memory(number)
    except NotFound:
        if not write.proposed:
            raise
        raise Conflict(f"Memory {number} was deleted or has expired in the meantime. Reject this.") from None
    revision = Revision.objects.filter(owner_id=memory.owner_id, memory=memory, version=version or 0).first()
    base = revision.after if revision else {}
    if base and not write.edited and memory.content not in (base["content"], write.after):
        if not write.proposed:
            raise Conflict(f"Memory {number} was changed in the meantime.")
        instead = "reject this" if write.action == "delete" else "approve this with the text it should have"
        raise Conflict(f"Memory {number} was changed in the meantime. Read it again and {instead}.")
    return base

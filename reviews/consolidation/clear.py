"""Clearing a book, with tombstones, so that it can be undone for some time. A clear also cancels the book's open
reviews and consolidations and marks its sessions as read, so that nothing comes back. Its undo lets proposals wait
again, and makes messages due again that had not been reviewed; open reviews are not resumed."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Max, Q, QuerySet
from django.utils import timezone

from gateway.models import Session
from memories.artifacts.store import artifacts_remove, live_artifacts
from memories.clocks import lease_over
from memories.database.batches import Slices, in_batches
from memories.errors import Conflict
from memories.history.undo import UndoResult
from memories.messaging import invalidation
from memories.models import Book, ChangeSet, ClearCode, Memory, ThreadRecord, WriteOrigin
from memories.selectors import live_in, undo_steps
from memories.services import BookWriter, Source, book_changed, book_writing, generations_raise
from memories.services.erasing import each_page, updating
from memories.tools import change_json
from reviews.consolidation.read_marks import (
    extractions_of_clear,
    mark_read,
    mark_reviewed,
    marks_undo,
    pass_sessions,
    sessions_to_mark,
)
from reviews.consolidation.runs import cancel_all
from reviews.consolidation.selection import notes_in, sessions_in
from reviews.ending import reviews_cancel, reviews_end
from reviews.models import ClearedReview, ConsolidationState, Extraction, ReviewRun

CODE_MINUTES = 10
FIRST_BATCH = 50
"""How many memories are deleted in the same transaction as documents and proposals."""
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
_CODE_LENGTH = 8
_REASON = "The book was cleared."
_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """How many objects a clear of a book removes."""

    memories: int
    documents: int
    sessions: int  # with notes or records
    proposals: int  # reviews that wait for a person


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearResult:
    """The result of a clear, which can be undone by its change set."""

    change_set: UUID
    contents: Contents
    changes: list[dict[str, Any]]


def contents_of(book: Book) -> Contents:
    """Return the numbers of objects that a clear would remove."""
    records = _records(book).values_list("session_id", flat=True)
    return Contents(
        memories=live_in(book).count(),
        documents=live_artifacts(book.owner_id, book.pk).count(),
        sessions=len({*notes_in(book).values_list("session_id", flat=True), *records}),
        proposals=ReviewRun.objects.filter(book=book, state=ReviewRun.State.AWAITING_APPROVAL).count(),
    )


def clear_code_create(book: Book) -> str:
    """Return a new one-time code for clearing a book. It replaces an older one."""
    code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_LENGTH))
    expires_at = timezone.now() + timedelta(minutes=CODE_MINUTES)
    values = {"owner_id": book.owner_id, "sha256": _hash(code), "expires_at": expires_at}
    ClearCode.objects.update_or_create(book=book, defaults=values)
    return code


def clear_confirmed(book: Book, code: str, *, actor: str) -> Slices[ClearResult]:
    """Remove all memory data of one book, in slices and as one change set, if the code is valid; it can be used once.
    Transcripts stay. Raises Conflict.

    First the existing sessions are marked as read, a batch at a time. Then one transaction raises the epoch, so that
    background work no longer writes to it, and removes the documents, the proposals and the first memories. The other
    memories are deleted in later transactions. If the clear is interrupted between them, the part that is done can be
    undone, and another clear removes the rest."""
    source = Source(actor=actor, origin=WriteOrigin.USER, kind=ChangeSet.Kind.CLEAR)
    with transaction.atomic():
        # Deleted first, so that only one of two concurrent requests continues.
        over = lease_over("expires_at", timezone.now(), lease=timedelta(minutes=CODE_MINUTES))
        rows = ClearCode.objects.filter(~over, book=book, sha256=_hash(code.lower()))
        if rows.delete()[0] != 1:
            raise Conflict("This code is not valid, or was used, or is older than ten minutes. Ask for a new one.")
        contents = contents_of(book)
        with book_writing(book, source, silent=True) as writer:
            change_set = writer.changes()
    yield
    marked = {"cleared_at": timezone.now(), "cleared_by": change_set.pk}
    yield from in_batches(transaction.atomic(updating(_records(book), **marked)))
    marking = each_page(sessions_to_mark(book), lambda page: mark_read(book, change_set.pk, page))
    yield from in_batches(transaction.atomic(marking))
    with transaction.atomic():
        changes, through = _clear_begin(book, source, change_set)
    yield
    if len(changes) == FIRST_BATCH:
        yield from _clear_rest(book, source, change_set, changes, through)
    return ClearResult(change_set=change_set.pk, contents=contents, changes=changes)


def _clear_begin(book: Book, source: Source, change_set: ChangeSet) -> tuple[list[dict[str, Any]], int]:
    """Do what must happen in one transaction, including the deletion of the first batch of memories. Returns their
    changes, and the number of the last memory to clear."""
    # Sessions that began, or were extracted in the background, since the others were marked.
    passed = Extraction.objects.filter(cleared_by=change_set.pk).values("session")
    sessions = mark_reviewed(sessions_to_mark(book).exclude(pk__in=passed))
    _withdraw_reviews(book, change_set)
    cancel_all(Q(book=book), _REASON)
    with book_writing(book, source, change_set=change_set) as writer:
        pass_sessions(book, change_set.pk, sessions)
        through = Memory.objects.filter(owner_id=book.owner_id, book=book).aggregate(last=Max("number"))["last"] or 0
        changes = _delete_memories(writer, FIRST_BATCH)
        artifacts_remove(writer)
        _records(book).update(cleared_at=timezone.now(), cleared_by=change_set.pk)
        ConsolidationState.objects.filter(book=book).update(
            synthesized=F("changes"), artifact_versions={}, from_notes=False
        )
        generations_raise([book.pk], epoch=True)
        if not changes:  # otherwise book_writing notifies on exit
            book_changed(book, source, ())
    # For the whole owner, since the records of the book's conversations are no longer recalled either.
    invalidation.publish(invalidation.Kind.OWNER, owner_id=book.owner_id)
    return changes, through


def _clear_rest(
    book: Book, source: Source, change_set: ChangeSet, changes: list[dict[str, Any]], through: int
) -> Slices[None]:
    """Delete the remaining memories up to the number `through`, a batch at a time, and add their changes to
    `changes`."""

    def delete(size: int) -> int:
        with book_writing(book, source, change_set=change_set, silent=True) as writer:
            deleted = _delete_memories(writer, size, through=through)
        changes.extend(deleted)
        return len(deleted)

    try:
        yield from in_batches(delete)
    finally:  # also if the client has disconnected
        book_changed(book, source, ())


def lock_cleared(root: ChangeSet) -> None:
    """Lock the sessions and reviews of a clear, before the book is locked to undo or redo the clear."""
    if root.kind == ChangeSet.Kind.CLEAR:
        passed = extractions_of_clear(root).values("session")
        list(Session.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=passed).order_by("pk"))
        proposals = ReviewRun.objects.filter(Q(pk__in=_proposals_of(root)) | Q(pk__in=_rejected_before(root)))
        list(proposals.select_for_update(of=("self",)).order_by("pk"))


def record_clear_undone(root: ChangeSet, undone: UndoResult, is_undo: bool) -> None:
    """Restore records, notes and proposals when a clear is undone; remove them again when it is redone."""
    if root.kind != ChangeSet.Kind.CLEAR:
        return
    records, in_effect = ThreadRecord.objects.filter(owner_id=root.owner_id), _clears_in_effect(root)
    other = max(in_effect, default=None)
    _return_reviews(root, other, undo=is_undo)
    if is_undo:
        if other:
            records.filter(cleared_by=root.pk, run_id__lt=other).update(cleared_by=other)
        records.filter(cleared_by=root.pk).update(cleared_at=None)
    else:
        sessions = extractions_of_clear(root).values("session")
        # A record names its latest clear, which may be another one that was undone since. Ids begin with the time.
        older = Q(cleared_at=None, session_id__in=sessions, run_id__lt=root.pk)
        records.filter(Q(cleared_by=root.pk) | older).update(cleared_at=timezone.now(), cleared_by=root.pk)
    marks_undo(root, in_effect, undo=is_undo)


def _clears_in_effect(root: ChangeSet) -> list[UUID]:
    """Return the book's other clears that are in effect. A later one may have found nothing more to clear, so what this
    one cleared becomes its own when this one is undone."""
    others = ChangeSet.objects.filter(owner_id=root.owner_id, book=root.book_id, kind=ChangeSet.Kind.CLEAR)
    clears = list(others.exclude(pk=root.pk).values_list("pk", flat=True))
    latest: dict[UUID, tuple[UUID, int]] = {}
    for clear, undo, distance in undo_steps(root.owner_id, clears):
        latest[clear] = max(latest.get(clear, (undo.pk, distance)), (undo.pk, distance))
    return [clear for clear in clears if latest.get(clear, (clear, 0))[1] % 2 == 0]


def _delete_memories(writer: BookWriter, limit: int, *, through: int | None = None) -> list[dict[str, Any]]:
    """Delete up to `limit` live memories of the book, lowest numbers first, with numbers up to `through` if given."""
    book = writer.book
    rows = live_in(book).order_by("number")
    if through is not None:
        rows = rows.filter(number__lte=through)
    return [change_json(writer.gather_deleted(memory)) for memory in rows[:limit]]


def _withdraw_reviews(book: Book, change_set: ChangeSet) -> None:
    """Cancel the book's undecided reviews, and store those that waited for approval so that an undo of the clear can
    restore them. A review has one such row, of its latest clear."""
    undecided = ReviewRun.objects.filter(book=book, state__in=ReviewRun.UNDECIDED)
    runs = list(undecided.select_for_update().order_by("pk"))
    _keep_back([run for run in runs if run.state == ReviewRun.State.AWAITING_APPROVAL], change_set)
    reviews_cancel(undecided.filter(pk__in=[run.pk for run in runs]), _REASON)


def _keep_back(waiting: Sequence[ReviewRun], change_set: ChangeSet) -> None:
    """Cancel reviews that wait for approval, and store their writes. The caller has locked them."""
    ClearedReview.objects.filter(review__in=waiting).delete()
    cleared = [
        ClearedReview(
            review=run, owner_id=run.owner_id, change_set=change_set.pk, writes=run.writes, waits_since=run.finished_at
        )
        for run in waiting
    ]
    ClearedReview.objects.bulk_create(cleared, batch_size=_BATCH)
    runs = ReviewRun.objects.filter(pk__in=[run.pk for run in waiting])
    reviews_end(runs, ReviewRun.State.CANCELLED, error=_cleared_error(change_set.pk), writes=[])


def _proposals_of(root: ChangeSet) -> "QuerySet[ReviewRun]":
    """Return the reviews whose writes a clear cancelled, with those that its redo cancels: a later clear, undone since,
    may have taken them over. Ids begin with the time."""
    named = ClearedReview.objects.filter(owner_id=root.owner_id, change_set=root.pk).values("review")
    older = Q(book=root.book_id, pk__lt=root.pk, state=ReviewRun.State.AWAITING_APPROVAL)
    return ReviewRun.objects.filter(Q(pk__in=named) | older, owner_id=root.owner_id)


def _rejected_before(root: ChangeSet) -> "QuerySet[ReviewRun]":
    """Return the reviews from before a clear with writes that were rejected or not decided in time."""
    return ReviewRun.objects.filter(
        owner_id=root.owner_id, book=root.book_id, pk__lt=root.pk, rejected_at__isnull=False
    )


def _return_reviews(root: ChangeSet, other: UUID | None, *, undo: bool) -> None:
    """Undo a clear for reviews: let the writes that it cancelled wait again, unless somebody decided about them since,
    and let rejected ones be approved again. Those from before the `other` clear in effect become its own. With `undo`
    False, redo the clear: cancel them again."""
    waiting = ReviewRun.State.AWAITING_APPROVAL
    epoch = Book.objects.values_list("epoch", flat=True).get(pk=root.book_id)
    rejected = _rejected_before(root)
    if not undo:
        _keep_back(list(_proposals_of(root).filter(state=waiting).order_by("pk")), root)
        rejected.update(book_epoch=epoch - 1)
        return
    (rejected.filter(pk__gt=other) if other else rejected).update(book_epoch=epoch)
    for row in ClearedReview.objects.filter(owner_id=root.owner_id, change_set=root.pk).select_related("review"):
        cancelled = ReviewRun.objects.filter(pk=row.review_id, state=ReviewRun.State.CANCELLED)
        cancelled = cancelled.filter(error__change_set=str(root.pk))
        if other and row.review_id < other:
            cancelled.update(error=_cleared_error(other))
            ClearedReview.objects.filter(pk=row.pk).update(change_set=other)
        elif not row.review.orphaned:
            reviews_end(cancelled, waiting, finished_at=row.waits_since, writes=row.writes, book_epoch=epoch)


def _cleared_error(change_set: UUID) -> dict[str, str]:
    return {"code": "cancelled", "message": _REASON, "change_set": str(change_set)}


def _records(book: Book) -> "QuerySet[ThreadRecord]":
    """Return the records of the book's sessions that were not cleared."""
    sessions = sessions_in(book).values("pk")
    return ThreadRecord.objects.filter(owner_id=book.owner_id, session_id__in=sessions, cleared_at=None)


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()

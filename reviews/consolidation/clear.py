"""Taking away: clearing a book (tombstones, undoable for a time), and forgetting what a session gave.
Open reviews and consolidations of the scope end, and past sessions count as dealt with, so that nothing comes back.
Lock order: reviews → consolidation runs → sessions → book → extractions → state of the book → owner."""

import hashlib
import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Max, Q, QuerySet
from django.utils import timezone

from gateway.models import Session
from memories.artifacts.store import artifacts_remove, live_artifacts
from memories.database.batches import BatchSize, Slices
from memories.errors import Conflict
from memories.history.undo import Undone
from memories.messaging import invalidation
from memories.models import Book, ChangeSet, ClearCode, Memory, ThreadRecord, WriteOrigin
from memories.selectors import live_in
from memories.services import BookWriter, Source, book_changed, book_writing, generations_raise
from memories.services.erasing import Batch, each_page, updating
from memories.tools import change_json
from reviews.consolidation.extraction import note_change
from reviews.consolidation.runs import cancel_all
from reviews.consolidation.selection import notes_in, sessions_in
from reviews.consolidation.withdrawal import (
    REASON,
    ReviewPositions,
    reviews_withdraw,
    sessions_pass_over,
    sessions_return,
    withdrawn_return,
)
from reviews.models import ClearedReview, ConsolidationState, Extraction, ReviewRun

CODE_MINUTES = 10
FIRST_BATCH = 200
"""Memories that are deleted in the same transaction as documents and proposals."""
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
_CODE_LENGTH = 8
EMPTY: dict[str, Any] = {
    "raw_memory": "",
    "synopsis": "",
    "usage": {},
    "error": None,
    "state": Extraction.State.PASSED,
    "floor_seq": F("through_seq"),
    "before_clear": None,
    "cleared_by": None,
}
"""An extraction without words, of a session that counts as dealt with."""
_MARKED = ("state", "through_seq", "floor_seq")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a clear of a book takes away, in numbers."""

    memories: int
    documents: int
    sessions: int  # with notes or records
    proposals: int  # reviews that wait for a person


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """What was taken away; undone with the change set."""

    change_set: UUID
    contents: Contents
    changes: list[dict[str, Any]]


def contents_of(book: Book) -> Contents:
    """Return what a clear would take away."""
    records = _records(book).filter(cleared_at=None).values_list("session_id", flat=True)
    return Contents(
        memories=live_in(book).count(),
        documents=live_artifacts(book.owner_id, book.pk).count(),
        sessions=len({*notes_in(book).values_list("session_id", flat=True), *records}),
        proposals=ReviewRun.objects.filter(book=book, state=ReviewRun.State.AWAITING_APPROVAL).count(),
    )


def clear_code_make(book: Book) -> str:
    """Return a new one-time code for clearing a book; it takes the place of an older one."""
    code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_LENGTH))
    expires_at = timezone.now() + timedelta(minutes=CODE_MINUTES)
    values = {"owner_id": book.owner_id, "sha256": _hash(code), "expires_at": expires_at}
    ClearCode.objects.update_or_create(book=book, defaults=values)
    return code


def clear_confirmed(book: Book, code: str, *, actor: str) -> Slices[Cleared]:
    """Take away all memory data of a book, of this book only, as one change set, if the code is the present one; it is
    good once. Transcripts stay. In slices. Raises Conflict.

    First the conversations so far count as dealt with, some at a time. Then one transaction raises the book's epoch, so
    that nothing in the background writes to it any more, and takes away the documents, the proposals and the first
    memories; the other memories follow in transactions of their own. If it is interrupted between them, what is done
    can be undone, and clearing again takes away the rest."""
    source = Source(actor=actor, origin=WriteOrigin.USER, kind=ChangeSet.Kind.CLEAR)
    with transaction.atomic():
        # Gone before anything else happens: of two that send it at once, one goes on.
        rows = ClearCode.objects.filter(book=book, sha256=_hash(code.lower()), expires_at__gt=timezone.now())
        if rows.delete()[0] != 1:
            raise Conflict("This code is not valid, or was used, or is older than ten minutes. Ask for a new one.")
        contents = contents_of(book)
        with book_writing(book, source, silent=True) as writer:
            change_set = writer.changes()
    records = _records(book).filter(cleared_at=None)
    yield from _in_batches(transaction.atomic(updating(records, cleared_at=timezone.now(), cleared_by=change_set.pk)))
    passing_over = each_page(sessions_in(book), lambda page: _pass_over(book, change_set.pk, page))
    yield from _in_batches(transaction.atomic(passing_over))
    with transaction.atomic():
        changes, through = _clear_begin(book, source, change_set)
    cleared = Cleared(change_set=change_set.pk, contents=contents, changes=changes)
    return (yield from _clear_rest(book, source, cleared, through))


def _clear_begin(book: Book, source: Source, change_set: ChangeSet) -> tuple[list[dict[str, Any]], int]:
    """Do everything that must happen at once, and delete the first batch of memories. Returns the changes of these, and
    the number of the last memory that belongs to the clear."""
    reviews_withdraw(book, change_set)
    cancel_all(Q(book=book), REASON)
    # What began, or was noted in the background, since the conversations were passed over.
    passed = Extraction.objects.filter(cleared_by=change_set.pk).values("session")
    _pass_over(book, change_set.pk, sessions_in(book).exclude(pk__in=passed))
    with book_writing(book, source, change_set=change_set) as writer:
        through = Memory.objects.filter(owner_id=book.owner_id, book=book).aggregate(last=Max("number"))["last"] or 0
        changes = _delete_memories(writer, FIRST_BATCH)
        artifacts_remove(writer)
        _records(book).filter(cleared_at=None).update(cleared_at=timezone.now(), cleared_by=change_set.pk)
        ConsolidationState.objects.filter(book=book).update(
            synthesized=F("changes"), artifact_versions={}, from_notes=False
        )
        generations_raise([book.pk], epoch=True)
        # Of the owner: the record of the book's conversations is out of recall, too.
        invalidation.publish(invalidation.Kind.OWNER, owner_id=book.owner_id)
        if not changes:  # else leaving the writing tells it
            book_changed(book, source, ())
    return changes, through


def _clear_rest(book: Book, source: Source, cleared: Cleared, through: int) -> Slices[Cleared]:
    """Delete the memories that are left, up to the number `through`, a batch at a time."""
    if len(cleared.changes) < FIRST_BATCH:
        return cleared
    changes = list(cleared.changes)
    change_set = ChangeSet.objects.get(pk=cleared.change_set)

    def delete(most: int) -> int:
        with book_writing(book, source, change_set=change_set, silent=True) as writer:
            deleted = _delete_memories(writer, most, through=through)
        changes.extend(deleted)
        return len(deleted)

    try:
        yield from _in_batches(delete)
    finally:  # also where the client has gone
        book_changed(book, source, ())
    return replace(cleared, changes=changes)


def _in_batches(work: Batch) -> Slices[None]:
    """Do work in transactions of a bounded time until none is left, with others' turns before each."""
    size, count = BatchSize(), 1
    while count:
        yield
        with size.measured():
            count = work(size.rows)


def note_clear_undone(root: ChangeSet, undone: Undone, taken_back: bool) -> None:
    """Bring records, notes and proposals back when a clear is undone, and remove them again when that is undone."""
    if root.kind != ChangeSet.Kind.CLEAR:
        return
    now = timezone.now()
    withdrawn_return(root, taken_back=taken_back)
    records = ThreadRecord.objects.filter(owner_id=root.owner_id, cleared_by=root.pk)
    records.update(cleared_at=None if taken_back else now)
    rows = list(Extraction.objects.filter(owner_id=root.owner_id, cleared_by=root.pk).select_related("session"))
    if taken_back:
        sessions_return({row.session: (row.floor_seq, _reviewed_before(row)) for row in rows})
    else:
        positions = sessions_pass_over(Session.objects.filter(pk__in=[row.session_id for row in rows]))
    for row in rows:
        if taken_back:
            for name in _MARKED:
                setattr(row, name, (row.before_clear or {}).get(name, getattr(row, name)))
        else:
            row.before_clear = _before(row, positions)
            _mark(row, row.session)
        row.cleared_at = None if taken_back else now
    Extraction.objects.bulk_update(rows, [*_MARKED, "before_clear", "cleared_at"], batch_size=500)


def notes_forget(owner_id: UUID, session_id: UUID) -> None:
    """Erase what a session gave that was deleted or is to be forgotten, and have the documents written without it."""
    ClearedReview.objects.filter(owner_id=owner_id, review__session=session_id).delete()
    row = Extraction.objects.filter(owner_id=owner_id, session_id=session_id).first()
    if row is None:
        return
    had_words = bool(row.raw_memory or row.synopsis)
    Extraction.objects.filter(pk=row.pk).update(**EMPTY)
    if had_words and row.cleared_at is None:
        note_change(row.owner_id, row.book_id, forgotten=True)


def purge_cleared(before: datetime) -> int:
    """Empty the notes, and delete the proposals, of clears that can no longer be undone. Returns how many notes."""
    ClearedReview.objects.filter(cleared_at__lt=before).delete()
    return Extraction.objects.filter(cleared_at__lt=before).exclude(raw_memory="", synopsis="").update(**EMPTY)


def _delete_memories(writer: BookWriter, most: int, *, through: int | None = None) -> list[dict[str, Any]]:
    """Delete the book's first live memories, `most` at most; with `through` none that has a larger number."""
    book = writer.book
    rows = live_in(book).order_by("number")
    if through is not None:
        rows = rows.filter(number__lte=through)
    return [change_json(writer.gather_deleted(memory)) for memory in rows[:most]]


def _pass_over(book: Book, change_set: UUID, sessions: "QuerySet[Session]") -> None:
    """Count these sessions of the book as dealt with up to their present end; nothing before that is read again."""
    positions = sessions_pass_over(sessions)
    ends = {session.pk: session for session in Session.objects.filter(pk__in=positions)}
    rows = list(Extraction.objects.filter(owner_id=book.owner_id, book=book, session__in=ends))
    known = {row.session_id for row in rows}
    made = [
        Extraction(owner_id=book.owner_id, book=book, session=session, said_at=session.last_active_at)
        for session in ends.values()
        if session.pk not in known
    ]
    now = timezone.now()
    for row in (*rows, *made):
        row.before_clear = _before(row, positions)
        row.cleared_at, row.cleared_by = now, change_set
        _mark(row, ends[row.session_id])
    Extraction.objects.bulk_update(rows, [*_MARKED, "before_clear", "cleared_at", "cleared_by"], batch_size=500)
    Extraction.objects.bulk_create(made, batch_size=500)


def _before(row: Extraction, positions: ReviewPositions) -> dict[str, Any]:
    """Return what an undo of the clear puts back: of the notes, and how far their session was reviewed."""
    before = {name: getattr(row, name) for name in _MARKED}
    return before | ({"reviewed": list(positions[row.session_id])} if row.session_id in positions else {})


def _reviewed_before(row: Extraction) -> tuple[int, int] | None:
    reviewed = (row.before_clear or {}).get("reviewed")
    return (reviewed[0], reviewed[1]) if reviewed else None


def _mark(row: Extraction, session: Session) -> None:
    row.state = Extraction.State.PASSED
    row.through_seq = row.floor_seq = session.message_seq


def _records(book: Book) -> "QuerySet[ThreadRecord]":
    return ThreadRecord.objects.filter(owner_id=book.owner_id, session_id__in=sessions_in(book).values("pk"))


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()

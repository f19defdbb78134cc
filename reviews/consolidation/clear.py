"""Clearing a book (with tombstones, so that it can be undone for some time), and forgetting a session's notes. A clear
also cancels the book's open reviews and consolidations and marks its sessions as read, so that nothing comes back."""

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
from memories.database.batches import Slices, in_batches
from memories.errors import Conflict
from memories.history.undo import UndoResult
from memories.messaging import invalidation
from memories.models import Book, ChangeSet, ClearCode, Memory, ThreadRecord, WriteOrigin
from memories.selectors import live_in
from memories.services import BookWriter, Source, book_changed, book_writing, books_lock, generations_raise
from memories.services.erasing import each_page, updating
from memories.tools import change_json
from reviews.consolidation.extraction import record_change
from reviews.consolidation.runs import cancel_all
from reviews.consolidation.selection import notes_in, sessions_in
from reviews.consolidation.withdrawal import (
    REASON,
    ReviewPositions,
    reviews_withdraw,
    sessions_mark_reviewed,
    sessions_return,
    withdrawn_return,
)
from reviews.models import ClearedReview, ConsolidationState, Extraction, ReviewRun

CODE_MINUTES = 10
FIRST_BATCH = 50
"""How many memories are deleted in the same transaction as documents and proposals."""
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
_CODE_LENGTH = 8
ERASED: dict[str, Any] = {
    "raw_memory": "",
    "synopsis": "",
    "usage": {},
    "error": None,
    "state": Extraction.State.PASSED,
    "floor_seq": F("through_seq"),
    "before_clear": None,
    "cleared_by": None,
}
"""The fields of an extraction without texts, of a session that is marked as read."""
_POSITION_FIELDS = ("state", "through_seq", "floor_seq")


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
    records = _records(book).filter(cleared_at=None).values_list("session_id", flat=True)
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
        rows = ClearCode.objects.filter(book=book, sha256=_hash(code.lower()), expires_at__gt=timezone.now())
        if rows.delete()[0] != 1:
            raise Conflict("This code is not valid, or was used, or is older than ten minutes. Ask for a new one.")
        contents = contents_of(book)
        with book_writing(book, source, silent=True) as writer:
            change_set = writer.changes()
    yield
    records = _records(book).filter(cleared_at=None)
    yield from in_batches(transaction.atomic(updating(records, cleared_at=timezone.now(), cleared_by=change_set.pk)))
    marking = each_page(sessions_in(book), lambda page: _mark_read(book, change_set.pk, page))
    yield from in_batches(transaction.atomic(marking))
    with transaction.atomic():
        changes, through = _clear_begin(book, source, change_set)
    yield
    cleared = ClearResult(change_set=change_set.pk, contents=contents, changes=changes)
    return (yield from _clear_rest(book, source, cleared, through))


def _clear_begin(book: Book, source: Source, change_set: ChangeSet) -> tuple[list[dict[str, Any]], int]:
    """Do what must happen in one transaction, including the deletion of the first batch of memories. Returns their
    changes, and the number of the last memory to clear."""
    # Sessions that began, or were extracted in the background, since the others were marked.
    passed = Extraction.objects.filter(cleared_by=change_set.pk).values("session")
    positions = sessions_mark_reviewed(sessions_in(book).exclude(pk__in=passed))
    reviews_withdraw(book, change_set)
    cancel_all(Q(book=book), REASON)
    with book_writing(book, source, change_set=change_set) as writer:
        _extractions_pass(book, change_set.pk, positions)
        through = Memory.objects.filter(owner_id=book.owner_id, book=book).aggregate(last=Max("number"))["last"] or 0
        changes = _delete_memories(writer, FIRST_BATCH)
        artifacts_remove(writer)
        _records(book).filter(cleared_at=None).update(cleared_at=timezone.now(), cleared_by=change_set.pk)
        ConsolidationState.objects.filter(book=book).update(
            synthesized=F("changes"), artifact_versions={}, from_notes=False
        )
        generations_raise([book.pk], epoch=True)
        if not changes:  # otherwise book_writing notifies on exit
            book_changed(book, source, ())
    # For the whole owner, since the records of the book's conversations are no longer recalled either.
    invalidation.publish(invalidation.Kind.OWNER, owner_id=book.owner_id)
    return changes, through


def _clear_rest(book: Book, source: Source, cleared: ClearResult, through: int) -> Slices[ClearResult]:
    """Delete the remaining memories up to the number `through`, a batch at a time."""
    if len(cleared.changes) < FIRST_BATCH:
        return cleared
    changes = list(cleared.changes)
    change_set = ChangeSet.objects.get(pk=cleared.change_set)

    def delete(size: int) -> int:
        with book_writing(book, source, change_set=change_set, silent=True) as writer:
            deleted = _delete_memories(writer, size, through=through)
        changes.extend(deleted)
        return len(deleted)

    try:
        yield from in_batches(delete)
    finally:  # also if the client has disconnected
        book_changed(book, source, ())
    return replace(cleared, changes=changes)


def record_clear_undone(root: ChangeSet, undone: UndoResult, is_undo: bool) -> None:
    """Restore records, notes and proposals when a clear is undone; remove them again when it is redone."""
    if root.kind != ChangeSet.Kind.CLEAR:
        return
    now = timezone.now()
    withdrawn_return(root, undo=is_undo)
    records = ThreadRecord.objects.filter(owner_id=root.owner_id, cleared_by=root.pk)
    records.update(cleared_at=None if is_undo else now)
    rows = list(Extraction.objects.filter(owner_id=root.owner_id, cleared_by=root.pk).select_related("session"))
    if is_undo:
        sessions_return({row.session: (row.floor_seq, _reviewed_before(row)) for row in rows})
    else:
        positions = sessions_mark_reviewed(Session.objects.filter(pk__in=[row.session_id for row in rows]))
    for row in rows:
        if is_undo:
            for name in _POSITION_FIELDS:
                setattr(row, name, (row.before_clear or {}).get(name, getattr(row, name)))
        else:
            row.before_clear = _undo_data(row, positions)
            _move_to_end(row, row.session)
        row.cleared_at = None if is_undo else now
    Extraction.objects.bulk_update(rows, [*_POSITION_FIELDS, "before_clear", "cleared_at"], batch_size=500)


def notes_forget(owner_id: UUID, session_id: UUID) -> None:
    """Erase the notes on a session that was deleted or is forgotten, and have the documents rewritten without them."""
    ClearedReview.objects.filter(owner_id=owner_id, review__session=session_id).delete()
    row = Extraction.objects.filter(owner_id=owner_id, session_id=session_id).first()
    if row is None:
        return
    had_notes = bool(row.raw_memory or row.synopsis)
    Extraction.objects.filter(pk=row.pk).update(**ERASED)
    if had_notes and row.cleared_at is None:
        record_change(row.owner_id, row.book_id, forgotten=True)


def purge_cleared(before: datetime) -> int:
    """Erase the notes and delete the proposals of clears that can no longer be undone. Returns the number of notes."""
    ClearedReview.objects.filter(cleared_at__lt=before).delete()
    return Extraction.objects.filter(cleared_at__lt=before).exclude(raw_memory="", synopsis="").update(**ERASED)


def _delete_memories(writer: BookWriter, limit: int, *, through: int | None = None) -> list[dict[str, Any]]:
    """Delete up to `limit` live memories of the book, lowest numbers first, with numbers up to `through` if given."""
    book = writer.book
    rows = live_in(book).order_by("number")
    if through is not None:
        rows = rows.filter(number__lte=through)
    return [change_json(writer.gather_deleted(memory)) for memory in rows[:limit]]


def _mark_read(book: Book, change_set: UUID, sessions: "QuerySet[Session]") -> None:
    """Mark sessions of the book as read up to their current end, so that no message before it is read again."""
    positions = sessions_mark_reviewed(sessions)
    books_lock([book.pk])
    _extractions_pass(book, change_set, positions)


def _extractions_pass(book: Book, change_set: UUID, positions: ReviewPositions) -> None:
    """Pass over the messages of sessions that were marked as reviewed. The caller has locked the book."""
    by_id = {session.pk: session for session in Session.objects.filter(pk__in=positions)}
    existing = list(Extraction.objects.filter(owner_id=book.owner_id, book=book, session__in=by_id))
    known = {row.session_id for row in existing}
    new = [
        Extraction(owner_id=book.owner_id, book=book, session=session, said_at=session.last_active_at)
        for session in by_id.values()
        if session.pk not in known
    ]
    now = timezone.now()
    for row in (*existing, *new):
        row.before_clear = _undo_data(row, positions)
        row.cleared_at, row.cleared_by = now, change_set
        _move_to_end(row, by_id[row.session_id])
    changed = [*_POSITION_FIELDS, "before_clear", "cleared_at", "cleared_by"]
    Extraction.objects.bulk_update(existing, changed, batch_size=500)
    Extraction.objects.bulk_create(new, batch_size=500)


def _undo_data(row: Extraction, positions: ReviewPositions) -> dict[str, Any]:
    """Return what an undo of the clear restores: the extraction's position and its session's review position."""
    before = {name: getattr(row, name) for name in _POSITION_FIELDS}
    return before | ({"reviewed": list(positions[row.session_id])} if row.session_id in positions else {})


def _reviewed_before(row: Extraction) -> tuple[int, int] | None:
    reviewed = (row.before_clear or {}).get("reviewed")
    return (reviewed[0], reviewed[1]) if reviewed else None


def _move_to_end(row: Extraction, session: Session) -> None:
    row.state = Extraction.State.PASSED
    row.through_seq = row.floor_seq = session.message_seq


def _records(book: Book) -> "QuerySet[ThreadRecord]":
    return ThreadRecord.objects.filter(owner_id=book.owner_id, session_id__in=sessions_in(book).values("pk"))


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()

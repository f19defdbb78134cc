"""How a clear marks sessions as read, so that nothing said before it is read again, and what its undo restores."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from gateway.models import Session
from memories.ids import parse_uuid
from memories.models import Book, ChangeSet
from memories.services import books_lock
from reviews.consolidation.selection import sessions_in
from reviews.models import Extraction

_BATCH = 500
_POSITION_FIELDS = ("state", "through_seq", "floor_seq")
_CHANGED_FIELDS = (*_POSITION_FIELDS, "before_clear", "cleared_at", "cleared_by")


def sessions_to_mark(book: Book) -> "QuerySet[Session]":
    """Return the sessions to mark as read: the book's, and those with notes in it whose agent has another book by now;
    without those that were marked before and say nothing new."""
    rows = Session.objects.filter(Q(pk__in=sessions_in(book)) | Q(extraction__book=book), owner_id=book.owner_id)
    return rows.exclude(extraction__cleared_at__isnull=False, extraction__floor_seq=F("message_seq"))


def mark_read(book: Book, change_set: UUID, sessions: "QuerySet[Session]") -> None:
    """Mark sessions of the book as read up to their current end, so that no message before it is read again."""
    marked = mark_reviewed(sessions)
    books_lock([book.pk])
    pass_sessions(book, change_set, marked)


def mark_reviewed(sessions: "QuerySet[Session]") -> dict[UUID, Session]:
    """Mark all messages of the sessions as reviewed. Returns the sessions as they were before, by id."""
    before = {row.pk: row for row in sessions.select_for_update(of=("self",), no_key=True).order_by("pk")}
    locked = Session.objects.filter(pk__in=before)
    locked.update(reviewed_through=F("message_seq"), turns_since_memory_review=0)
    return before


def pass_sessions(book: Book, change_set: UUID, sessions: Mapping[UUID, Session]) -> None:
    """Let the extractions of sessions that were marked as reviewed pass over their messages. The caller has locked the
    book."""
    rows = Extraction.objects.filter(owner_id=book.owner_id, session__in=sessions)
    existing = list(rows.select_related("session"))
    known = {row.session_id for row in existing}
    new = [
        Extraction(owner_id=book.owner_id, book=book, session=session, said_at=session.last_active_at)
        for session in sessions.values()
        if session.pk not in known
    ]
    _move_to_end([*existing, *new], sessions)
    _mark_cleared([*existing, *new], book.pk, change_set)
    Extraction.objects.bulk_update(existing, _CHANGED_FIELDS, batch_size=_BATCH)
    Extraction.objects.bulk_create(new, batch_size=_BATCH)


def marks_undo(root: ChangeSet, *, undo: bool) -> None:
    """Undo the marks of a clear, or set them again if `undo` is False. The caller has locked the sessions."""
    rows = list(Extraction.objects.filter(owner_id=root.owner_id, cleared_by=root.pk).select_related("session"))
    if undo:
        _return_positions(rows)
    else:
        _move_to_end(rows, mark_reviewed(Session.objects.filter(pk__in=[row.session_id for row in rows])))
        _mark_cleared(rows, root.book_id, root.pk)
    Extraction.objects.bulk_update(rows, _CHANGED_FIELDS, batch_size=_BATCH)
    _note_earlier(root, undo=undo)


def _note_earlier(root: ChangeSet, *, undo: bool) -> None:
    """Note where a later clear has marked the session too whether this one is in effect: an undo of the later one
    restores its mark only then."""
    changed = []
    for row in Extraction.objects.filter(owner_id=root.owner_id, before_clear__has_key="cleared"):
        for mark in (row.before_clear or {}).get("cleared", ()):
            if mark[1] == str(root.pk):
                mark[0] = None if undo else timezone.now().isoformat()
                changed.append(row)
    Extraction.objects.bulk_update(changed, ["before_clear"], batch_size=_BATCH)


def _mark_cleared(rows: Iterable[Extraction], book_id: UUID, change_set: UUID) -> None:
    """Mark extractions as cleared. Notes of another book, which the session's agent had before, stay valid there."""
    now = timezone.now()
    for row in rows:
        row.cleared_by = change_set
        if row.book_id == book_id:
            row.cleared_at = now


def _move_to_end(rows: Iterable[Extraction], reviewed: Mapping[UUID, Session]) -> None:
    """Move extractions to the end of their sessions. `before_clear` keeps what an undo restores: the position of each
    and, from `reviewed`, the review position of its session."""
    for row in rows:
        cleared = (row.before_clear or {}).get("cleared", ())
        row.before_clear = {name: getattr(row, name) for name in _POSITION_FIELDS}
        if row.cleared_at:  # an undo leaves in effect what was cleared or forgotten before
            row.before_clear["cleared"] = [*cleared, [row.cleared_at.isoformat(), str(row.cleared_by)]]
        if row.state == Extraction.State.QUEUED:  # the clear ends its run
            row.before_clear["state"] = Extraction.State.PASSED
        if session := reviewed.get(row.session_id):
            row.before_clear["reviewed"] = [session.reviewed_through, session.turns_since_memory_review]
        row.state = Extraction.State.PASSED
        row.through_seq = row.floor_seq = row.session.message_seq


def _return_positions(rows: Iterable[Extraction]) -> None:
    """Restore the positions of extractions before a clear, and the review positions of their sessions, except of those
    that were reviewed beyond the last message of the clear. The caller has locked the sessions and saves the rows."""
    changed = []
    for row in rows:
        before, session = row.before_clear or {}, row.session
        if before.get("reviewed") and session.reviewed_through == row.floor_seq:
            session.reviewed_through, turns = before["reviewed"]
            session.turns_since_memory_review = min(session.turns, session.turns_since_memory_review + turns)
            changed.append(session)
        for name in _POSITION_FIELDS:
            setattr(row, name, before.get(name, getattr(row, name)))
        row.cleared_at = None
        if in_effect := [mark for mark in before.get("cleared", ()) if mark[0]]:
            *earlier, (at, by) = in_effect
            row.cleared_at, row.cleared_by = datetime.fromisoformat(at), parse_uuid(by)
            row.before_clear = {"cleared": earlier}
    Session.objects.bulk_update(changed, ["reviewed_through", "turns_since_memory_review"], batch_size=_BATCH)

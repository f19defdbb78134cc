"""How a clear marks sessions as read, so that nothing said before it is read again, and what its undo restores."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
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
_RESTORED = (*_POSITION_FIELDS, "reviewed")
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
    _mark_cleared([*existing, *new], sessions, book.pk, change_set)
    Extraction.objects.bulk_update(existing, _CHANGED_FIELDS, batch_size=_BATCH)
    Extraction.objects.bulk_create(new, batch_size=_BATCH)


def extractions_of_clear(root: ChangeSet) -> "QuerySet[Extraction]":
    """Return the extractions that a clear has marked, also if a later one has marked them too, or if it was undone."""
    named = Q(cleared_by=root.pk) | Q(before_clear__icontains=str(root.pk))
    return Extraction.objects.filter(named, owner_id=root.owner_id)


def marks_undo(root: ChangeSet, in_effect: Sequence[UUID], *, undo: bool) -> None:
    """Undo the marks of a clear, or set them again if `undo` is False; a repeated undo or redo changes nothing. If one
    of the other clears `in_effect` came later and found nothing new to mark, the marks become its own. The caller has
    locked the sessions."""
    rows = list(extractions_of_clear(root).select_related("session"))
    rows = [row for row in rows if any(by == str(root.pk) for _, by, _ in _clears(row)) == undo]
    if undo:
        later = [str(clear) for clear in in_effect if clear > root.pk]
        sessions = [row.session for row in rows if _unmark(row, str(root.pk), later)]
        Session.objects.bulk_update(sessions, ["reviewed_through", "turns_since_memory_review"], batch_size=_BATCH)
    else:
        reviewed = mark_reviewed(Session.objects.filter(pk__in=[row.session_id for row in rows]))
        _mark_cleared(rows, reviewed, root.book_id, root.pk)
    Extraction.objects.bulk_update(rows, _CHANGED_FIELDS, batch_size=_BATCH)


def _mark_cleared(
    rows: Iterable[Extraction], reviewed: Mapping[UUID, Session], book_id: UUID, change_set: UUID
) -> None:
    """Mark extractions as cleared and move them to the end of their sessions. An undo restores the position of each
    and, from `reviewed`, the review position of its session. Notes of another book, which the session's agent had
    before, stay valid there."""
    now = timezone.now()
    for row in rows:
        clears, saved = _clears(row), {name: getattr(row, name) for name in _POSITION_FIELDS}
        if row.state == Extraction.State.QUEUED:  # the clear ends its run
            saved["state"] = Extraction.State.PASSED
        if session := reviewed.get(row.session_id):
            saved["reviewed"] = [session.reviewed_through, session.turns_since_memory_review]
        clears.append([now.isoformat() if row.book_id == book_id else None, str(change_set), saved])
        row.state = Extraction.State.PASSED
        row.through_seq = row.floor_seq = row.session.message_seq
        _keep(row, clears, [clear for clear in _undone(row) if clear != str(change_set)])


def _unmark(row: Extraction, clear: str, later: Sequence[str]) -> bool:
    """Take a clear out of those in effect, or replace it with a `later` one that found nothing new to mark. Otherwise,
    after the latest one, restore the position before it and the session's review position, unless the session was
    reviewed beyond the clear; after another one, the undo of the next does so. Return True if the session was
    changed."""
    clears, session = _clears(row), row.session
    place = next(number for number, (_, by, _) in enumerate(clears) if by == clear)
    at, _, saved = clears.pop(place)
    until = clears[place][1] if place < len(clears) else None
    if heirs := [other for other in later if until is None or other < until]:
        clears.insert(place, [at, max(heirs), saved])
        changes_session = False
    elif place < len(clears):
        following = clears[place][2]
        if "reviewed" in saved and "reviewed" in following:
            saved["reviewed"][1] += following["reviewed"][1]
        following.update(saved)
        changes_session = False
    else:
        changes_session = "reviewed" in saved and session.reviewed_through == row.floor_seq
        if changes_session:
            session.reviewed_through, turns = saved["reviewed"]
            session.turns_since_memory_review = min(session.turns, session.turns_since_memory_review + turns)
        for name in _POSITION_FIELDS:
            setattr(row, name, saved.get(name, getattr(row, name)))
    _keep(row, clears, [*_undone(row), clear])
    return changes_session


def marks_after_reading(row: Extraction) -> dict[str, Any]:
    """Return the fields of an extraction that has new notes: no clear hides these, but each can still be undone, which
    makes due again what was said before it. The caller has locked the book."""
    _keep(row, [[None, by, saved] for _, by, saved in _clears(row)], _undone(row))
    return {"before_clear": row.before_clear, "cleared_at": row.cleared_at, "cleared_by": row.cleared_by}


def _clears(row: Extraction) -> list[list[Any]]:
    """Return the clears and forgettings in effect, oldest first: when it hid the notes (None if it did not), by what,
    and what was before it. Old rows do not say what was before earlier ones."""
    before = row.before_clear or {}
    clears = [[*clear, {}][:3] for clear in before.get("cleared", ())]
    if (row.cleared_at or row.cleared_by) and str(row.cleared_by) not in _undone(row):
        saved = {name: before[name] for name in _RESTORED if name in before}
        at = row.cleared_at and row.cleared_at.isoformat()
        clears.append([None if at in {earlier for earlier, *_ in clears} else at, str(row.cleared_by), saved])
    return clears


def _keep(row: Extraction, clears: list[list[Any]], undone: list[str]) -> None:
    """Set the clears in effect, and the ids of those that were undone. The caller saves the row."""
    *earlier, (_, by, saved) = clears or [[None, None, {}]]
    hidden_at = next((at for at, *_ in reversed(clears) if at), None)
    row.cleared_at, row.cleared_by = hidden_at and datetime.fromisoformat(hidden_at), parse_uuid(by)
    row.before_clear = {**saved, "cleared": earlier, "undone": undone}


def _undone(row: Extraction) -> list[str]:
    return list((row.before_clear or {}).get("undone", ()))

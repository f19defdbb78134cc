"""How a clear marks sessions as read, so that nothing said before it is read again, and what its undo restores."""

from collections.abc import Iterable, Mapping
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


def marks_undo(root: ChangeSet, *, undo: bool) -> None:
    """Undo the marks of a clear, or set them again if `undo` is False. The caller has locked the sessions."""
    rows = list(extractions_of_clear(root).select_related("session"))
    if undo:
        rows = [row for row in rows if str(root.pk) not in _undone(row)]
        _take_out([row for row in rows if row.cleared_by != root.pk], str(root.pk))
        _return_positions([row for row in rows if row.cleared_by == root.pk])
        for row in rows:
            row.before_clear = {**(row.before_clear or {}), "undone": [*_undone(row), str(root.pk)]}
    else:
        reviewed = mark_reviewed(Session.objects.filter(pk__in=[row.session_id for row in rows]))
        _mark_cleared(rows, reviewed, root.book_id, root.pk)
    Extraction.objects.bulk_update(rows, _CHANGED_FIELDS, batch_size=_BATCH)


def _mark_cleared(
    rows: Iterable[Extraction], reviewed: Mapping[UUID, Session], book_id: UUID, change_set: UUID
) -> None:
    """Mark extractions as cleared and move them to the end of their sessions. Notes of another book, which the
    session's agent had before, stay valid there.

    `before_clear` keeps what an undo restores: the position of each and, from `reviewed`, the review position of its
    session. Its `cleared` holds the same for each earlier clear (or forgetting) that is in effect: when, by what, and
    what was before it. Its `undone` names those that are not."""
    now = timezone.now()
    for row in rows:
        before = row.before_clear or {}
        earlier = _earlier(row)
        if (row.cleared_at or row.cleared_by) and str(row.cleared_by) not in _undone(row):
            at = row.cleared_at and row.cleared_at.isoformat()
            earlier.append([at, str(row.cleared_by), {name: before[name] for name in _RESTORED if name in before}])
        undone = [clear for clear in _undone(row) if clear != str(change_set)]
        row.before_clear = {name: getattr(row, name) for name in _POSITION_FIELDS}
        row.before_clear |= {"cleared": earlier, "undone": undone}
        if row.state == Extraction.State.QUEUED:  # the clear ends its run
            row.before_clear["state"] = Extraction.State.PASSED
        if session := reviewed.get(row.session_id):
            row.before_clear["reviewed"] = [session.reviewed_through, session.turns_since_memory_review]
        row.state = Extraction.State.PASSED
        row.through_seq = row.floor_seq = row.session.message_seq
        row.cleared_by = change_set
        if row.book_id == book_id:
            row.cleared_at = now


def _return_positions(rows: Iterable[Extraction]) -> None:
    """Restore the positions of extractions before their latest clear, and the review positions of their sessions,
    except of those that were reviewed beyond the last message of the clear. The caller has locked the sessions and
    saves the rows."""
    changed = []
    for row in rows:
        before, session, earlier = row.before_clear or {}, row.session, _earlier(row)
        if before.get("reviewed") and session.reviewed_through == row.floor_seq:
            session.reviewed_through, turns = before["reviewed"]
            session.turns_since_memory_review = min(session.turns, session.turns_since_memory_review + turns)
            changed.append(session)
        for name in _POSITION_FIELDS:
            setattr(row, name, before.get(name, getattr(row, name)))
        row.cleared_at, row.before_clear = None, {"undone": _undone(row)}
        if earlier:  # stays in effect
            at, by, saved = earlier.pop()
            row.cleared_at, row.cleared_by = at and datetime.fromisoformat(at), parse_uuid(by)
            row.before_clear |= {**saved, "cleared": earlier}
    Session.objects.bulk_update(changed, ["reviewed_through", "turns_since_memory_review"], batch_size=_BATCH)


def _take_out(rows: Iterable[Extraction], clear: str) -> None:
    """Take a clear out of those that later ones leave in effect: an undo of the next one restores what was before
    this."""
    for row in rows:
        row.before_clear = {**(row.before_clear or {}), "cleared": _earlier(row)}
        earlier = row.before_clear["cleared"]
        place = next(number for number, (_, by, _) in enumerate(earlier) if by == clear)
        *_, saved = earlier.pop(place)
        later = earlier[place][2] if place < len(earlier) else row.before_clear
        if "reviewed" in saved and "reviewed" in later:
            saved["reviewed"][1] += later["reviewed"][1]
        later.update(saved)


def _earlier(row: Extraction) -> list[list[Any]]:
    """Return the earlier clears in effect. Old rows do not say what was before them."""
    return [[*clear, {}][:3] for clear in (row.before_clear or {}).get("cleared", ())]


def _undone(row: Extraction) -> list[str]:
    return list((row.before_clear or {}).get("undone", ()))

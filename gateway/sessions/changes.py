"""Tells those who watch a session when its title, its state or its newest turn has changed.

One task per process reads the rows of all watched sessions once a second. Whatever changes a session, in whichever
process, needs to tell nobody; no message can be lost; and while nobody watches, nothing is read
(docs/decisions/0064)."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError
from django.db.models import OuterRef, Subquery

from gateway.models import Run, Session
from memories.database.access import in_read_thread, working_for

logger = logging.getLogger("daybook.push")
_Key = tuple[UUID, UUID]  # owner and session
_Row = tuple[Any, ...]
# At least one of these changes with what is told, except while a branch is shown in parts.
_COLUMNS = ("message_seq", "last_active_at", "turns", "history_hash", "title", "state", "branch_until")
_SESSIONS_PER_QUERY = 500
_UNREAD: _Row = ("unread",)


@dataclass(slots=True)
class _Watched:
    """A watched session: its row when it was last read (None if it was deleted), what was told then, and the events
    that wake its watchers."""

    row: _Row | None = _UNREAD
    news: dict[str, Any] | None = None
    watchers: set[asyncio.Event] = field(default_factory=set)


_watched: dict[_Key, _Watched] = {}
_task: "asyncio.Task[None] | None" = None


async def session_changes(owner_id: UUID, session_id: UUID) -> AsyncGenerator[dict[str, Any]]:
    """Yield the session as JSON, soon and whenever it has changed, without end. The caller has checked that the owner
    may see the session, and closes the generator."""
    global _task
    key, changed, told = (owner_id, session_id), asyncio.Event(), None
    watched = _watched.setdefault(key, _Watched())
    watched.watchers.add(changed)
    if _task is None or _task.done():
        _task = asyncio.create_task(_read_again_and_again(), name="watched sessions")
    try:
        while True:
            if watched.news is not None and watched.news != told:
                told = watched.news
                yield told
            await changed.wait()
            changed.clear()
    finally:
        watched.watchers.discard(changed)
        if not watched.watchers:
            del _watched[key]
        if not _watched and _task:
            _task.cancel()
            _task = None  # it has not ended yet, and must not be taken for one that reads for the next watcher


def session_deleted(session_id: UUID) -> dict[str, Any]:
    """Return what is told of a session that was deleted, or is unknown to the caller."""
    return {"kind": "session.deleted", "session_id": str(session_id)}


async def _read_again_and_again() -> None:
    working_for.set(None)  # not for the owner of the socket that came first
    is_failing = False
    while True:
        try:
            await _read_once()
            is_failing = False
        except Exception as error:  # the task must survive: those who watch already would learn nothing more
            if not is_failing:
                said = "watched sessions cannot be read (%s); pages show changes later"
                logger.warning(said, type(error).__name__, exc_info=not isinstance(error, DatabaseError))
            is_failing = True
        await asyncio.sleep(settings.SESSION_WATCH_SECONDS)


async def _read_once() -> None:
    before = {key: watched.row for key, watched in _watched.items()}
    for key, (row, news) in (await in_read_thread(_changed, before)).items():
        if watched := _watched.get(key):
            watched.row, watched.news = row, news
            for changed in watched.watchers:
                changed.set()


def _changed(before: Mapping[_Key, _Row | None]) -> dict[_Key, tuple[_Row | None, dict[str, Any]]]:
    """Return the sessions whose rows differ from those before, with what is told of them."""
    rows: dict[_Key, _Row | None] = dict.fromkeys(before)
    rows.update(((row[0], row[1]), row[2:]) for row in _columns(before, *_COLUMNS))
    changed = {key: row for key, row in rows.items() if row != before[key] and (row is None or row[-1] is None)}
    news = _news(key for key, row in changed.items() if row is not None)
    return {key: (row, news.get(key) or session_deleted(key[1])) for key, row in changed.items()}


def _news(keys: Iterable[_Key]) -> dict[_Key, dict[str, Any]]:
    latest = Run.objects.filter(owner_id=OuterRef("owner_id"), session_id=OuterRef("pk"), superseded=False)
    turn = {name: Subquery(latest.order_by("-id").values(name)[:1]) for name in ("pk", "state")}
    found = _columns(keys, "title", "state", turn_id=turn["pk"], turn_state=turn["state"])
    return {
        (owner, pk): {
            "kind": "session.changed",
            "session_id": str(pk),
            "title": title,
            "state": state,
            "turn": {"id": str(turn_id), "state": turn_state} if turn_id else None,
        }
        for owner, pk, title, state, turn_id, turn_state in found
    }


def _columns(keys: Iterable[_Key], *names: str, **more: Any) -> Iterable[_Row]:
    """Yield (owner, session, values of these columns and of `more`) of the sessions that exist."""
    wanted = {pk: owner_id for owner_id, pk in keys}
    pks = list(wanted)
    for start in range(0, len(pks), _SESSIONS_PER_QUERY):
        # The owner is compared here: with it in the query, SQLite would read all sessions of the owner.
        found = Session.objects.filter(pk__in=pks[start : start + _SESSIONS_PER_QUERY]).annotate(**more)
        rows = found.values_list("owner_id", "pk", *names, *more)
        yield from (row for row in rows if row[0] == wanted[row[1]])

"""The record of one session: what was said in its completed runs, for the short-term lane.

Rows point at runs; the words stay where the gateway keeps them, which reads them through a callable that it registers
when Django starts. The index lives in process beside the session's snapshot and grows when a run closes."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.conf import settings

from memories.invalidation import Forgotten, Kind, register_cache, watch
from memories.models import ThreadRecord
from memories.search.entries import Entry
from memories.search.index import BookIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadTurn:
    """One recorded turn: what the person and the agent said."""

    record_id: UUID
    run_id: UUID
    turn: int
    user: str
    assistant: str
    said_at: datetime


# (owner, session, id of the newest record known or None) -> the turns recorded after it, oldest first; superseded
# runs are left out. Synchronous; one query.
ThreadReader = Callable[[UUID, UUID, UUID | None], Sequence[ThreadTurn]]
_reader: ThreadReader | None = None


def register_reader(reader: ThreadReader) -> None:
    """The gateway's way to the words of a run; called from its AppConfig's ready()."""
    global _reader
    _reader = reader


def record_run(*, owner_id: UUID, session_id: UUID, run_id: UUID) -> ThreadRecord:
    """Record a completed run under `threads/<session id>/`, once per run id, in the caller's transaction."""
    return ThreadRecord.objects.create(owner_id=owner_id, session_id=session_id, run_id=run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadHit:
    """A part of an earlier turn that answers a query."""

    run_id: UUID
    turn: int
    text: str


class ThreadView:
    """The recorded turns of a session that the context window no longer shows, searchable."""

    def __init__(self, outside: Sequence[ThreadTurn]) -> None:
        self.outside = tuple(outside)

    def search(self, query: str, *, limit: int) -> list[ThreadHit]:
        """The best parts, best first; one part per side of a turn."""
        parts = [
            part for turn in self.outside for part in ((turn, turn.user, "user"), (turn, turn.assistant, "assistant"))
        ]
        index = BookIndex.build(
            [
                Entry(number=number, content=text, session_id="thread", speaker=speaker, said_at=turn.said_at)
                for number, (turn, text, speaker) in enumerate(parts)
            ]
        )
        hits = index.search(query, limit=limit)
        return [
            ThreadHit(run_id=parts[h.number][0].run_id, turn=parts[h.number][0].turn, text=parts[h.number][1])
            for h in hits
        ]


@dataclass(slots=True)
class ThreadCache:
    """Recorded turns of sessions in use, by session, bounded. Thread-safe."""

    _turns: "OrderedDict[UUID, tuple[ThreadTurn, ...]]" = field(default_factory=OrderedDict)
    _used: dict[UUID, tuple[UUID, float]] = field(default_factory=dict)  # by session: its owner, and when it was used
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _forgettings: int = 0

    def known(self, session_id: UUID, newest: UUID | None) -> tuple[ThreadTurn, ...] | None:
        """The session's turns if nothing newer than `newest` exists; no query."""
        with self._lock:
            turns = self._turns.get(session_id)
            if newest is None:
                return ()
            if turns is None or not turns or turns[-1].record_id != newest:
                return None
            self._use(session_id, self._used[session_id][0])
            return turns

    def read(self, owner_id: UUID, session_id: UUID) -> tuple[ThreadTurn, ...]:
        """All recorded turns, the missing ones from their rows."""
        watch()
        forgettings = self._forgettings
        turns = tuple(_reader(owner_id, session_id, None)) if _reader else ()
        with self._lock:
            if forgettings == self._forgettings:  # else what was read may be forgotten: it serves this turn only
                self._turns[session_id] = turns
                self._use(session_id, owner_id)
        return turns

    def append(self, owner_id: UUID, session_id: UUID, turn: ThreadTurn, *, after: UUID | None) -> None:
        """Add the turn that was just recorded, if what is kept ends with the record `after` (None: the session had no
        record). A turn that replaces an earlier one takes its place, and that of what followed it."""
        with self._lock:
            turns = self._turns.get(session_id, ()) if after else ()
            if after and (not turns or turns[-1].record_id != after):
                return
            self._turns[session_id] = (*(known for known in turns if known.turn < turn.turn), turn)
            self._use(session_id, owner_id)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._forgettings += 1
            self._turns.clear()
            self._used.clear()

    def drop(self, session_id: UUID) -> None:
        """Forget a session that ended, was deleted or had a turn replaced."""
        with self._lock:
            self._forgettings += 1
            self._forget(session_id)

    def forget(self, forgotten: Forgotten) -> None:
        """Drop what was forgotten. A book's forgetting leaves the record of its conversations."""
        if forgotten.session_id is not None:
            self.drop(forgotten.session_id)
        elif forgotten.kind == Kind.OWNER:
            with self._lock:
                self._forgettings += 1
                for session in [key for key, (owner, _) in self._used.items() if owner == forgotten.owner_id]:
                    self._forget(session)

    def trim(self) -> None:
        """Drop what was not used for SNAPSHOT_IDLE_SECONDS."""
        stale = time.monotonic() - settings.SNAPSHOT_IDLE_SECONDS
        with self._lock:
            while self._turns and self._used[next(iter(self._turns))][1] < stale:
                self._forget(next(iter(self._turns)))

    def _use(self, session_id: UUID, owner_id: UUID) -> None:
        self._turns.move_to_end(session_id)
        self._used[session_id] = (owner_id, time.monotonic())
        while len(self._turns) > settings.SNAPSHOT_SESSIONS:
            self._forget(next(iter(self._turns)))

    def _forget(self, session_id: UUID) -> None:
        self._turns.pop(session_id, None)
        self._used.pop(session_id, None)


thread_cache = ThreadCache()
register_cache(thread_cache.forget, trim=thread_cache.trim, clear=thread_cache.clear)


def outside_window(turns: Sequence[ThreadTurn], window_texts: Collection[str]) -> ThreadView:
    """The turns of which not both sides are among the folded texts of the request."""
    return ThreadView(
        [turn for turn in turns if not (_fold(turn.user) in window_texts and _fold(turn.assistant) in window_texts)]
    )


def _fold(text: str) -> str:
    return " ".join(text.split())

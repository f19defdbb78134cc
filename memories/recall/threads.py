"""The record of one session: what was said in its completed runs, for the short-term lane.

Rows point at runs; the words stay where the gateway keeps them, which reads them through a callable that it registers
when Django starts. The index lives in process beside the session's snapshot and grows when a run closes."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from django.conf import settings

from memories.database.statements import Insert, RowFactory
from memories.ids import uuid7, uuid7_after
from memories.lru_cache import LRUCache
from memories.messaging.invalidation import Forgotten, Kind, register_cache, watch
from memories.models import ThreadRecord
from memories.registered import Registered
from search.entries import Entry
from search.index import BookIndex
from search.keywords import extract_keywords
from search.query import message_of, searched_part


@dataclass(frozen=True, kw_only=True)
class ThreadTurn:
    """One recorded turn: what the person and the agent said. `assistant` is the text of all model steps, `answer` that
    of the last one that said something ("" if it is not known)."""

    record_id: UUID
    run_id: UUID
    turn: int
    user: str
    assistant: str
    answer: str = ""
    said_at: datetime

    @cached_property
    def user_key(self) -> int:
        """Compares the user message with messages of a request."""
        return hash(_squeeze(self.user))

    @cached_property
    def answer_keys(self) -> frozenset[int]:
        """Compares the answer with messages of a request: the whole text, and the last step alone."""
        return frozenset(hash(text) for text in map(_squeeze, (self.assistant, self.answer)) if text)


MAX_VIEW_BYTES = 32_000_000
"""Memory for the indexes of conversations in one process: about a hundred of fifty turns."""
_WEIGH_INTERVAL_SECONDS = 1.0  # adding all of them up takes a while

_NEW = RowFactory(ThreadRecord)
_INSERT: Insert[ThreadRecord] = Insert(ThreadRecord)
# (owner, session, id of the newest record known or None) -> the turns recorded after it, oldest first; superseded
# runs are left out. Synchronous; three queries.
ThreadReader = Callable[[UUID, UUID, UUID | None], Sequence[ThreadTurn]]
thread_reader = Registered[ThreadReader]("how the words of a run are read")


def record_run(*, owner_id: UUID, session_id: UUID, run_id: UUID, after: datetime) -> ThreadRecord:
    """Record a completed run under `threads/<session id>/`, once per run id, in the caller's transaction. `after` is
    when the session was last active: the newest record is the one with the greatest id."""
    record = _NEW.row(id=uuid7_after(after), owner_id=owner_id, session_id=session_id, run_id=run_id)
    _INSERT.execute([record])
    return record


def thread_changed(*, owner_id: UUID, session_id: UUID) -> None:
    """Give the newest record of a session another id, in the caller's transaction: other turns stand now, and what a
    process holds of them is read again. The records keep their order."""
    records = ThreadRecord.objects.filter(owner_id=owner_id, session_id=session_id, cleared_at=None)
    newest = records.order_by("-id").values_list("id", flat=True).first()
    if newest is not None:
        records.filter(id=newest).update(id=uuid7())


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadHit:
    """A part of an earlier turn that answers a query."""

    run_id: UUID
    turn: int
    text: str


class ThreadView:
    """The recorded turns of a session that the context window no longer shows, searchable. A side of a turn that the
    window still shows is "" in it."""

    def __init__(self, outside: Sequence[ThreadTurn]) -> None:
        self.outside = tuple(outside)
        self._index: BookIndex | None = None

    @property
    def index_ready(self) -> bool:
        """Whether it was searched before."""
        return self._index is not None

    @property
    def nbytes(self) -> int:
        """What the index weighs in memory, in bytes; 0 before the first search."""
        return 0 if self._index is None else self._index.nbytes

    @cached_property
    def parts(self) -> Sequence[tuple[ThreadTurn, str, str]]:
        """What can be found: one part per side of a turn, with its text and its speaker."""
        sides = [(turn, ((turn.user, "user"), (turn.assistant, "assistant"))) for turn in self.outside]
        return [(turn, text, speaker) for turn, both in sides for text, speaker in both if text]

    def search(self, query: str, *, limit: int) -> list[ThreadHit]:
        """Return the best parts, best first. A query without content words ("ok", "go on") finds the newest turns,
        newest first."""
        if not (extract_keywords(query) and message_of(searched_part(query)).tokens):
            # Stable: a turn's question stays before its answer.
            newest = sorted(self.parts, key=lambda part: -part[0].turn)
            return [_hit(turn, text) for turn, text, _ in newest[:limit]]
        if self._index is None:
            self._index = BookIndex.build(
                [
                    Entry(number=number, content=text, session_id="thread", speaker=speaker, said_at=turn.said_at)
                    for number, (turn, text, speaker) in enumerate(self.parts)
                ]
            )
        return [_hit(*self.parts[hit.number][:2]) for hit in self._index.search(query, limit=limit)]


def _hit(turn: ThreadTurn, text: str) -> ThreadHit:
    return ThreadHit(run_id=turn.run_id, turn=turn.turn, text=text)


class CachedThread(NamedTuple):
    """What the cache holds of a session: its turns, and the newest record that they were read with. The run of that
    record may have been superseded and be missing among the turns."""

    owner_id: UUID
    newest: UUID | None
    turns: tuple[ThreadTurn, ...]


@dataclass(slots=True)
class ThreadCache:
    """Recorded turns of sessions in use and the views of them that were searched, by session, bounded. Thread-safe."""

    _threads: LRUCache[UUID, CachedThread] = field(default_factory=LRUCache)
    _views: LRUCache[UUID, ThreadView] = field(default_factory=LRUCache)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _forgettings: int = 0
    _weigh_at: float = 0.0  # in the clock of time.monotonic()

    def known(self, session_id: UUID, newest: UUID | None) -> tuple[ThreadTurn, ...] | None:
        """Return the session's turns if `newest` is the newest record they were read with; no query. They may hold
        turns that were superseded since: those numbered like the turn that is being run, or higher."""
        if newest is None:
            return ()
        with self._lock:
            cached = self._threads.peek(session_id)
            if cached is None or cached.newest != newest:
                return None
            return self._threads.put(session_id, cached).turns

    def view(self, session_id: UUID, view: ThreadView) -> ThreadView:
        """Return the view that the session's last turn searched if it shows the same: its index is there already. Else
        this one, which is kept for the next turn."""
        with self._lock:
            kept = self._views.peek(session_id)
            if kept is not None and kept.outside == view.outside:
                view = kept
            if view.outside and session_id in self._threads:  # else what was read may be forgotten
                self._views.put(session_id, view)
                self._trim_to_size()
            return view

    def peek(self, session_id: UUID) -> CachedThread | None:
        """Return what is held of a session, current or not; looking at it does not keep it."""
        with self._lock:
            return self._threads.peek(session_id)

    def read(self, owner_id: UUID, session_id: UUID, newest: UUID | None = None) -> tuple[ThreadTurn, ...]:
        """Return all recorded turns, from their rows. `newest` is the session's newest record, also if its run was
        superseded; without it, that of the last turn is taken."""
        watch()
        forgettings = self._forgettings
        read_turns = thread_reader()
        turns = tuple(read_turns(owner_id, session_id, None))
        if newest is None and turns:
            newest = turns[-1].record_id
        with self._lock:
            if forgettings == self._forgettings:  # else what was read may be forgotten: it serves this turn only
                self._keep(session_id, CachedThread(owner_id, newest, turns))
        return turns

    def append(self, owner_id: UUID, session_id: UUID, turn: ThreadTurn, *, after: UUID | None) -> None:
        """Add the turn that was just recorded, if what is kept was read with the record `after` (None: the session had
        no record). A turn that replaces an earlier one takes its place, and that of what followed it."""
        with self._lock:
            cached = self._threads.peek(session_id) if after else CachedThread(owner_id, None, ())
            if cached is None or cached.newest != after:
                return
            turns = (*(known for known in cached.turns if known.turn < turn.turn), turn)
            self._keep(session_id, CachedThread(owner_id, turn.record_id, turns))

    def clear(self) -> None:
        with self._lock:
            self._forgettings += 1
            self._threads.clear()
            self._views.clear()

    def drop(self, session_id: UUID) -> None:
        """Forget a session that ended, was deleted or had a turn replaced."""
        with self._lock:
            self._forgettings += 1
            self._threads.pop(session_id, None)
            self._views.pop(session_id, None)

    def forget(self, forgotten: Forgotten) -> None:
        """Drop what was forgotten. A book's forgetting leaves the record of its conversations."""
        if forgotten.session_id is not None:
            self.drop(forgotten.session_id)
        elif forgotten.kind == Kind.OWNER:
            with self._lock:
                self._forgettings += 1
                self._threads.remove_if(lambda cached: cached.owner_id == forgotten.owner_id)
                self._views.clear()  # they are made again; whose they are is not kept

    def trim(self) -> None:
        """Drop what was not used for SNAPSHOT_IDLE_SECONDS."""
        with self._lock:
            self._threads.trim(settings.SNAPSHOT_IDLE_SECONDS)
            self._views.trim(settings.SNAPSHOT_IDLE_SECONDS)

    def _trim_to_size(self) -> None:
        if time.monotonic() < self._weigh_at:
            return
        self._weigh_at = time.monotonic() + _WEIGH_INTERVAL_SECONDS
        total = sum(view.nbytes for _, view in self._views.values())
        while len(self._views) > 1 and total > MAX_VIEW_BYTES:
            _, (_, dropped) = self._views.popitem(last=False)
            total -= dropped.nbytes

    def _keep(self, session_id: UUID, cached: CachedThread) -> None:
        self._threads.put(session_id, cached)
        self._threads.trim(settings.SNAPSHOT_IDLE_SECONDS, settings.SNAPSHOT_SESSIONS)


thread_cache = ThreadCache()
register_cache(thread_cache.forget, trim=thread_cache.trim, clear=thread_cache.clear)


def outside_window(turns: Sequence[ThreadTurn], window: Sequence[tuple[str, Sequence[str]]]) -> ThreadView:
    """Return what a request no longer shows of these turns, message by message. `window` is the request's conversation:
    each user message's text with the texts of the assistant messages that follow it."""
    users: set[int] = set()
    answers: set[int] = set()
    for user, steps in window:
        users.add(hash(_squeeze(user)))
        texts = [_squeeze(text) for text in steps]
        # Clients resend the steps of an answer as they came, or joined.
        answers.update(map(hash, texts))
        answers.add(hash("".join(texts)))
    outside = []
    for turn in turns:
        user_shown, answer_shown = turn.user_key in users, not answers.isdisjoint(turn.answer_keys)
        if not (user_shown or answer_shown):
            outside.append(turn)
        elif not (user_shown and answer_shown):
            outside.append(replace(turn, user="") if user_shown else replace(turn, assistant=""))
    return ThreadView(outside)


def _squeeze(text: str) -> str:
    """Return the text without white space: clients trim and join messages in different ways."""
    return "".join(text.split())

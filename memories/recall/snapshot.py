"""Snapshots: the frozen, in-process view of a book that a session injects from.

A view is shared by all sessions of one book and generation (memories.recall.book_views). `run_open` brings the book's
generation along: an equal one makes a snapshot warm and injection then touches no database; a different one makes it
stale, in whichever process the write happened. Hints between processes are never needed for correctness."""

import threading
import time
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings

from memories.lru_cache import LRUCache
from memories.messaging.invalidation import Forgotten, Kind, register_cache, watch
from memories.recall.book_views import BookState, BookView, load_view
from memories.recall.frozen import FrozenBlock, freeze
from memories.tokens import cut_to_tokens
from prompts.consolidation import guidance

_WEIGH_INTERVAL_SECONDS = 1.0  # views grow while they are searched, but adding all of them up takes a while
_MAX_TOOL_NAMES = 4  # for which a session keeps its guidance; its client decides which names are free


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSnapshot:
    """What one session injects from."""

    view: BookView
    version: tuple[int, ...]  # of what else it depends on: the agent's settings, the session's compactions
    frozen: FrozenBlock
    summary: str = ""  # as far as the session carries it
    _guidance: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    def guidance(self, read_tool: str) -> str:
        """Return the Memory Guidance block that names this tool, "" for none. The same name gives the same bytes."""
        text = self._guidance.get(read_tool)
        if text is None:
            text = guidance(self.summary, read_tool=read_tool)
            if len(self._guidance) < _MAX_TOOL_NAMES:
                self._guidance[read_tool] = text
        return text

    def is_current(self, state: BookState, version: tuple[int, ...]) -> bool:
        """Return True if nothing that may be injected has changed since."""
        return self.view.state == state and self.version == version


@dataclass(slots=True)
class Snapshots:
    """The process's snapshots: per session, and the views they share, both bounded. Thread-safe."""

    _sessions: LRUCache[UUID, SessionSnapshot] = field(default_factory=LRUCache)
    _views: LRUCache[UUID, BookView] = field(default_factory=LRUCache)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _forgettings: int = 0
    _weigh_at: float = 0.0  # in the clock of time.monotonic(); a new view is weighed at once

    def warm(self, session_id: UUID, state: BookState, version: tuple[int, ...]) -> SessionSnapshot | None:
        """Return the session's snapshot if it is of this state; no database query."""
        with self._lock:
            found = self._sessions.peek(session_id)
            if found is None or not found.is_current(state, version):
                return None
            return self._sessions.put(session_id, found)

    def build(
        self,
        session_id: UUID,
        state: BookState,
        version: tuple[int, ...],
        *,
        max_memories: int,
        char_limit: int,
        guidance_tokens: int = 0,
    ) -> SessionSnapshot:
        """Make the session's snapshot, from a shared view where one is fresh, else from the rows. `guidance_tokens`:
        how much of the summary it carries; 0 = no Memory Guidance."""
        forgettings = self._forgettings
        view = self.view(state)
        frozen = view.frozen(max_memories=max_memories, char_limit=char_limit)
        summary = cut_to_tokens(view.summary, guidance_tokens) if guidance_tokens else ""
        snapshot = SessionSnapshot(view=view, version=version, frozen=frozen, summary=summary)
        with self._lock:
            if forgettings == self._forgettings:  # else what was read may be forgotten: it serves this turn only
                self._keep(session_id, snapshot)
        return snapshot

    def from_view(
        self, session_id: UUID, state: BookState, version: tuple[int, ...], *, max_memories: int, char_limit: int
    ) -> SessionSnapshot | None:
        """Make the snapshot of a session without Memory Guidance from a shared view that is fresh and has this block
        already: no database query, and next to no work. None where that takes more."""
        with self._lock:
            view = self._views.touch(state.book_id)
            if view is None or not view.is_fresh_for(state):
                return None
            frozen = view.known_block(max_memories=max_memories, char_limit=char_limit)
            if frozen is None:
                return None
            snapshot = SessionSnapshot(view=view, version=version, frozen=frozen)
            self._keep(session_id, snapshot)
            return snapshot

    def _keep(self, session_id: UUID, snapshot: SessionSnapshot) -> None:
        self._sessions.put(session_id, snapshot)
        self._trim_to_size()

    def peek(self, session_id: UUID) -> SessionSnapshot | None:
        """Return the session's snapshot as it lies here, fresh or not; looking at it does not keep it."""
        with self._lock:
            return self._sessions.peek(session_id)

    def drop(self, session_id: UUID) -> None:
        """Forget the snapshot of a session that ended or was deleted."""
        with self._lock:
            self._forgettings += 1
            self._sessions.pop(session_id, None)

    def forget(self, forgotten: Forgotten) -> None:
        """Drop what was forgotten. A deleted session takes its owner's views along: they keep words of its messages,
        to save time."""
        if forgotten.kind == Kind.SESSION_ENDED:
            assert forgotten.session_id is not None
            self.drop(forgotten.session_id)
            return
        book_id = forgotten.book_id

        def gone(view: BookView) -> bool:
            return view.state.owner_id == forgotten.owner_id and book_id in (None, view.state.book_id)

        with self._lock:
            self._forgettings += 1
            self._views.remove_if(gone)
            self._sessions.remove_if(lambda kept: gone(kept.view))

    def trim(self) -> None:
        """Drop what was not used for SNAPSHOT_IDLE_SECONDS."""
        with self._lock:
            self._sessions.trim(settings.SNAPSHOT_IDLE_SECONDS)
            self._views.trim(settings.SNAPSHOT_IDLE_SECONDS)

    def clear(self) -> None:
        with self._lock:
            self._forgettings += 1
            self._sessions.clear()
            self._views.clear()

    def sizes(self) -> tuple[int, int, int]:
        """Return the numbers of sessions and book views, and the size of the views in bytes."""
        with self._lock:
            sessions, views = len(self._sessions), [view for _, view in self._views.values()]
        return sessions, len(views), sum(view.nbytes for view in views)

    def view(self, state: BookState) -> BookView:
        """Return the shared view of a book, not older than `state`."""
        with self._lock:
            view = self._views.touch(state.book_id)
            if view is not None and view.is_fresh_for(state):
                return view
        watch()
        forgettings = self._forgettings
        view = load_view(state, view)
        with self._lock:
            present = self._views.touch(state.book_id)
            newer = present is None or present.state.generation <= view.state.generation
            if newer and forgettings == self._forgettings:
                self._views.put(state.book_id, view)
                self._weigh_at = 0.0
            return view

    def _trim_to_size(self) -> None:
        self._sessions.trim(settings.SNAPSHOT_IDLE_SECONDS, settings.SNAPSHOT_SESSIONS)
        self._views.trim(settings.SNAPSHOT_IDLE_SECONDS)
        if time.monotonic() < self._weigh_at:
            return
        self._weigh_at = time.monotonic() + _WEIGH_INTERVAL_SECONDS
        total = sum(view.nbytes for _, view in self._views.values())
        while len(self._views) > 1 and total > settings.SNAPSHOT_BYTES:
            _, (_, dropped) = self._views.popitem(last=False)
            total -= dropped.nbytes


snapshots = Snapshots()
register_cache(snapshots.forget, trim=snapshots.trim, clear=snapshots.clear)


def empty_snapshot(state: BookState) -> SessionSnapshot:
    """Return what a run injects from when its snapshot cannot be made: a book without entries. It is not stored."""
    return SessionSnapshot(view=BookView(state, ()), version=(0, 0), frozen=freeze((), max_memories=0, char_limit=0))

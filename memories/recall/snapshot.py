"""Snapshots: the in-process state of a book from which a session injects memory.

A view is shared by all sessions of one book and generation (memories.recall.book_views). A run reads the book's current
generation when it opens: if it equals that of the snapshot, injection needs no query; otherwise the snapshot is stale,
whichever process wrote. So correctness does not depend on hints between processes."""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from memories.messaging.invalidation import Kind, register_cache, watch
from memories.models import Invalidation
from memories.recall.book_views import BookState, BookView, load_view
from memories.recall.frozen import FrozenBlock, freeze
from memories.recall.session_cache import SessionCache
from memories.tokens import cut_to_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSnapshot:
    """What a session injects memory from."""

    view: BookView
    version: tuple[int, ...]  # of its other inputs: the agent's settings, the session's compactions
    frozen: FrozenBlock
    summary: str = ""  # truncated to the session's limit


class Snapshots(SessionCache[SessionSnapshot, BookView]):
    """The snapshots of this process by session, and the shared views by book."""

    def warm(self, session_id: UUID, state: BookState, version: tuple[int, ...]) -> SessionSnapshot | None:
        """Return the session's snapshot if it is current. No query."""
        return self._current(session_id, lambda found: found.view.state == state and found.version == version)

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
        """Build the session's snapshot from the shared view, which is loaded unless it is fresh. `guidance_tokens`
        limits the summary; 0 = no Memory Guidance."""
        forgettings = self._forgettings
        view = self.view(state)
        frozen = view.frozen(max_memories=max_memories, char_limit=char_limit)
        summary = cut_to_tokens(view.summary, guidance_tokens) if guidance_tokens else ""
        snapshot = SessionSnapshot(view=view, version=version, frozen=frozen, summary=summary)
        with self._lock:
            if forgettings == self._forgettings:
                self._keep(session_id, snapshot)
        return snapshot

    def from_view(
        self, session_id: UUID, state: BookState, version: tuple[int, ...], *, max_memories: int, char_limit: int
    ) -> SessionSnapshot | None:
        """Build the snapshot of a session without Memory Guidance from a fresh shared view with a cached block, without
        a query. Return None if there is no such view or block."""
        with self._lock:
            view = self._views.touch(state.book_id)
            if view is None or not view.is_fresh_for(state):
                return None
            frozen = view.cached_block(max_memories=max_memories, char_limit=char_limit)
            if frozen is None:
                return None
            snapshot = SessionSnapshot(view=view, version=version, frozen=frozen)
            self._keep(session_id, snapshot)
            return snapshot

    def _keep(self, session_id: UUID, value: SessionSnapshot) -> None:
        super()._keep(session_id, value)
        self._views.trim(settings.SNAPSHOT_IDLE_SECONDS)
        self._trim_views(settings.SNAPSHOT_BYTES)

    def forget(self, forgotten: Invalidation) -> None:
        """Drop what was forgotten; for a deleted session all views of its owner, which cache terms of its messages."""
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

    def sizes(self) -> tuple[int, int, int]:
        """Return the number of sessions, the number of views, and the size of the views in bytes."""
        with self._lock:
            sessions, views = len(self._sessions), [view for _, view in self._views.values()]
        return sessions, len(views), sum(view.nbytes for view in views)

    def view(self, state: BookState) -> BookView:
        """Return the shared view of a book, which is not older than `state`."""
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
                self._weigh_at = 0.0  # compute the size at once
            return view


snapshots = Snapshots()
register_cache(snapshots.forget, trim=snapshots.trim, clear=snapshots.clear)


def empty_snapshot(state: BookState) -> SessionSnapshot:
    """Return the snapshot of an empty book, for a run whose snapshot cannot be built. It is not cached."""
    return SessionSnapshot(view=BookView(state, ()), version=(0, 0), frozen=freeze((), max_memories=0, char_limit=0))

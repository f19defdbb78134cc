"""The base class of the caches of recall: what sessions use, and the views that they search."""

import threading
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from django.conf import settings

from memories.lru_cache import LRUCache

WEIGH_INTERVAL_SECONDS = 1.0  # views grow while they are searched, but computing the total size takes a while


class HasSize(Protocol):
    @property
    def nbytes(self) -> int: ...


S = TypeVar("S")
V = TypeVar("V", bound=HasSize)


class SessionCache(Generic[S, V]):
    """A value for each recently used session, and views by a key of the subclass; both bounded. Thread-safe."""

    def __init__(self) -> None:
        self._sessions: LRUCache[UUID, S] = LRUCache()
        self._views: LRUCache[UUID, V] = LRUCache()
        self._lock = threading.RLock()
        self._forgettings = 0  # what was read before a forgetting serves only its turn and is not cached
        self._weigh_at = 0.0  # time.monotonic()

    def peek(self, session_id: UUID) -> S | None:
        """Return the cached value of a session, current or not, without counting as a use."""
        with self._lock:
            return self._sessions.peek(session_id)

    def _current(self, session_id: UUID, is_current: Callable[[S], bool]) -> S | None:
        """Return the cached value of a session if it is current, as a use."""
        with self._lock:
            found = self._sessions.peek(session_id)
            return None if found is None or not is_current(found) else self._sessions.put(session_id, found)

    def drop(self, session_id: UUID) -> None:
        """Forget the value of a session that ended or was deleted."""
        with self._lock:
            self._forgettings += 1
            self._sessions.pop(session_id, None)

    def trim(self) -> None:
        """Drop values and views that were not used for SNAPSHOT_IDLE_SECONDS."""
        with self._lock:
            self._sessions.trim(settings.SNAPSHOT_IDLE_SECONDS)
            self._views.trim(settings.SNAPSHOT_IDLE_SECONDS)

    def clear(self) -> None:
        with self._lock:
            self._forgettings += 1
            self._sessions.clear()
            self._views.clear()

    def _keep(self, session_id: UUID, value: S) -> None:
        self._sessions.put(session_id, value)
        self._sessions.trim(settings.SNAPSHOT_IDLE_SECONDS, settings.SNAPSHOT_SESSIONS)

    def _trim_views(self, max_bytes: int) -> None:
        """Drop the least recently used views beyond `max_bytes` in total, except the last one."""
        if time.monotonic() < self._weigh_at:
            return
        self._weigh_at = time.monotonic() + WEIGH_INTERVAL_SECONDS
        total = sum(view.nbytes for _, view in self._views.values())
        while len(self._views) > 1 and total > max_bytes:
            _, (_, dropped) = self._views.popitem(last=False)
            total -= dropped.nbytes

"""Counts the watchers of each owner's running turns: streams of a turn's events (gateway.api.sessions), and repeated
requests that wait for an answer (gateway.turns.joined). Each of them costs a little with every piece of the answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from memories.errors import RateLimited
from memories.limits import WATCHERS
from memories.open_counts import OpenCounts

_RETRY_AFTER = 5  # seconds
_open = OpenCounts[UUID]()


@contextmanager
def watching(owner_id: UUID) -> Iterator[None]:
    """Count a watcher in this context. Raises RateLimited with `limit` and `retry_after` (seconds)."""
    if not _open.enter(owner_id, limit=WATCHERS):
        raise RateLimited(
            f"At most {WATCHERS} requests may watch running turns at once. Try again in {_RETRY_AFTER} s.",
            limit=WATCHERS,
            retry_after=_RETRY_AFTER,
        )
    try:
        yield
    finally:
        _open.leave(owner_id)

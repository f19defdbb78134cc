"""Counts who watches running turns: streams of a turn's events, and repeated requests that wait for an answer. Each of
them costs this process a little with every piece of the answer or every poll, so their number per owner is limited, as
that of websockets is. Called by gateway.api.sessions and gateway.turns.joined, in the event loop."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from gateway.limits.open_per_owner import OpenPerOwner
from memories.errors import RateLimited
from memories.limits import WATCHERS

_RETRY_AFTER = 5  # seconds
_open = OpenPerOwner()


def watcher_enter(owner_id: UUID) -> None:
    """Count a watcher until `watcher_leave`. Raises RateLimited with `limit` and `retry_after` (seconds)."""
    if not _open.enter(owner_id, limit=WATCHERS):
        raise RateLimited(
            f"At most {WATCHERS} requests may watch running turns at once. Try again in {_RETRY_AFTER} s.",
            limit=WATCHERS,
            retry_after=_RETRY_AFTER,
        )


def watcher_leave(owner_id: UUID) -> None:
    """A watcher has left."""
    _open.leave(owner_id)


@contextmanager
def watching(owner_id: UUID) -> Iterator[None]:
    """Count a watcher in this context. Raises RateLimited."""
    watcher_enter(owner_id)
    try:
        yield
    finally:
        watcher_leave(owner_id)

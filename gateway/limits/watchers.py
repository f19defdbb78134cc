"""Counts what each owner keeps open in this process, so that it can be limited: websockets (gateway.consumers), and
watchers of running turns, which are streams of a turn's events (gateway.api.sessions) and repeated requests that wait
for an answer (gateway.turns.joined). Each of these costs a little with every piece of the answer or every poll."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from memories.errors import RateLimited
from memories.limits import WATCHERS

_RETRY_AFTER = 5  # seconds


class OpenPerOwner(Counter[UUID]):
    """The number of open connections of each owner that has any. For use in the event loop only."""

    def enter(self, owner_id: UUID, *, limit: int) -> bool:
        """Count one more and return True, unless there are `limit` already."""
        if self[owner_id] >= limit:
            return False
        self[owner_id] += 1
        return True

    def leave(self, owner_id: UUID) -> None:
        """Count one less."""
        self[owner_id] -= 1
        if not self[owner_id]:
            del self[owner_id]


_open = OpenPerOwner()


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

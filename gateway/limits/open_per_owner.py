"""Counts what an owner keeps open in this process, such as websockets, so that their number can be limited."""

from collections import Counter
from uuid import UUID


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

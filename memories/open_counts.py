"""Counts what keys, such as owners, have open in this process, so that it can be limited."""

from collections import Counter
from typing import TypeVar

K = TypeVar("K")


class OpenCounts(Counter[K]):
    """The number of open things by key; keys without any are left out. The caller takes care of threads."""

    def enter(self, key: K, *, limit: int) -> bool:
        """Count one more and return True, unless there are `limit` already."""
        if self[key] >= limit:
            return False
        self[key] += 1
        return True

    def leave(self, key: K) -> None:
        """Count one less."""
        self[key] -= 1
        if not self[key]:
            del self[key]

"""An LRU cache that also drops idle entries. It does no locking: its owner holds a lock."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LRUCache(OrderedDict[K, tuple[float, V]], Generic[K, V]):
    """Values by key, each with the time of its last use (time.monotonic()), least recently used first."""

    def put(self, key: K, value: V) -> V:
        """Store a value as the most recently used one, and return it."""
        self[key] = (time.monotonic(), value)
        self.move_to_end(key)
        return value

    def peek(self, key: K) -> V | None:
        """Return the value of a key, or None, without counting as a use."""
        entry = self.get(key)
        return entry[1] if entry else None

    def touch(self, key: K) -> V | None:
        """Return the value of a key, or None, and mark it as the most recently used one."""
        value = self.peek(key)
        return None if value is None else self.put(key, value)

    def remove_if(self, condition: Callable[[V], bool]) -> None:
        """Remove the values that satisfy a condition."""
        for key in [key for key, (_, value) in self.items() if condition(value)]:
            del self[key]

    def trim(self, idle_seconds: float, max_entries: int | None = None) -> None:
        """Remove values that were not used for `idle_seconds`, and the least recently used beyond `max_entries`."""
        stale = time.monotonic() - idle_seconds
        while self and (next(iter(self.values()))[0] < stale or (max_entries is not None and len(self) > max_entries)):
            self.popitem(last=False)

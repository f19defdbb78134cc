"""What a cache of this process holds, in the order in which it was used last. The owner of the cache holds a lock."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LRUCache(OrderedDict[K, tuple[float, V]], Generic[K, V]):
    """Values by key, each with the time of its last use, in the clock of time.monotonic()."""

    def put(self, key: K, value: V) -> V:
        """Hold a value, which is in use now."""
        self[key] = (time.monotonic(), value)
        self.move_to_end(key)
        return value

    def peek(self, key: K) -> V | None:
        """Return the value of a key, or None; looking at it does not keep it."""
        entry = self.get(key)
        return entry[1] if entry else None

    def touch(self, key: K) -> V | None:
        """Return the value of a key, which is in use now, or None."""
        entry = self.peek(key)
        return None if entry is None else self.put(key, entry)

    def remove_if(self, condition: Callable[[V], bool]) -> None:
        """Drop the values for which `gone` is true."""
        for key in [key for key, (_, value) in self.items() if condition(value)]:
            del self[key]

    def trim(self, idle_seconds: float, max_entries: int | None = None) -> None:
        """Drop what was not used for so long, and the longest unused beyond `most`."""
        stale = time.monotonic() - idle_seconds
        while self and (next(iter(self.values()))[0] < stale or (max_entries is not None and len(self) > max_entries)):
            self.popitem(last=False)

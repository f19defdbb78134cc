"""What a cache of this process holds, in the order in which it was used last. The owner of the cache holds a lock."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class InUse(OrderedDict[K, tuple[float, V]], Generic[K, V]):
    """Values by key, each with the time of its last use, in the clock of time.monotonic()."""

    def keep(self, key: K, value: V) -> V:
        """Hold a value, which is in use now."""
        self[key] = (time.monotonic(), value)
        self.move_to_end(key)
        return value

    def look(self, key: K) -> V | None:
        """Return the value of a key, or None; looking at it does not keep it."""
        found = self.get(key)
        return found[1] if found else None

    def use(self, key: K) -> V | None:
        """Return the value of a key, which is in use now, or None."""
        found = self.look(key)
        return None if found is None else self.keep(key, found)

    def drop(self, gone: Callable[[V], bool]) -> None:
        """Drop the values for which `gone` is true."""
        for key in [key for key, (_, value) in self.items() if gone(value)]:
            del self[key]

    def trim(self, idle_seconds: float, most: int | None = None) -> None:
        """Drop what was not used for so long, and the longest unused beyond `most`."""
        stale = time.monotonic() - idle_seconds
        while self and (next(iter(self.values()))[0] < stale or (most is not None and len(self) > most)):
            self.popitem(last=False)

"""Short writes that are done on the event loop itself, where nothing is to be waited for (docs/decisions/0060).

The way to a database thread and back takes a turn that is alone longer than a good part of what it stores. But on the
event loop whatever takes long stops everybody, so a write is done there only while SQLite's lock is free, and not for a
while after writes that took long."""

import time
from collections.abc import Callable
from typing import TypeVar

from django.db import connections

from memories.lanes import Lane

T = TypeVar("T")
# A write of a turn takes about a millisecond. One that takes LONG may have waited for a core, two in a row wait for the
# disk, and so does one that takes VERY_LONG.
LONG_SECONDS, VERY_LONG_SECONDS = 0.01, 0.1
# The rest after it, as a multiple of the time it took: so the loop waits for a hundredth of its time at most.
REST = 100
# How long SQLite waits for its lock: it takes no less.
_LOCK_SECONDS = 0.001
_DEFAULT = "default"


class LoopWrites:
    """Does writes in the thread that asks for them, with a connection of its own of the lane."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._not_before = 0.0
        self._was_long = False

    def can_be(self) -> bool:
        """Return True if a write may be tried now. Never on PostgreSQL, which is asked over a network."""
        return time.monotonic() >= self._not_before and connections.settings[_DEFAULT]["ENGINE"].endswith("sqlite3")

    def do(self, function: Callable[[], T]) -> T:
        """Return what a function returns whose first statement takes the lock. Raises OperationalError with SQLite's
        code where somebody else holds it."""
        began = time.monotonic()
        try:
            return self._lane.here(_LOCK_SECONDS, function)
        finally:
            self._judge(time.monotonic() - began)

    def _judge(self, took: float) -> None:
        is_long = took > LONG_SECONDS
        if is_long and (self._was_long or took > VERY_LONG_SECONDS):
            self._not_before = time.monotonic() + took * REST
        self._was_long = is_long

"""Large work in slices. A slice is a short transaction or a short stretch of reading: between two of them other
requests have their turn, and a request whose client has gone stops. The work is a generator that yields after each
slice."""

import asyncio
from collections.abc import Generator
from typing import TypeVar

from memories.database import in_thread

R = TypeVar("R")
Slices = Generator[None, None, R]
SLICE_SECONDS = 0.02
"""How long a slice takes, roughly."""
_LEAST = 10


class BatchSize:
    """How many rows the next transaction writes, so that it holds its lock for well under 100 ms on this machine."""

    def __init__(self, *, first: int = 50, most: int = 500) -> None:
        self.rows = first
        self._most = most

    def took(self, seconds: float) -> None:
        """Adapt to the time that a transaction of the present size took."""
        wanted = int(self.rows * SLICE_SECONDS / max(seconds, 0.001))
        self.rows = max(_LEAST, min(self._most, wanted, self.rows * 2))


def finish(work: Slices[R]) -> R:
    """Do all slices at once, in a command or a worker. Returns what the generator returns."""
    while True:
        over, result = _advance(work)
        if over:
            return result  # type: ignore[return-value]  # of the last slice


async def in_slices(work: Slices[R]) -> R:
    """Do the slices one after the other in database threads. Returns what the generator returns.

    A request that is cancelled waits for the slice that is under way, and has the generator close: what it promised in
    its `finally` is still done."""
    while True:
        hop = asyncio.ensure_future(in_thread(_advance, work))
        try:
            over, result = await asyncio.shield(hop)
        except asyncio.CancelledError:
            await asyncio.wait([hop])
            await in_thread(work.close)
            raise
        if over:
            return result  # type: ignore[return-value]  # of the last slice


def _advance(work: Slices[R]) -> tuple[bool, R | None]:
    try:
        next(work)
    except StopIteration as stop:
        return True, stop.value
    return False, None

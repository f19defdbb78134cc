"""Large work in slices. A slice is a short transaction or a short stretch of reading: between two of them other
requests have their turn, and a request whose client has gone stops. The work is a generator that yields after each
slice."""

import asyncio
import inspect
import math
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from memories.database import in_patient_thread, in_thread, in_turn

R = TypeVar("R")
T = TypeVar("T")
Slices = Generator[None, None, R]
SLICE_SECONDS = 0.02  # how long a slice takes, roughly
_LEAST = 10
_never = threading.Event()
_under_way: set["asyncio.Task[Any]"] = set()  # the loop itself keeps only weak references


class BatchSize:
    """How many rows the next transaction writes, so that it holds its lock for well under 100 ms on this machine: for
    one slice, or `slices` of them where many rows are written and a transaction has a price of its own."""

    def __init__(self, *, first: int = 50, most: int = 500, slices: int = 1) -> None:
        self.rows = first
        self._most = most
        self._slices = slices

    def took(self, seconds: float) -> None:
        """Adapt to the time that a transaction of the present size took."""
        wanted = int(self.rows * self._slices * SLICE_SECONDS / max(seconds, 0.001))
        self.rows = max(_LEAST, min(self._most, wanted, self.rows * 2))

    def parts(self, rows: Sequence[T]) -> Iterator[Sequence[T]]:
        """Return the rows in order, as many each time as the size is then."""
        at = 0
        while at < len(rows):
            part = rows[at : at + self.rows]
            at += len(part)
            yield part

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Adapt to the time that the block takes: a transaction of the present size."""
        began = time.monotonic()
        yield
        self.took(time.monotonic() - began)


def finish(work: Slices[R]) -> R:
    """Do all slices at once, in a command or a worker. Returns what the generator returns."""
    while True:
        over, result = _advance(work)
        if over:
            return result  # type: ignore[return-value]  # of the last slice


def in_turns(work: Slices[R]) -> R:
    """Do the slices one after the other from the thread of a page. Each waits for its turn among the writes of others.
    Returns what the generator returns."""
    return in_turns_within(work, math.inf)[1]  # type: ignore[return-value]  # it is over


def in_turns_within(work: Slices[R], seconds: float) -> tuple[bool, R | None]:
    """Do slices from the thread of a page for some seconds, at least one. Returns whether the work is over, and what it
    returned. Work that is not over is closed."""
    until = time.monotonic() + seconds
    try:
        while True:
            began = time.monotonic()
            over, result = in_turn(_advance, work)
            now = time.monotonic()
            if over or now >= until:
                break
            _never.wait(min(now - began, SLICE_SECONDS))  # others look for SQLite's lock only now and then
    finally:
        if _is_halfway(work):
            in_turn(work.close)
    return over, result


async def in_slices(work: Slices[R]) -> R:
    """Do the slices one after the other in database threads. Returns what the generator returns.

    A request that is cancelled waits for the slice that is under way. Then, as where no thread becomes free in time,
    the generator is closed: what it promised in its `finally` is still done."""
    while True:
        hop = asyncio.ensure_future(in_thread(_advance, work))
        try:
            over, result = await asyncio.shield(hop)
        except BaseException:
            await asyncio.wait([hop])
            if _is_halfway(work):
                await in_patient_thread(work.close)
            raise
        if over:
            return result  # type: ignore[return-value]  # of the last slice


async def in_slices_to_the_end(work: Slices[R]) -> R:
    """Do all slices, also when the request that began the work is cancelled. Returns what the generator returns."""
    task = asyncio.create_task(in_slices(work))
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)
    return await asyncio.shield(task)


def _is_halfway(work: Slices[R]) -> bool:
    return inspect.getgeneratorstate(work) == inspect.GEN_SUSPENDED


def _advance(work: Slices[R]) -> tuple[bool, R | None]:
    try:
        next(work)
    except StopIteration as stop:
        return True, stop.value
    return False, None

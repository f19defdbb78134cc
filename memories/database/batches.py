"""Large work in slices. A slice is a short transaction or a short stretch of reading: between two of them other
requests have their turn, and a request whose client has gone stops. The work is a generator that yields after each
slice; what its functions marked `reads` do keeps no thread busy that writes."""

import asyncio
import functools
import inspect
import math
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from memories.database.access import in_patient_thread, in_read_thread, in_thread, in_write_lane

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Slices = Generator[Any, None, R]
"""Yields True where the next slice only reads."""
SLICE_SECONDS = 0.02  # how long a slice takes, roughly
_LEAST = 10
_never = threading.Event()
_under_way: set["asyncio.Task[Any]"] = set()  # the loop itself keeps only weak references


class BatchSize:
    """How many rows the next transaction writes, so that it holds its lock for about one slice on this machine."""

    def __init__(self, *, first: int = 50, most: int = 500) -> None:
        self.rows = first
        self._most = most

    def took(self, seconds: float) -> None:
        """Adapt to the time that a transaction of the present size took."""
        wanted = int(self.rows * SLICE_SECONDS / max(seconds, 0.001))
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


def reads(function: Callable[P, Slices[R]]) -> Callable[P, Slices[R]]:
    """Mark slices that only read: they wait for no writer, and no writer waits for them. What follows writes again."""

    @functools.wraps(function)
    def reading(*args: P.args, **kwargs: P.kwargs) -> Slices[R]:
        work = function(*args, **kwargs)
        over = False
        while not over:
            yield True
            over, value = _advance(work)
        yield None
        return value  # type: ignore[no-any-return]  # of the last slice

    return reading


def finish(work: Slices[R]) -> R:
    """Do all slices at once, in a command or a worker. Returns what the generator returns."""
    while True:
        over, value = _advance(work)
        if over:
            return value  # type: ignore[no-any-return]  # of the last slice


def run_slices(work: Slices[R]) -> R:
    """Do the slices one after the other from the thread of a page. Each waits for its turn among the writes of others.
    Returns what the generator returns."""
    return run_slices_within(work, math.inf)[1]  # type: ignore[return-value]  # it is over


def run_slices_within(work: Slices[R], seconds: float) -> tuple[bool, R | None]:
    """Do slices from the thread of a page for some seconds, at least one. Returns whether the work is over, and what it
    returned. Work that is not over is closed."""
    until = time.monotonic() + seconds
    try:
        while True:
            began = time.monotonic()
            over, value = in_write_lane(_advance, work)
            now = time.monotonic()
            if over or now >= until:
                break
            _never.wait(min(now - began, SLICE_SECONDS))  # others look for SQLite's lock only now and then
    finally:
        if _is_halfway(work):
            in_write_lane(work.close)
    return over, value if over else None


async def in_slices(work: Slices[R]) -> R:
    """Do the slices one after the other in database threads. Returns what the generator returns.

    A request that is cancelled waits for the slice that is under way. Then, as where no thread becomes free in time,
    the generator is closed: what it promised in its `finally` is still done."""
    lane = in_thread
    while True:
        hop = asyncio.ensure_future(lane(_advance, work))
        try:
            over, value = await asyncio.shield(hop)
        except BaseException:
            await asyncio.wait([hop])
            if _is_halfway(work):
                await in_patient_thread(work.close)
            raise
        if over:
            return value  # type: ignore[no-any-return]  # of the last slice
        lane = in_read_thread if value else in_thread


async def in_slices_to_the_end(work: Slices[R]) -> R:
    """Do all slices, also when the request that began the work is cancelled. Returns what the generator returns."""
    task = asyncio.create_task(in_slices(work))
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)
    return await asyncio.shield(task)


def _is_halfway(work: Slices[R]) -> bool:
    return inspect.getgeneratorstate(work) == inspect.GEN_SUSPENDED


def _advance(work: Slices[Any]) -> tuple[bool, Any]:
    """Do a slice. Returns whether it was the last one, and what the work returns then, else what it yields."""
    try:
        return False, next(work)
    except StopIteration as stop:
        return True, stop.value

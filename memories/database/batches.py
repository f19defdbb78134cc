"""Large work in slices. A slice is a short transaction or a short period of reading. Between slices, other requests are
served, and the work stops if its client disconnected. The work is a generator that yields after each slice; generators
marked with `reads` run in the read lane."""

import asyncio
import functools
import inspect
import logging
import math
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from memories.database.access import in_patient_thread, in_read_thread, in_thread, in_write_lane
from memories.errors import DomainError

logger = logging.getLogger("daybook.database")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Slices = Generator[Any, None, R]
"""Yields True if the next slice only reads."""
Batch = Callable[[int], int]
"""Processes up to the given number of rows in a transaction and returns their number."""
SLICE_SECONDS = 0.008
"""The approximate duration of a slice. A turn waits for up to three slices, and a commit takes about a millisecond."""
_MIN_ROWS = 10
_pause = threading.Event()
_running: set["asyncio.Task[Any]"] = set()  # the event loop keeps only weak references


class BatchSize:
    """The number of rows per transaction, adapted so that a transaction takes about SLICE_SECONDS."""

    def __init__(self, *, initial: int = 20, maximum: int = 500) -> None:
        self.rows = initial
        self._maximum = maximum

    def adapt(self, seconds: float) -> None:
        """Adapt to the duration of a transaction of the current size."""
        wanted = int(self.rows * SLICE_SECONDS / max(seconds, 0.001))
        self.rows = max(_MIN_ROWS, min(self._maximum, wanted, self.rows * 2))

    def parts(self, rows: Sequence[T]) -> Iterator[Sequence[T]]:
        """Yield the rows in order, in parts of the current size. Rows may be added meanwhile."""
        at = 0
        while at < len(rows):
            part = rows[at : at + self.rows]
            at += len(part)
            yield part

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Adapt to the duration of the block, a transaction of the current size."""
        began = time.monotonic()
        yield
        self.adapt(time.monotonic() - began)


def in_batches(batch: Batch) -> Slices[None]:
    """Process batches of rows until none is left, each in about the time of a slice."""
    size = BatchSize()
    while True:
        with size.measured():
            count = batch(size.rows)
        if not count:
            return
        yield


def reads(function: Callable[P, Slices[R]]) -> Callable[P, Slices[R]]:
    """Mark slices that only read, so that they run in the read lane. Slices after these write again."""

    @functools.wraps(function)
    def reading(*args: P.args, **kwargs: P.kwargs) -> Slices[R]:
        work = function(*args, **kwargs)
        finished = False
        while not finished:
            yield True
            finished, value = _advance(work)
        yield None
        return value  # type: ignore[no-any-return]  # of the last slice

    return reading


def finish(work: Slices[R]) -> R:
    """Run all slices at once, in a command or a worker. Return the result of the generator."""
    while True:
        finished, value = _advance(work)
        if finished:
            return value  # type: ignore[no-any-return]  # of the last slice


def run_slices(work: Slices[R]) -> R:
    """Run all slices from the thread of a page, each in the write lane. Return the result of the generator."""
    return run_slices_within(work, math.inf)[1]  # type: ignore[return-value]  # it has finished


def run_slices_within(work: Slices[R], seconds: float) -> tuple[bool, R | None]:
    """Run slices from the thread of a page for some seconds, at least one. Return whether the work finished, and its
    result. Unfinished work is closed."""
    until = time.monotonic() + seconds
    try:
        while True:
            began = time.monotonic()
            finished, value = in_write_lane(_advance, work)
            now = time.monotonic()
            if finished or now >= until:
                break
            _pause.wait(min(now - began, SLICE_SECONDS))  # others poll for SQLite's lock only now and then
    finally:
        if _is_halfway(work):
            in_write_lane(work.close)
    return finished, value if finished else None


async def in_slices(work: Slices[R]) -> R:
    """Run the slices in the lanes' threads. Return the result of the generator.

    If the request is cancelled, the running slice is awaited first. Then, and if no thread becomes free in time, the
    generator is closed, so that its `finally` blocks run."""
    lane = in_thread
    while True:
        hop = asyncio.ensure_future(lane(_advance, work))
        try:
            finished, value = await asyncio.shield(hop)
        except BaseException:
            await asyncio.wait([hop])
            if _is_halfway(work):
                await in_patient_thread(work.close)
            del hop  # as in memories.database.access
            raise
        if finished:
            return value  # type: ignore[no-any-return]  # of the last slice
        lane = in_read_thread if value else in_thread


async def in_slices_to_the_end(work: Slices[R]) -> R:
    """Run all slices even if the request is cancelled. Return the result of the generator."""
    task = asyncio.create_task(in_slices(work))
    _running.add(task)
    task.add_done_callback(_running.discard)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_log_failure)
        raise


def _log_failure(task: "asyncio.Task[Any]") -> None:
    """Log the error of work whose client is gone, unless it is a refusal, which nobody needs to know of."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, DomainError):
        logger.error("work for a client that disconnected failed", exc_info=error)


def _is_halfway(work: Slices[R]) -> bool:
    return inspect.getgeneratorstate(work) == inspect.GEN_SUSPENDED


def _advance(work: Slices[Any]) -> tuple[bool, Any]:
    """Run a slice. Return whether the work finished, and its result, or else the yielded value."""
    try:
        return False, next(work)
    except StopIteration as stop:
        return True, stop.value

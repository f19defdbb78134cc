"""How async code reaches the ORM: two lanes of long-lived threads, one for writing and one for reading, and a spare.

`sync_to_async` would run each request in a thread of its own, with a new connection each time. These threads live as
long as the process and keep their connections; Django checks their health. A read never waits behind a write: SQLite
lets readers work beside its one writer, and so do these lanes. A spare thread is kept for what must not wait behind a
long query: the leases of open runs, and closing them at shutdown. Another one copies SQLite's log into the database.

With DB_THREADS=0 (tests, benchmarks) the same functions run inline, so that they see the connection of the test's own
transaction. Django keeps a connection per thread while no loop runs and per coroutine while one does, and offers no
public way to say which: hence asyncio's private function in `_inline` (docs/decisions/0002)."""

import asyncio
import contextlib
import functools
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import psycopg
from django.conf import settings
from django.db import OperationalError, connections
from django.db.models import Model, QuerySet

from memories.database.lanes import BUSY, DatabaseBusy, Lane, in_lane_thread
from memories.errors import Overloaded

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Model)

RETRY_SECONDS = 2
# Work whose result must not be lost (the end of a turn, a background job) waits longer than a request may.
PATIENT_SECONDS = 30.0
LATER_SECONDS = 2.0
_LATER_BUSY_SECONDS = 0.25
_WORKER_CONNECTION_SECONDS = 300
_CHECKPOINT_SECONDS = 0.1
_DEFAULT = "default"
_SQLITE_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
# Lock and statement time-outs, deadlocks, too many connections, memory, and a server that starts or stops.
_POSTGRES_BUSY = frozenset(
    {"55P03", "57014", "40P01", "40001", "53000", "53200", "53300", "53400", "57P01", "57P02", "57P03"}
)
_POSTGRES_FULL = "53100"
_FULL = "The disk of the database is full: nothing can be stored until there is room."


_FULL_SECONDS = 60.0
_full_at = -_FULL_SECONDS
_is_worker = False


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous function that writes (or may write) with the ORM, with the caller's context variables.

    The wait for a thread and for the database's lock is DB_BUSY_SECONDS at most, together; then OperationalError
    (DatabaseBusy where no thread became free), which the edges answer as `overloaded`. A caller that is cancelled
    takes work that has not begun out of the queue."""
    return await _run(_write_lane, _busy_seconds(), functools.partial(function, *args, **kwargs))


async def in_read_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous function that only reads; it never waits for a write."""
    return await _run(_read_lane, _busy_seconds(), functools.partial(function, *args, **kwargs))


async def in_patient_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`in_thread` for work whose result must not be lost: it waits PATIENT_SECONDS."""
    return await _run(_write_lane, PATIENT_SECONDS, functools.partial(function, *args, **kwargs))


async def in_shared_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`in_thread` for a write that is `shareable` (memories.database.shared): those that wait at the same time share a
    transaction. It may be done twice, of which once is undone."""
    return await _run(_write_lane, _busy_seconds(), functools.partial(function, *args, **kwargs), share=True)


async def in_patient_shared_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`in_shared_thread` for work whose result must not be lost."""
    return await _run(_write_lane, PATIENT_SECONDS, functools.partial(function, *args, **kwargs), share=True)


async def in_spare_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`in_patient_thread`, in a thread that requests do not use."""
    return await _run(_spare_lane, PATIENT_SECONDS, functools.partial(function, *args, **kwargs))


def in_write_lane(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`in_thread` for a page, which has a thread of its own: it waits for its turn among other writes.

    Inside a transaction, in a database thread, and in a worker the function runs where it is called."""
    job = functools.partial(function, *args, **kwargs)
    in_transaction = connections[_DEFAULT].in_atomic_block
    if not settings.DB_THREADS or _is_worker or in_transaction or in_lane_thread():
        return job()
    seconds = _busy_seconds()
    turn = _write_lane.submit(seconds, job)
    try:
        return turn.result(seconds)
    except TimeoutError:
        if turn.cancel():  # False for one that has begun
            raise DatabaseBusy(BUSY) from None
        return turn.result()


def write_later(function: Callable[[], object]) -> None:
    """Run a small write that nobody waits for, LATER_SECONDS from now, between other writes. `function` reports its own
    errors; it is not run at all while the writers are busy, so that it holds up nobody. A worker has no queue of
    writes: there it runs in a thread of its own. Inline with DB_THREADS=0."""
    if not settings.DB_THREADS:
        _inline(asyncio._get_running_loop(), function)
        return
    if _is_worker:
        timer = threading.Timer(LATER_SECONDS, _run_and_disconnect, (function,))
    else:
        timer = threading.Timer(LATER_SECONDS, _write_lane.offer, (_LATER_BUSY_SECONDS, function))
    timer.daemon = True
    timer.start()


def overloaded(error: BaseException) -> Overloaded | None:
    """Return what to answer for an error of the database that says it is busy or its disk is full; None for others."""
    if not isinstance(error, OperationalError):
        return None
    if isinstance(error, DatabaseBusy):
        return Overloaded(BUSY, retry_after=RETRY_SECONDS)
    cause = error.__cause__
    if _is_full(error):
        global _full_at
        _full_at = time.monotonic()
        return Overloaded(_FULL, retry_after=round(_FULL_SECONDS))
    # An OperationalError without a state never reached the server, or lost it: no connection, none free in the pool.
    state = getattr(cause, "sqlstate", None)
    unreachable = isinstance(cause, psycopg.OperationalError) and (state is None or state.startswith("08"))
    if unreachable or state in _POSTGRES_BUSY or _sqlite_code(cause) in _SQLITE_BUSY:
        return Overloaded(BUSY, retry_after=RETRY_SECONDS)
    return None


def disk_full_recently() -> bool:
    """Return True if a write of this process met a full disk within the last minute."""
    return time.monotonic() - _full_at < _FULL_SECONDS


def only_row(rows: "QuerySet[M]") -> M | None:
    """Return the row of a look-up that finds at most one. `first()` would add an ordering, which costs a third more
    than the look-up itself: on the way of every turn that shows."""
    return next(iter(rows), None)


def become_worker() -> None:
    """Make this process and those forked from it workers: no connection and no pool is shared with a fork, and their
    work waits PATIENT_SECONDS for the database. A worker's processes have one thread and one connection each,
    which is bound enough without a pool."""
    global _is_worker
    _is_worker = True
    disconnect()
    options = connections.settings[_DEFAULT]["OPTIONS"]
    if "pool" in options:
        del options["pool"]
        connections.settings[_DEFAULT]["CONN_MAX_AGE"] = _WORKER_CONNECTION_SECONDS
    if "timeout" in options:
        options["timeout"] = PATIENT_SECONDS


def disconnect() -> None:
    """Close the connections of this thread, and the pool: none of them survives a fork."""
    connections.close_all()
    if "pool" in connections.settings[_DEFAULT]["OPTIONS"]:
        connections[_DEFAULT].close_pool()  # type: ignore[attr-defined]  # PostgreSQL's own


def _busy_seconds() -> float:
    return PATIENT_SECONDS if _is_worker else settings.DB_BUSY_SECONDS


_write_lane = Lane("daybook-db", lambda: settings.DB_THREADS)
_read_lane = Lane("daybook-read", lambda: settings.DB_READ_THREADS, only_reads=True)
_spare_lane = Lane("daybook-spare", lambda: 1)
_checkpoint_lane = Lane("daybook-checkpoint", lambda: 1)
_next_checkpoint = 0.0


async def _run(lane: Lane, seconds: float, function: Callable[[], T], *, share: bool = False) -> T:
    loop = asyncio.get_running_loop()
    if not settings.DB_THREADS:
        return _inline(loop, function)
    job = lane.share(seconds, function) if share else lane.submit(seconds, function)
    expired = False

    def expire() -> None:
        nonlocal expired
        expired = job.cancel()  # False for one that has begun

    timer = loop.call_later(seconds, expire)
    try:
        return await asyncio.wrap_future(job)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if expired and not (task and task.cancelling()):
            raise DatabaseBusy(BUSY) from None
        raise
    finally:
        timer.cancel()
        if lane is _write_lane:
            _checkpoint_soon(loop)


def _checkpoint_soon(loop: asyncio.AbstractEventLoop) -> None:
    """Have SQLite's log copied into the database soon after a write, beside the writers (docs/decisions/0056)."""
    global _next_checkpoint
    now = loop.time()
    if now >= _next_checkpoint and connections.settings[_DEFAULT]["ENGINE"].endswith("sqlite3"):
        _next_checkpoint = now + _CHECKPOINT_SECONDS
        loop.call_later(_CHECKPOINT_SECONDS, _checkpoint_lane.submit, PATIENT_SECONDS, _checkpoint)


def _checkpoint() -> None:
    with contextlib.suppress(sqlite3.Error):  # a writer does it when the log has reached its bound, and says what fails
        connections[_DEFAULT].connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def truncate_wal() -> None:
    """Empty SQLite's log, in which deleted words stay until other pages take their place. Does nothing while others
    read or write, since they would wait for it, nor on PostgreSQL. Synchronous, for the worker."""
    database = connections[_DEFAULT]
    if database.vendor != "sqlite" or database.in_atomic_block:
        return
    with database.cursor() as cursor:
        (waits,) = cursor.execute("PRAGMA busy_timeout").fetchone()
        try:
            cursor.execute("PRAGMA busy_timeout = 0")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {int(waits)}")


def _run_and_disconnect(function: Callable[[], object]) -> None:
    try:
        function()
    finally:
        connections.close_all()


def _inline(loop: asyncio.AbstractEventLoop | None, function: Callable[[], T]) -> T:
    # Django refuses the ORM where a loop is running; for the length of this call there is none.
    asyncio._set_running_loop(None)
    try:
        return function()
    finally:
        asyncio._set_running_loop(loop)


def _is_full(error: BaseException) -> bool:
    cause = error.__cause__
    return _sqlite_code(cause) == sqlite3.SQLITE_FULL or getattr(cause, "sqlstate", None) == _POSTGRES_FULL


def _sqlite_code(error: BaseException | None) -> int:
    """SQLite's primary error code; 0 for other errors."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF

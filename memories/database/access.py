"""ORM access from async code, through lanes of long-lived threads: one for writes, one for reads, and a spare one.

`sync_to_async` would run each request in a new thread with a new connection. These threads live as long as the process
and keep their connections; Django checks their health. Reads never wait behind writes, just as SQLite lets readers work
beside its only writer. The spare thread is for work that must not wait behind a long query: the leases of open runs,
and closing them at shutdown. Another thread checkpoints SQLite's write-ahead log (WAL).

With DB_THREADS=0 (tests, benchmarks) the functions run inline, so that they use the connection of the test's own
transaction. Django keeps a connection per thread if no event loop is running, else per coroutine, and has no public API
to choose: hence asyncio's private function in `_inline` (docs/decisions/0002)."""

import asyncio
import contextlib
import functools
import sqlite3
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import ParamSpec, TypeVar
from uuid import UUID

import psycopg
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, IntegrityError, OperationalError, ProgrammingError, connections
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
# Lock and statement timeouts, deadlocks, too many connections, out of memory, a server that starts or stops, and a
# missing table, as all are for some seconds while a backup is restored (config.backups.postgres_tools).
_POSTGRES_BUSY = frozenset(
    {"55P03", "57014", "40P01", "40001", "53000", "53200", "53300", "53400", "57P01", "57P02", "57P03", "42P01"}
)
_POSTGRES_FULL = "53100"
_FULL = "The disk of the database is full: nothing can be stored until there is room."
_FULL_SECONDS = 60.0
_full_at = -_FULL_SECONDS
_is_worker = False


working_for: ContextVar[UUID | None] = ContextVar("working_for", default=None)
"""The owner whose request is being answered."""


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous function that writes (or may write) with the ORM, with the caller's context variables.

    Waiting for a thread and for the database's lock takes at most DB_BUSY_SECONDS in total. Then OperationalError is
    raised (DatabaseBusy if no thread became free), which edges report as `overloaded`. If the caller is cancelled, work
    that has not started is removed from the queue."""
    return await _run(_write_lane, _busy_seconds(), functools.partial(function, *args, **kwargs))


async def in_read_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous function that only reads. It never waits for a write. All reads for one owner (`working_for`)
    leave a thread to others."""
    return await _run(_read_lane, _busy_seconds(), functools.partial(function, *args, **kwargs))


async def in_patient_read_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`in_read_thread` for the rest of an answer that has begun: it waits up to PATIENT_SECONDS."""
    return await _run(_read_lane, PATIENT_SECONDS, functools.partial(function, *args, **kwargs))


async def in_patient_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`in_thread` for work that must not be lost: it waits up to PATIENT_SECONDS."""
    return await _run(_write_lane, PATIENT_SECONDS, functools.partial(function, *args, **kwargs))


async def in_shared_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`in_thread` for a `shareable` write (memories.database.shared): writes that wait at the same time share a
    transaction. The function may run a second time, after its first run was rolled back."""
    return await _run(_write_lane, _busy_seconds(), functools.partial(function, *args, **kwargs), share=True)


async def in_patient_shared_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`in_shared_thread` for work that must not be lost."""
    return await _run(_write_lane, PATIENT_SECONDS, functools.partial(function, *args, **kwargs), share=True)


async def in_spare_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`in_patient_thread` in the spare thread, which requests do not use."""
    return await _run(_spare_lane, PATIENT_SECONDS, functools.partial(function, *args, **kwargs))


def in_write_lane(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous function in the write lane, for pages, which run in threads outside of the lanes.

    Inside a transaction, in a thread of a lane, and in a worker the function runs directly."""
    job = functools.partial(function, *args, **kwargs)
    in_transaction = connections[_DEFAULT].in_atomic_block
    if not settings.DB_THREADS or _is_worker or in_transaction or in_lane_thread():
        return job()
    seconds = _busy_seconds()
    future = _write_lane.submit(seconds, job)
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.cancel():  # False if it has started
            raise DatabaseBusy(BUSY) from None
        return future.result()


def release_connection() -> None:
    """Give a page's connection back before something slow, so that slow pages do not hold the connections of all. With
    SQLite there is nothing to give back, and within a transaction it stays."""
    if not connections[_DEFAULT].in_atomic_block:
        connections[_DEFAULT].close_if_unusable_or_obsolete()


def write_later(function: Callable[[], object]) -> None:
    """Run a small write that nobody waits for in the write lane, LATER_SECONDS from now. It is dropped if the lane is
    busy, so that it delays nobody. `function` handles its own errors. Workers have no lanes and use a new thread. With
    DB_THREADS=0 it runs inline."""
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
    """Return the error to report if the database is busy or being restored or its disk is full, else None."""
    if not isinstance(error, OperationalError | ProgrammingError):
        return None
    if isinstance(error, DatabaseBusy):
        return Overloaded(BUSY, retry_after=RETRY_SECONDS)
    cause = error.__cause__
    # Without a SQLSTATE there was no connection to the server: it failed, was lost, or none was free in the pool.
    state, sqlite_code = getattr(cause, "sqlstate", None), (getattr(cause, "sqlite_errorcode", None) or 0) & 0xFF
    if state == _POSTGRES_FULL or sqlite_code == sqlite3.SQLITE_FULL:
        global _full_at
        _full_at = time.monotonic()
        return Overloaded(_FULL, retry_after=round(_FULL_SECONDS))
    unreachable = isinstance(cause, psycopg.OperationalError) and (state is None or state.startswith("08"))
    if unreachable or state in _POSTGRES_BUSY or sqlite_code in _SQLITE_BUSY:
        return Overloaded(BUSY, retry_after=RETRY_SECONDS)
    return None


def vanished(error: BaseException) -> bool:
    """Return True for the error of work whose row, or a row that it refers to, was deleted after it was looked up. A
    row that cannot be deleted, since another one refers to it by now, has not vanished."""
    if isinstance(error, IntegrityError):
        cause = error.__cause__
        if isinstance(cause, psycopg.errors.ForeignKeyViolation):
            return "update or delete" not in str(cause.diag.message_primary)
        return getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
    # Django itself raises a plain DatabaseError if `save` finds no row to update.
    return isinstance(error, ObjectDoesNotExist) or (type(error) is DatabaseError and error.__cause__ is None)


def disk_full_recently() -> bool:
    """Return True if a write of this process failed because of a full disk within the last minute."""
    return time.monotonic() - _full_at < _FULL_SECONDS


def only_row(rows: "QuerySet[M]") -> M | None:
    """Return the row of a query that matches at most one, or None. `first()` would add an ordering, which costs a third
    more than the query itself and is noticeable in every turn."""
    return next(iter(rows), None)


def become_worker() -> None:
    """Configure this process and its forks as workers: connections and pools are not shared with forks, and work waits
    up to PATIENT_SECONDS for the database. No pool is needed, since each process has one thread and one connection."""
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
    """Close the connections of this thread, and the pool, which do not survive a fork."""
    connections.close_all()
    if "pool" in connections.settings[_DEFAULT]["OPTIONS"]:
        connections[_DEFAULT].close_pool()  # type: ignore[attr-defined]  # PostgreSQL's own


def _busy_seconds() -> float:
    return PATIENT_SECONDS if _is_worker else settings.DB_BUSY_SECONDS


_write_lane = Lane("daybook-db", lambda: settings.DB_THREADS)
_read_lane = Lane("daybook-read", lambda: settings.DB_READ_THREADS, leave_one=True)
_spare_lane = Lane("daybook-spare", lambda: 1)
_checkpoint_lane = Lane("daybook-checkpoint", lambda: 1)
_next_checkpoint = 0.0


async def _run(lane: Lane, seconds: float, function: Callable[[], T], *, share: bool = False) -> T:
    loop = asyncio.get_running_loop()
    if not settings.DB_THREADS:
        return _inline(loop, function)
    job = lane.submit(seconds, function, working_for.get(), share=share and _is_sqlite())
    timer = loop.call_later(seconds, job.cancel)  # does nothing once it has started
    try:
        return await asyncio.wrap_future(job)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if job.cancelled() and not (task and task.cancelling()):  # the timer did it
            raise DatabaseBusy(BUSY) from None
        raise
    finally:
        timer.cancel()
        del job  # its error refers to this frame: both, and what the function holds, would wait for the collector
        if lane is _write_lane:
            _checkpoint_soon(loop)


def _is_sqlite() -> bool:
    return str(connections.settings[_DEFAULT]["ENGINE"]).endswith("sqlite3")


def _checkpoint_soon(loop: asyncio.AbstractEventLoop) -> None:
    """Schedule a checkpoint of SQLite's WAL soon after a write, outside the write lane (docs/decisions/0056)."""
    global _next_checkpoint
    now = loop.time()
    if now >= _next_checkpoint and _is_sqlite():
        _next_checkpoint = now + _CHECKPOINT_SECONDS
        loop.call_later(_CHECKPOINT_SECONDS, _checkpoint_lane.submit, PATIENT_SECONDS, _checkpoint)


def _checkpoint() -> None:
    with contextlib.suppress(sqlite3.Error):  # writers checkpoint at wal_autocheckpoint and report errors
        connections[_DEFAULT].connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def truncate_wal() -> None:
    """Truncate SQLite's WAL, in which deleted text remains until it is overwritten. Does nothing on PostgreSQL, or
    while others read or write, since they would have to wait. Synchronous, for the worker."""
    database = connections[_DEFAULT]
    if database.vendor != "sqlite" or database.in_atomic_block:
        return
    with database.cursor() as cursor:
        (timeout,) = cursor.execute("PRAGMA busy_timeout").fetchone()
        try:
            cursor.execute("PRAGMA busy_timeout = 0")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {int(timeout)}")


def _run_and_disconnect(function: Callable[[], object]) -> None:
    try:
        function()
    finally:
        connections.close_all()


def _inline(loop: asyncio.AbstractEventLoop | None, function: Callable[[], T]) -> T:
    # Django refuses to use the ORM while an event loop is running, so it is hidden during this call.
    asyncio._set_running_loop(None)
    try:
        return function()
    finally:
        asyncio._set_running_loop(loop)

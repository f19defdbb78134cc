"""Lanes: small thread pools for database work, with connections of their own (memories.database.access)."""

import contextlib
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db import DatabaseError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from memories.database.shared import MAX_JOBS_PER_TRANSACTION, Job, run_in_one_transaction

T = TypeVar("T")
BUSY = "The database is busy. Try again in a moment."
_TIMEOUT_TOLERANCE = 0.5  # seconds
_LOG_PAGES = 10_000  # of 4 kB; memories.database.access checkpoints the WAL before it is that long
_DEFAULT = "default"
_thread = threading.local()


class DatabaseBusy(OperationalError):
    """No database thread became free in time."""


def in_lane_thread() -> bool:
    """Return True if the current thread belongs to a lane."""
    return getattr(_thread, "here", False)


@dataclass(slots=True)
class _Share:
    """One person's jobs that wait, and how many threads run some."""

    waiting: deque[Job] = field(default_factory=deque)
    threads: int = 0


class Lane:
    """A thread pool that runs jobs in order of arrival, created at the first job."""

    def __init__(self, name: str, size: Callable[[], int]) -> None:
        self._name = name
        self._size = size
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._opened: list[BaseDatabaseWrapper] = []
        self._local = threading.local()
        self._shared: deque[Job] = deque()
        self._limited: defaultdict[Hashable, _Share] = defaultdict(_Share)

    def submit(self, seconds: float, function: Callable[[], T], for_one: Hashable = None) -> "Future[T]":
        """Queue a job that may wait for `seconds` from now, for a thread and for the database's lock. Jobs `for_one`
        person leave a thread to others, if there are several."""
        job = Job(time.monotonic() + seconds, function)
        with self._lock:
            threads = self._threads()
            if for_one is None:
                return threads.submit(self._work, job)
            share = self._limited[for_one]
            share.waiting.append(job)
            if share.threads < max(1, self._size() - 1):
                share.threads += 1
                threads.submit(self._work_limited, for_one, share)
        return job.future

    def share(self, seconds: float, function: Callable[[], T]) -> "Future[T]":
        """Queue a write that may share a transaction with other waiting writes; otherwise like `submit`."""
        job = Job(time.monotonic() + seconds, function)
        with self._lock:
            threads = self._threads()
            self._shared.append(job)
            threads.submit(self._work_shared)
        return job.future

    def offer(self, seconds: float, function: Callable[[], object]) -> None:
        """Queue a job, unless the lane was not used yet or is closed."""
        if self._pool is not None:
            self.submit(seconds, function)

    def close(self) -> None:
        """Stop the threads after their current jobs, and cancel waiting jobs."""
        with self._lock:
            pool, self._pool = self._pool, None
            opened, self._opened = self._opened, []
            waiting = [*self._shared, *(job for share in self._limited.values() for job in share.waiting)]
            self._shared.clear()
            self._limited.clear()
        for job in waiting:
            job.future.cancel()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
        for connection in opened:
            connection.close()

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._size(), thread_name_prefix=self._name, initializer=self._begin)
        return self._pool

    def _begin(self) -> None:
        _thread.here = True
        connection = connections[_DEFAULT]
        connection.inc_thread_sharing()  # another thread closes it, after this one has ended
        with self._lock:
            self._opened.append(connection)

    def _work(self, job: Job) -> Any:
        left = job.deadline - time.monotonic()
        if left <= 0:
            raise DatabaseBusy(BUSY)
        self._set_lock_timeout(left)
        return job.context.run(job.function)

    def _work_shared(self) -> None:
        """Run all waiting shared jobs, in one transaction if possible. Later calls may find none left."""
        with self._lock:
            waiting = [self._shared.popleft() for _ in range(min(len(self._shared), MAX_JOBS_PER_TRANSACTION))]
        jobs = [job for job in waiting if job.future.set_running_or_notify_cancel()]
        left = min(job.deadline for job in jobs) - time.monotonic() if len(jobs) > 1 else 0.0
        if left > 0:
            with contextlib.suppress(DatabaseError):  # each job runs into the error again
                self._set_lock_timeout(left)
                if run_in_one_transaction(jobs):
                    return
        for job in jobs:
            self._finish(job)

    def _work_limited(self, for_one: Hashable, share: "_Share") -> None:
        """Run one person's next waiting job, then queue behind the jobs of others for the one after it."""
        with self._lock:
            job = share.waiting.popleft() if share.waiting else None
        if job is not None and job.future.set_running_or_notify_cancel():
            self._finish(job)
        with self._lock:
            if share.waiting and self._pool is not None:
                self._pool.submit(self._work_limited, for_one, share)
                return
            share.threads -= 1
            if not share.threads:
                self._limited.pop(for_one, None)

    def _finish(self, job: Job) -> None:
        future = job.future
        try:
            future.set_result(self._work(job))
        except BaseException as error:  # noqa: BLE001 - like an executor, pass it to the future
            future.set_exception(error)
            del job.future, future  # the error refers to the frames that hold the job

    def _set_lock_timeout(self, seconds: float) -> None:
        """Set this thread's lock timeout, and replace an ended connection. A statement is sent only if the timeout
        differs from the last one by more than _TIMEOUT_TOLERANCE."""
        connection = connections[_DEFAULT]
        connection.close_at = None  # a lane keeps its connection, even one from a pool
        connection.close_if_unusable_or_obsolete()
        connection.ensure_connection()
        raw, timeout = getattr(self._local, "wait", (None, 0.0))
        if raw is connection.connection and abs(timeout - seconds) < _TIMEOUT_TOLERANCE:
            return
        milliseconds = max(1, round(seconds * 1000))
        if connection.vendor == "sqlite":
            if raw is not connection.connection:
                connection.connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
            connection.connection.execute(f"PRAGMA busy_timeout = {milliseconds}")
        elif connection.vendor == "postgresql":
            with connection.wrap_database_errors:
                connection.connection.execute(f"SET lock_timeout = {milliseconds}")
        self._local.wait = (connection.connection, seconds)

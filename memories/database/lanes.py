"""Lanes: small thread pools for database work, with connections of their own (memories.database.access).

Owners take turns: a job waits for at most one job of each other owner before it, however many jobs they have."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar
from uuid import UUID

from django.db import DatabaseError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from memories.database.shared import MAX_JOBS_PER_TRANSACTION, Job, run_in_one_transaction
from memories.open_counts import OpenCounts

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


class Lane:
    """A thread pool, created at the first job. It runs the jobs of each owner in order of arrival. With `leave_one`,
    the jobs of one owner leave a thread to others, if there are several."""

    def __init__(self, name: str, size: Callable[[], int], *, leave_one: bool = False) -> None:
        self._name = name
        self._size = size
        self._leave_one = leave_one
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._opened: list[BaseDatabaseWrapper] = []
        self._local = threading.local()
        # The waiting jobs of each owner, and of None for work of nobody. The owner whose turn it is comes first.
        self._waiting: dict[UUID | None, deque[Job]] = {}
        self._running = OpenCounts[UUID | None]()  # the threads that each occupies

    def submit(
        self, seconds: float, function: Callable[[], T], owner_id: UUID | None = None, *, share: bool = False
    ) -> "Future[T]":
        """Queue a job that may wait for `seconds` from now, for a thread and for the database's lock. With `share` it
        is a write that may share a transaction with other waiting writes."""
        job = Job(time.monotonic() + seconds, function, owner_id, share)
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._size(), self._name, initializer=self._begin)
            self._waiting.setdefault(owner_id, deque()).append(job)
            self._pool.submit(self._work_next)
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
            waiting, self._waiting = self._waiting, {}
        for jobs in waiting.values():
            for job in jobs:
                job.future.cancel()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
        for connection in opened:
            connection.close()

    def _begin(self) -> None:
        _thread.here = True
        connection = connections[_DEFAULT]
        connection.inc_thread_sharing()  # another thread closes it, after this one has ended
        with self._lock:
            self._opened.append(connection)

    def _work_next(self) -> None:
        """Run the next job, or several in one transaction; as there is a call for each, later ones may find none."""
        with self._lock:
            jobs = self._take()
            if not jobs:
                return
            owner_id = jobs[0].owner_id
            self._running[owner_id] += 1
        self._run(jobs)
        with self._lock:
            self._running.leave(owner_id)
            if self._leave_one and owner_id in self._waiting and self._pool is not None:
                self._pool.submit(self._work_next)  # the call for it may have passed it over

    def _take(self) -> list[Job]:
        """Return the first job of the owner whose turn it is. If it may share its transaction, others that may follow
        it: the first of each owner in turn, as long as it may. Cancelled jobs are dropped."""
        jobs: list[Job] = []
        while len(jobs) < MAX_JOBS_PER_TRANSACTION:
            queue = next(
                (queue for owner_id, queue in self._waiting.items() if self._fits(jobs, owner_id, queue)), None
            )
            if queue is None:
                break
            job = queue.popleft()
            if job.future.set_running_or_notify_cancel():
                jobs.append(job)
            del self._waiting[job.owner_id]
            if queue:
                self._waiting[job.owner_id] = queue  # behind the others
        return jobs

    def _fits(self, jobs: Sequence[Job], owner_id: UUID | None, queue: deque[Job]) -> bool:
        """Return True if the first job of a queue may run with these or, if there are none, by itself."""
        if jobs:
            return jobs[0].share and queue[0].share
        is_limited = self._leave_one and owner_id is not None
        return not is_limited or self._running[owner_id] < max(1, self._size() - 1)

    def _run(self, jobs: list[Job]) -> None:
        left = min(job.deadline for job in jobs) - time.monotonic() if len(jobs) > 1 else 0.0
        if left > 0:
            with contextlib.suppress(DatabaseError):  # each job runs into the error again
                self._set_lock_timeout(left)
                if run_in_one_transaction(jobs):
                    return
        while jobs:
            self._work(jobs.pop(0))

    def _work(self, job: Job) -> None:
        try:
            left = job.deadline - time.monotonic()
            if left <= 0:
                raise DatabaseBusy(BUSY)
            self._set_lock_timeout(left)
            job.future.set_result(job.context.run(job.function))
        except BaseException as error:  # noqa: BLE001 - like an executor, pass it to the future
            job.future.set_exception(error)
        finally:
            del job  # its error refers to this frame: both, and what the function holds, would wait for the collector

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

"""Shared transactions: writes that wait for a database thread at the same time are committed together.

A commit on SQLite takes a third of a turn's transaction: it writes whole pages, most of which the next write changes
again. A savepoint for each write would cost as much, so there are none: if a write fails after it changed something,
the whole transaction is rolled back, and each write runs again by itself (docs/decisions/0053).

On PostgreSQL nothing is shared, since rows would be locked for the duration of all writes, in no particular order."""

import contextvars
import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

P = ParamSpec("P")
T = TypeVar("T")
MAX_JOBS_PER_TRANSACTION = 16
_DEFAULT = "default"
_thread = threading.local()


@dataclass(eq=False, slots=True)
class Job:
    """A function for a database thread, its deadline (time.monotonic()), the owner whose turn it takes, whether it may
    share a transaction, and the future of its result."""

    deadline: float
    function: Callable[[], Any]
    owner_id: UUID | None
    share: bool
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    future: "Future[Any]" = field(default_factory=Future)


class _PartialWrite(Exception):
    """A write failed after it had changed something, so that the shared transaction is rolled back."""


def shareable(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function in a transaction, like `transaction.atomic`, or as part of the shared transaction, if there is
    one. The function may run a second time."""

    @functools.wraps(function)
    def in_transaction(*args: P.args, **kwargs: P.kwargs) -> T:
        if is_shared():
            return function(*args, **kwargs)
        with transaction.atomic():
            return function(*args, **kwargs)

    return in_transaction


def is_shared() -> bool:
    """Return True in a shared transaction. Code that catches a database error there must raise it again."""
    return getattr(_thread, "shared", False)


def after_commit(function: Callable[[], object]) -> None:
    """Call a function now or, in a shared transaction, after its commit, when its errors do not affect the writes."""
    if is_shared():
        transaction.on_commit(function, robust=True)
    else:
        function()


def run_in_one_transaction(jobs: Sequence[Job]) -> bool:
    """Run the jobs in one transaction and set their results after its commit. Return False if it was rolled back, so
    that each job has to run by itself."""
    connection = connections[_DEFAULT]
    try:
        with transaction.atomic():
            _thread.shared = True
            try:
                outcomes = [_outcome(job, connection) for job in jobs]
            finally:
                _thread.shared = False
    except Exception:  # noqa: BLE001 - jobs that are affected run into it again by themselves
        return False
    for job, (result, error) in zip(jobs, outcomes, strict=True):
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)
    return True


def _outcome(job: Job, connection: BaseDatabaseWrapper) -> tuple[Any, Exception | None]:
    """Return a job's result, or the error that it raised before changing anything. Raises _PartialWrite."""
    changes = connection.connection.total_changes
    result, failed = None, None
    try:
        result = job.context.run(job.function)
    except Exception as error:  # noqa: BLE001 - becomes the result of the future
        failed = error
    if connection.needs_rollback or (failed and connection.connection.total_changes != changes):
        raise _PartialWrite from failed
    return result, failed

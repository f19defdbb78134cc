"""A transaction that several writes share: those that waited for a database thread at the same time.

A commit of SQLite writes whole pages, most of which are those of the next write, too: it takes a third of a turn's
transaction. A savepoint for each write would take as much again, so there is none: where a write fails after it has
changed something, nothing of the others is kept either, and each is done again by itself (docs/decisions/0053).

On PostgreSQL nothing is shared: rows would stay locked for the time of all of them, in no order."""

import contextvars
import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

P = ParamSpec("P")
T = TypeVar("T")
MAX_JOBS_PER_TRANSACTION = 16
_DEFAULT = "default"
_thread = threading.local()


@dataclass(eq=False, slots=True)
class Job:
    """A function for a database thread, until when it may wait there (monotonic time), and who waits for it."""

    deadline: float
    function: Callable[[], Any]
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    future: "Future[Any]" = field(default_factory=Future)


class _PartialWrite(Exception):
    """A write failed after it had changed something."""


def shareable(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function in a transaction, as `transaction.atomic` does; within a shared transaction it is part of that.
    The function may be run a second time."""

    @functools.wraps(function)
    def in_transaction(*args: P.args, **kwargs: P.kwargs) -> T:
        if is_shared():
            return function(*args, **kwargs)
        with transaction.atomic():
            return function(*args, **kwargs)

    return in_transaction


def is_shared() -> bool:
    """Return True in a transaction that others share. Who catches an error of the database there passes it on."""
    return getattr(_thread, "shared", False)


def after_commit(function: Callable[[], object]) -> None:
    """Call a function now; in a shared transaction after its commit. Its errors fail nobody's write."""
    if is_shared():
        transaction.on_commit(function, robust=True)
    else:
        function()


def run_in_one_transaction(jobs: Sequence[Job]) -> bool:
    """Do all of the jobs in one transaction, and tell those who wait after its commit. False where nothing was stored:
    then each is to be done by itself."""
    connection = connections[_DEFAULT]
    if connection.vendor != "sqlite":
        return False
    try:
        with transaction.atomic():
            _thread.shared = True
            try:
                outcomes = [_outcome(job, connection) for job in jobs]
            finally:
                _thread.shared = False
    except Exception:  # noqa: BLE001 - whatever it is, each job meets it again by itself, or is not concerned
        return False
    for job, (result, error) in zip(jobs, outcomes, strict=True):
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)
    return True


def _outcome(job: Job, connection: BaseDatabaseWrapper) -> tuple[Any, Exception | None]:
    """Return what a job returned, or the error that it raised before it changed anything. Raises _Undone."""
    changes = connection.connection.total_changes
    result, failed = None, None
    try:
        result = job.context.run(job.function)
    except Exception as error:  # noqa: BLE001 - it is told to whoever waits
        failed = error
    if connection.needs_rollback or (failed and connection.connection.total_changes != changes):
        raise _PartialWrite from failed
    return result, failed

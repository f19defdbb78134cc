"""Background jobs: how they get to the queue, who may do them, and how long they rest. Used by reviews, consolidation,
search words, vectors and compaction.

The queue may lose a job or deliver it twice; the rows of the database say what is to be done. So a job begins with a
claim that lets one worker through, and a sweep queues again what has no job."""

import asyncio
import logging
import math
import os
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime, timedelta
from functools import partial
from multiprocessing.util import Finalize
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django_q.tasks import async_task

from gateway.upstream import disconnect, retry_after_seconds
from memories.background import redis_calls
from memories.errors import DomainError
from memories.ids import uuid7
from memories.models import Lease

logger = logging.getLogger("daybook.jobs")
T = TypeVar("T")
LOST_AFTER = timedelta(seconds=60)
"""A job that was queued so long ago and has not begun is taken for lost."""
_runner: asyncio.Runner | None = None


# ---- To the queue ----------------------------------------------------------------------------------------------------


def enqueue(task: str, job_id: UUID | str, *more: str, timeout: int | None = None) -> None:
    """Hand a job to the queue: within the transaction on the database broker, after it where the queue is Redis.
    `more` are further arguments of the task. `timeout` in seconds is a backstop above the job's own; without it the
    queue's default holds."""
    options: dict[str, Any] = {"ack_failure": True, "save": False} | ({"timeout": timeout} if timeout else {})
    job = partial(async_task, task, str(job_id), *more, q_options=options)
    if settings.REDIS_URL:
        transaction.on_commit(lambda: redis_calls.submit((task, job_id, *more), job), robust=True)
    else:
        job()


def enqueue_books(task: str, rows: "QuerySet[Any]", *, most: int) -> int:
    """Queue one job for each book of these rows, at most so many. Returns how many."""
    books = list(rows.order_by().values_list("book_id", flat=True).distinct()[:most])
    for book_id in books:
        enqueue(task, book_id)
    return len(books)


def without_job(now: datetime) -> Q:
    """Rows with `enqueued_at` whose job is missing: never queued, or so long ago that it must be lost."""
    return Q(enqueued_at__isnull=True) | Q(enqueued_at__lt=now - LOST_AFTER)


def mark_enqueued(rows: "QuerySet[Any]", row: Any, now: datetime) -> bool:
    """Note that a row is queued now; of several workers one is told True."""
    return rows.filter(pk=row.pk, enqueued_at=row.enqueued_at).update(enqueued_at=now) == 1


# ---- Claims ----------------------------------------------------------------------------------------------------------


class NotClaimed(Exception):
    """A worker leaves a job. `cause` is a fixed word; `details` are ids, states and times, never words of a person."""

    def __init__(self, cause: str, **details: object) -> None:
        super().__init__(cause)
        self.fields = {"cause": cause, **details}

    def log(self, kind: str, job_id: UUID) -> None:
        """Say why, in one line of the log."""
        fields = {"id": job_id, **self.fields}
        logger.info("%s not claimed: %s", kind, " ".join(f"{name}={value}" for name, value in fields.items()))


class LeaseLost(Exception):
    """Somebody else holds this name now, or the time ran out: nothing may be written."""


def lease_take(name: str, *, seconds: float) -> UUID | None:
    """Take a free or expired lease for `seconds`. Returns its token, or None while somebody else holds it. Leases
    expire, so that a crashed holder blocks nothing for ever."""
    now = timezone.now()
    token = uuid7()
    holder = f"{socket.gethostname()}:{os.getpid()}"[:255]
    values = {"token": token, "holder": holder, "expires_at": now + timedelta(seconds=seconds)}
    if Lease.objects.filter(name=name, expires_at__lte=now).update(**values):
        return token
    try:
        with transaction.atomic():
            # Insert only: of two that find no row, the primary key lets one through.
            Lease(name=name, **values).save(force_insert=True)
    except IntegrityError:
        return None
    return token


def lease_extend(name: str, token: UUID, *, seconds: float) -> bool:
    """Extend a lease for its holder. Return False if the lease is gone, even if nobody else has taken it yet."""
    now = timezone.now()
    mine = Lease.objects.filter(name=name, token=token, expires_at__gt=now)
    return mine.update(expires_at=now + timedelta(seconds=seconds)) == 1


def lease_require(name: str, token: UUID) -> None:
    """Lock the lease for the rest of the caller's transaction, which is the one that writes. Raises LeaseLost."""
    mine = Lease.objects.select_for_update().filter(name=name, token=token, expires_at__gt=timezone.now())
    if mine.first() is None:
        raise LeaseLost(name)


def lease_release(name: str, token: UUID) -> None:
    """Give a lease back; nothing happens if it is held by somebody else."""
    Lease.objects.filter(name=name, token=token).delete()


def lease_is_held(name: str) -> bool:
    """Return True if somebody holds it now."""
    return Lease.objects.filter(name=name, expires_at__gt=timezone.now()).exists()


async def work_while_held(
    work: Coroutine[Any, Any, None], renew: Callable[[], Awaitable[bool]], *, seconds: float
) -> None:
    """Work under a lease of so many seconds, which `renew` lengthens every third of its time. Raises what ended the
    work, and LeaseLost when `renew` returned False, which cancels it."""
    tasks = [asyncio.create_task(work), asyncio.create_task(_beat(renew, seconds / 3))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise LeaseLost("The lease ran out, or the run was ended.")
        await tasks[0]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _beat(renew: Callable[[], Awaitable[bool]], pause: float) -> None:
    while True:
        await asyncio.sleep(pause)
        if not await renew():
            return


# ---- Pauses ----------------------------------------------------------------------------------------------------------


class Throttle:
    """When this process last looked for work of one kind, so that it does not look with every sweep."""

    def __init__(self) -> None:
        self._looked_at: float | None = None

    def passed(self) -> float:
        """Seconds since the last look; infinite before the first."""
        return math.inf if self._looked_at is None else time.monotonic() - self._looked_at

    def look(self, *, pause: float = 0.0) -> bool:
        """Note a look, unless there was one within the `pause` before."""
        if self.passed() < pause:
            return False
        self._looked_at = time.monotonic()
        return True

    def reset(self) -> None:
        """Forget the last look."""
        self._looked_at = None


def rest_after(error: DomainError, *, least: float) -> float:
    """Seconds to leave an upstream alone that refused: as many as its Retry-After says, at least `least`."""
    return max(least, retry_after_seconds(error))


# ---- The worker's event loop -----------------------------------------------------------------------------------------


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in the process's own loop: one per process, and with it one upstream client. It is
    made at first use, which is after the worker was forked, and closed when the worker ends."""
    global _runner
    if _runner is None:
        _runner = asyncio.Runner()
        Finalize(None, _close, args=(_runner,), exitpriority=0)  # a forked child ends without atexit
    return _runner.run(work)


def _close(runner: asyncio.Runner) -> None:
    runner.run(disconnect())
    runner.close()

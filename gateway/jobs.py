"""Background jobs: queueing, claims and pauses. Used by reviews, consolidation, search words, vectors, compaction,
attachments, webhooks and mails.

The queue may lose a job or deliver it twice; database rows determine what has to be done. So a job begins with a claim
that only one worker gets, and a sweep queues rows again that have no job. Jobs without such rows are queued by
`enqueue_kept`."""

import asyncio
import logging
import math
import os
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from multiprocessing.util import Finalize
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import OrmQ, Schedule, Task
from django_q.tasks import async_task

from gateway.upstream import disconnect
from gateway.upstream.faults import retry_after_seconds
from memories.clocks import CLOCK_SKEW, lease_over, long_ago
from memories.errors import DomainError
from memories.ids import uuid7
from memories.messaging.background import redis_calls
from memories.models import Lease
from memories.selectors import of_active_accounts

logger = logging.getLogger("daybook.jobs")
T = TypeVar("T")
LOST_AFTER = timedelta(seconds=60)
"""The time after which a queued job that has not begun counts as lost."""
LONGEST_PAUSE = timedelta(days=1)
"""The longest pause of a job or of a row that a job works on. One that ends later was set by a clock that was ahead."""
RETENTION = timedelta(days=7)
"""How long the queue's record of a failed job is kept; its traceback may quote the job's data."""
_PURGED_AT_ONCE = 500
_NAMES_AT_ONCE = 64
"""Host names resolved at once. Each look-up takes a thread, and may keep it longer than its caller waits."""
_runner: asyncio.Runner | None = None
_started_at: datetime | None = None  # when this worker started
_PAUSES = (60, 300, 900, 3600)  # seconds before each further attempt; greylisting takes some minutes
_OPTIONS = {"ack_failure": True, "save": False}
_SCHEDULER = "django_q.scheduler.scheduler"
_KEPT = "gateway.jobs.kept_execute"
_KEPT_MINUTES, _KEPT_TIMES = 5, 3


def enqueue(task: str, job_id: UUID | str, *more: str, timeout: int | None = None) -> None:
    """Queue a job: within the current transaction if the queue is in the database, after its commit if it is in Redis.
    `more` are further arguments of the task. `timeout`, in seconds, is a backstop above the job's own limits; 0 means
    the queue's default."""
    options: dict[str, Any] = _OPTIONS | ({"timeout": timeout} if timeout else {})
    job = partial(async_task, task, str(job_id), *more, q_options=options)
    if settings.REDIS_URL:
        transaction.on_commit(lambda: redis_calls.submit((task, job_id, *more), job), robust=True)
    else:
        job()


def enqueue_kept(task: str, *arguments: str) -> None:
    """Queue a job that no sweep would find again, such as a mail, within the current transaction. It is a row in the
    database until it has been executed, which begins at once, or when a worker next looks for such rows."""
    enqueue_later(task, *arguments, seconds=0)
    look = partial(async_task, _SCHEDULER, q_options=_OPTIONS)
    if settings.REDIS_URL:
        transaction.on_commit(lambda: redis_calls.submit(_SCHEDULER, look), robust=True)
    else:
        look()


def enqueue_later(task: str, *arguments: str, seconds: float) -> None:
    """Queue a job in `seconds`, accurate to half a minute. It is a row in the database until it has been executed: if
    its worker dies, or the queue loses it, it is queued again after _KEPT_MINUTES, _KEPT_TIMES in all."""
    name = str(uuid7())
    Schedule.objects.create(
        name=name,
        func=_KEPT,
        args=repr((name, task, *arguments)),
        kwargs=repr({"q_options": _OPTIONS}),
        schedule_type=Schedule.MINUTES,
        minutes=_KEPT_MINUTES,
        repeats=_KEPT_TIMES,
        next_run=timezone.now() + timedelta(seconds=seconds),
    )


def kept_execute(name: str, task: str, *arguments: str) -> None:
    """Job: execute a kept job, unless that was done before."""
    row = Schedule.objects.filter(name=name)
    if not row.update(next_run=timezone.now() + timedelta(minutes=_KEPT_MINUTES)):
        return
    try:
        import_string(task)(*arguments)
    finally:  # after an error, too: a part may be done
        row.delete()


def enqueue_again(task: str, *arguments: str, attempt: str) -> None:
    """Queue a job that sends something again after a pause, with the next attempt's number as its last argument. After
    the last attempt, do nothing."""
    if int(attempt) < len(_PAUSES):
        enqueue_later(task, *arguments, str(int(attempt) + 1), seconds=_PAUSES[int(attempt)])


def enqueue_books(task: str, rows: "QuerySet[Any]", *, limit: int) -> int:
    """Queue one job for each book of these rows whose account is active, at most `limit`. Return how many."""
    books = list(rows.filter(of_active_accounts()).order_by().values_list("book_id", flat=True).distinct()[:limit])
    for book_id in books:
        enqueue(task, book_id)
    return len(books)


def worker_starts() -> None:
    """Count jobs that were queued before now as lost: the worker that stopped or died may have fetched them. One that
    is executed twice is claimed once."""
    global _started_at
    _started_at = timezone.now()


def without_job(now: datetime) -> Q:
    """Return the condition for rows with `enqueued_at` whose job was never queued or counts as lost."""
    lost = Q(enqueued_at__isnull=True) | long_ago("enqueued_at", now, age=LOST_AFTER)
    return lost | Q(enqueued_at__lt=_started_at) if _started_at else lost


def paused_too_long(field: str, now: datetime) -> Q:
    """Return the condition for rows that wait until `field`, which a clock that was ahead has set."""
    return Q(**{f"{field}__gt": now + LONGEST_PAUSE + CLOCK_SKEW})


def mark_enqueued(rows: "QuerySet[Any]", row: Any, now: datetime) -> bool:
    """Mark a row as queued now. Only one of several workers gets True."""
    return rows.filter(pk=row.pk, enqueued_at=row.enqueued_at).update(enqueued_at=now) == 1


def jobs_purge(now: datetime) -> int:
    """Delete old records of failed jobs, which the queue never deletes, and return how many. Kept jobs whose workers
    died each time are given up. Jobs that wait because a clock was ahead wait no longer."""
    Schedule.objects.filter(repeats=0, next_run__lt=now - LONGEST_PAUSE).delete()  # not while the queue is only full
    Schedule.objects.filter(paused_too_long("next_run", now)).update(next_run=now)
    OrmQ.objects.filter(paused_too_long("lock", now)).update(lock=now)
    old = Task.objects.filter(stopped__lt=now - RETENTION).values_list("pk", flat=True)[:_PURGED_AT_ONCE]
    return int(Task.objects.filter(pk__in=list(old)).delete()[0])


class NotClaimed(Exception):
    """This worker does not execute the job. `cause` is a fixed word; `details` are ids, states and times, never
    personal text."""

    def __init__(self, cause: str, **details: object) -> None:
        super().__init__(cause)
        self.fields = {"cause": cause, **details}

    def log(self, kind: str, job_id: UUID) -> None:
        """Log the cause in one line."""
        fields = {"id": job_id, **self.fields}
        logger.info("%s not claimed: %s", kind, " ".join(f"{name}={value}" for name, value in fields.items()))


class LeaseLost(Exception):
    """The lease has expired or has another holder: nothing may be written."""


def lease_take(name: str, *, seconds: float, holder: str = "") -> UUID | None:
    """Take a free or expired lease for `seconds`. Return its token, or None if it is held. Leases expire, so that a
    crashed holder does not block others forever. `holder` is by default this process."""
    now = timezone.now()
    token = uuid7()
    values = {"token": token, "holder": holder or process_name(), "expires_at": now + timedelta(seconds=seconds)}
    if Lease.objects.filter(_over(now, seconds), name=name).update(**values):
        return token
    try:
        with transaction.atomic():
            # A plain insert: if two workers find no row, the primary key admits only one.
            Lease(name=name, **values).save(force_insert=True)
    except IntegrityError:
        return None
    return token


def process_name() -> str:
    """Return the host and the process id of this process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def lease_extend(name: str, token: UUID, *, seconds: float) -> bool:
    """Extend a lease for its holder. Return False if it has expired, even if nobody else has taken it yet."""
    now = timezone.now()
    valid = Lease.objects.filter(name=name, token=token, expires_at__gt=now)
    return valid.update(expires_at=now + timedelta(seconds=seconds)) == 1


def lease_require(name: str, token: UUID) -> None:
    """Lock the lease for the rest of the caller's transaction. Raises LeaseLost."""
    valid = Lease.objects.select_for_update().filter(name=name, token=token, expires_at__gt=timezone.now())
    if valid.first() is None:
        raise LeaseLost(name)


def lease_release(name: str, token: UUID) -> None:
    """Release a lease. Has no effect if it has another holder."""
    Lease.objects.filter(name=name, token=token).delete()


def lease_is_held(name: str, *, seconds: float) -> bool:
    """Return True if a lease, which is taken for `seconds`, is held now."""
    return Lease.objects.filter(~_over(timezone.now(), seconds), name=name).exists()


def _over(now: datetime, seconds: float) -> Q:
    return lease_over("expires_at", now, lease=timedelta(seconds=seconds))


async def work_while_held(
    work: Coroutine[Any, Any, None], renew: Callable[[], Awaitable[bool]], *, seconds: float
) -> None:
    """Run a coroutine under a lease of `seconds`, which `renew` extends every third of that time. Raises what the
    coroutine raises. If `renew` returns False, cancel the coroutine and raise LeaseLost."""
    tasks = [asyncio.create_task(work), asyncio.create_task(_keep_renewing(renew, seconds / 3))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise LeaseLost("The lease ran out, or the run was ended.")
        await tasks[0]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _keep_renewing(renew: Callable[[], Awaitable[bool]], pause: float) -> None:
    while True:
        await asyncio.sleep(pause)
        if not await renew():
            return


class Throttle:
    """Limits how often this process checks for one kind of work, so that it need not do so in every sweep."""

    def __init__(self) -> None:
        self._checked_at = -math.inf

    def elapsed(self) -> float:
        """Return the seconds since the last check; infinite before the first one."""
        return time.monotonic() - self._checked_at

    def check(self, *, pause: float = 0.0) -> bool:
        """Record a check and return True, unless the last one was less than `pause` seconds ago."""
        if self.elapsed() < pause:
            return False
        self._checked_at = time.monotonic()
        return True

    def reset(self) -> None:
        """Forget the last check."""
        self._checked_at = -math.inf


def retry_pause(error: DomainError, *, least: float) -> float:
    """Return the seconds to wait after an upstream's refusal: its Retry-After, but at least `least`."""
    return max(least, retry_after_seconds(error))


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion in the loop of this process, which all jobs share so that upstream clients are
    reused. The loop is created at first use, after the worker was forked, and closed when the worker ends."""
    global _runner
    if _runner is None:
        _runner = asyncio.Runner()
        _runner.get_loop().set_default_executor(ThreadPoolExecutor(_NAMES_AT_ONCE, "daybook-names"))
        Finalize(None, _close, args=(_runner,), exitpriority=0)  # a forked child ends without atexit
    return _runner.run(work)


def _close(runner: asyncio.Runner) -> None:
    runner.run(disconnect())
    runner.close()

"""State transitions of consolidation runs: claim, advance, pause and end (requests.py creates them). A claim holds the
lease of a book, and every transaction that writes checks it again (`lock_claimed`). Attempts are counted here, not by
the queue."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from gateway import jobs
from gateway.agents.configuration import consolidation_settings
from gateway.agents.model_choice import BackgroundModels
from gateway.agents.settings import ConsolidationSettings
from gateway.jobs import LeaseLost, NotClaimed
from gateway.runs.leases import has_ended, this_process
from memories.clocks import lease_over
from memories.errors import DomainError
from memories.ids import parse_uuid
from memories.messaging.outbox import notify
from memories.models import Book, Lease, Notification
from memories.selectors import of_active_accounts
from memories.services import books_lock
from reviews.claiming import due_run
from reviews.consolidation.health import finished_text
from reviews.consolidation.quotas import Meter
from reviews.consolidation.standing import standing_of
from reviews.errors import RunCancelled
from reviews.models import ConsolidationRun, Extraction

State = ConsolidationRun.State
Phase = ConsolidationRun.Phase
TASK = "reviews.consolidation.tasks.consolidation_execute"
MAX_ATTEMPTS = 5
# How long a run works before it lets other jobs of the queue go first.
SLICE_SECONDS = 60.0
BACKSTOP_SECONDS = 300
CLEARED = "The book was cleared meanwhile."
OFF = "Consolidation is off. An administrator turns it on with memories.enabled."
_LEASES = "consolidation:"
_holder = ""  # the worker that this process is a fork of
_BATCH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationClaim:
    """A run that this worker holds, the settings for it, and its usage."""

    run: ConsolidationRun
    token: UUID
    limits: ConsolidationSettings
    meter: Meter

    @property
    def lease(self) -> str:
        return lease_name(self.run.book_id)

    @property
    def row(self) -> "QuerySet[ConsolidationRun]":
        """The run's row, also if the claim was lost: callers check that with lock_claimed."""
        return ConsolidationRun.objects.filter(pk=self.run.pk)

    def after_rest(self, error: DomainError) -> datetime:
        """Return when to resume after an upstream asked for a pause."""
        return timezone.now() + timedelta(seconds=jobs.retry_pause(error, least=self.limits.retry_seconds))


def lease_name(book_id: UUID) -> str:
    """Return the name of the lease of a book."""
    return f"{_LEASES}{book_id}"


def lease_holder() -> str:
    """Return in whose name this process takes leases: its own, or that of the worker that it is a fork of."""
    return _holder or f"{jobs.process_name()}:{this_process()}"


def leases_share() -> None:
    """Let the later forks of this worker take leases in its name, so that it can release them when it stops."""
    global _holder
    _holder = lease_holder()


def leases_leave() -> None:
    """Release the leases that were taken in the name of this worker, which stops: others may resume its runs."""
    Lease.objects.filter(name__startswith=_LEASES, holder=lease_holder()).delete()


def _books_held(lease_seconds: float) -> list[UUID]:
    """Delete the leases that are over, and those of workers that are known to have ended. Return the books of the
    others."""
    over = lease_over("expires_at", timezone.now(), lease=timedelta(seconds=lease_seconds))
    Lease.objects.filter(over, name__startswith=_LEASES).delete()
    books = []
    for lease in Lease.objects.filter(name__startswith=_LEASES):
        if has_ended(parse_uuid(lease.holder.rpartition(":")[2])):
            jobs.lease_release(lease.name, lease.token)
        elif book := parse_uuid(lease.name.split(":")[1]):  # names of earlier versions end with a phase
            books.append(book)
    return books


def _pauses_shorten(now: datetime) -> None:
    """End the pauses that were set by a clock that was ahead."""
    paused = ConsolidationRun.objects.filter(jobs.paused_too_long("not_before", now), state__in=ConsolidationRun.OPEN)
    if runs := list(paused.values_list("pk", flat=True)):
        Extraction.objects.filter(run__in=runs, state=Extraction.State.QUEUED).update(not_before=now)
        paused.update(not_before=now)


def enqueue(run_id: UUID) -> None:
    """Enqueue a slice of a run, in the caller's transaction."""
    # The queue's timeout is a backstop: longer than a slice plus the answer that it may wait for.
    jobs.enqueue(TASK, run_id, timeout=int(SLICE_SECONDS + consolidation_settings().request_seconds) + BACKSTOP_SECONDS)


def claim(run_id: UUID) -> ConsolidationClaim | None:
    """Claim a run. Returns None, and logs why, if it cannot be claimed now."""
    try:
        return _claim(run_id)
    except NotClaimed as reason:
        reason.log("consolidation", run_id)
        return None


def _claim(run_id: UUID) -> ConsolidationClaim:
    limits = consolidation_settings()
    now = timezone.now()
    run = due_run(ConsolidationRun.objects.filter(pk=run_id).first(), ConsolidationRun.OPEN, "over")
    with transaction.atomic():
        token = jobs.lease_take(lease_name(run.book_id), seconds=limits.lease_seconds, holder=lease_holder())
        rows = ConsolidationRun.objects.filter(pk=run_id, state__in=ConsolidationRun.OPEN, phase=run.phase)
        if token and not rows.update(
            state=State.RUNNING, attempts=F("attempts") + 1, started_at=Coalesce(F("started_at"), now), error=None
        ):
            raise NotClaimed("moved_on", phase=run.phase)
    if token is None:
        # The worker of a run that was stopped has it. The sweep queues this run as soon as it is released.
        ConsolidationRun.objects.filter(pk=run_id, state=State.SCHEDULED).update(enqueued_at=None)
        raise NotClaimed("lease_held", phase=run.phase)
    run = ConsolidationRun.objects.select_related("book").get(pk=run_id)
    claim = ConsolidationClaim(run=run, token=token, limits=limits, meter=Meter(run, limits))
    if cause := _end_impossible(claim):
        jobs.lease_release(claim.lease, token)
        raise NotClaimed(cause)
    return claim


def _end_impossible(claim: ConsolidationClaim) -> str:
    """End a run that was just claimed but cannot be executed. Returns the cause for the log, or "" if it can be."""
    run = claim.run
    if not claim.limits.enabled:
        cancel(run, OFF)
        return "off"
    if run.book.epoch != run.book_epoch:
        cancel(run, CLEARED)
        return "book_cleared"
    if obstacle := BackgroundModels.now(run.book.name).obstacle(run.book.name):
        cancel(run, obstacle)
        return "upstream_undecided"
    if run.attempts > MAX_ATTEMPTS:
        fail(claim, DomainError("The worker stopped or died during each attempt."), code="worker_lost")
        return "worker_lost"
    return ""


def lock_claimed(claim: ConsolidationClaim) -> ConsolidationRun:
    """Lock a claim's lease, run and book. Raises LeaseLost, also if the run was stopped or given to another worker, or
    RunCancelled if the book was cleared."""
    jobs.lease_require(claim.lease, claim.token)
    run = claim.row.select_for_update().get()
    if run.state != State.RUNNING or run.phase != claim.run.phase:
        raise LeaseLost("The run was stopped.")
    book = Book.objects.select_for_update(no_key=True).get(pk=run.book_id)
    if book.epoch != run.book_epoch:
        raise RunCancelled(CLEARED)
    return run


def heartbeat(claim: ConsolidationClaim) -> bool:
    """Renew the lease. Returns False if it is lost or the run has ended."""
    if not jobs.lease_extend(claim.lease, claim.token, seconds=claim.limits.lease_seconds):
        return False
    return claim.row.filter(state=State.RUNNING).exists()


@transaction.atomic
def advance(claim: ConsolidationClaim, *, ceiling: str = "") -> None:
    """Move a run from extraction to synthesis; `ceiling` is the limit that ended the extraction early."""
    lock_claimed(claim)
    claim.row.update(phase=Phase.SYNTHESIS, attempts=0, ceiling=ceiling)
    claim.run.phase = Phase.SYNTHESIS


def pause(claim: ConsolidationClaim, until: datetime, error: DomainError | None = None) -> None:
    """Pause a run until a time, after which the sweep resumes it. If that time is now, enqueue its next slice."""
    now = timezone.now()
    problem = {"code": error.code, "message": str(error)} if error else None
    with transaction.atomic():
        lock_claimed(claim)
        claim.row.update(
            state=State.PAUSED if until > now else State.SCHEDULED,
            attempts=0,
            not_before=until,
            enqueued_at=None if until > now else now,
            error=problem,
        )
        jobs.lease_release(claim.lease, claim.token)
        if until <= now:
            enqueue(claim.run.pk)


def finish(claim: ConsolidationClaim, **values: Any) -> None:
    """End a run that is done and notify its owner, in the caller's transaction, which has locked the claim."""
    run = claim.row.select_related("book").get()
    worked = bool(run.sessions_done or values.get("written") or values.get("removed"))
    state = State.COMPLETED if worked else State.NOTHING_TO_DO
    _end(ConsolidationRun.objects.filter(pk=run.pk), state, phase=Phase.DONE, attempts=0, **values)
    jobs.lease_release(claim.lease, claim.token)
    useful = run.sessions_done > run.sessions_failed or values.get("written") or values.get("removed")
    if useful or run.rebuild:
        run.refresh_from_db()
        why = "" if worked else f" {standing_of(run.book, force=run.force).text}"
        kind, text = Notification.Kind.CONSOLIDATION_FINISHED, finished_text(run) + why
        notify(owner_id=run.owner_id, kind=kind, book=run.book.name, text=text)


def fail(claim: ConsolidationClaim, error: DomainError, *, code: str = "") -> None:
    """End a run after an error; extractions that are stored are kept. Does nothing if the lease was lost, since another
    worker may have the run."""
    with suppress(LeaseLost), transaction.atomic():
        jobs.lease_require(claim.lease, claim.token)
        unchanged = claim.row.filter(state=State.RUNNING, phase=claim.run.phase)
        _end(unchanged, State.FAILED, error={"code": code or error.code, "message": str(error)})
        jobs.lease_release(claim.lease, claim.token)


@transaction.atomic
def cancel(run: ConsolidationRun, reason: str) -> bool:
    """Cancel an open run; extractions that are stored are kept. Returns True if this call cancelled it."""
    return cancel_all(Q(pk=run.pk), reason) == 1


def cancel_all(condition: Q, reason: str) -> int:
    """Cancel the open runs that match a condition, in the caller's transaction. Returns how many."""
    rows = ConsolidationRun.objects.filter(condition, state__in=ConsolidationRun.OPEN)
    return _end(rows, State.CANCELLED, error={"code": "cancelled", "message": reason})


def recover() -> int:
    """Enqueue runs whose worker died, and due runs without a job. Runs that nobody requested are limited to
    `parallel_runs`, so that reviews do not have to wait for them. Returns how many were enqueued."""
    now, limits = timezone.now(), consolidation_settings()
    held = _books_held(limits.lease_seconds)
    _pauses_shorten(now)
    for run in ConsolidationRun.objects.filter(state=State.RUNNING).exclude(book__in=held)[:_BATCH]:
        unchanged = ConsolidationRun.objects.filter(pk=run.pk, state=State.RUNNING, phase=run.phase)
        unchanged.update(state=State.SCHEDULED, enqueued_at=None)
    due = ConsolidationRun.objects.filter(state__in=(State.SCHEDULED, State.PAUSED), not_before__lte=now)
    active = ConsolidationRun.objects.filter(state=State.RUNNING).count() + due.exclude(jobs.without_job(now)).count()
    slots = max(0, limits.parallel_runs - active)
    lost = due.filter(of_active_accounts(), jobs.without_job(now)).exclude(book__in=held).order_by("not_before")
    count = 0
    for run in [*lost.filter(rebuild=True)[:_BATCH], *lost.filter(rebuild=False)[:slots]]:
        with transaction.atomic():
            if jobs.mark_enqueued(due, run, now):
                enqueue(run.pk)
                count += 1
    return count


def _end(runs: "QuerySet[ConsolidationRun]", state: ConsolidationRun.State, **values: Any) -> int:
    """End runs, in the caller's transaction, and pass over their queued sessions. `runs` filters by the state that they
    must still have. Returns the number of runs updated."""
    books = dict(runs.select_for_update().order_by("pk").values_list("pk", "book_id"))
    books_lock(set(books.values()))
    Extraction.objects.filter(run__in=books, state=Extraction.State.QUEUED).update(state=Extraction.State.PASSED)
    return ConsolidationRun.objects.filter(pk__in=books).update(state=state, finished_at=timezone.now(), **values)

"""Consolidation runs, write side: claimed, advanced, paused, ended (asked for: requests.py). A claim is the lease of a
book's phase; every transaction that writes looks at it again (`hold`). Attempts are counted here, never by the queue.
Lock order: lease → run → book → extractions → state of the book → artifacts → owner."""

from dataclasses import dataclass, replace
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
from gateway.jobs import NotClaimed
from memories.errors import DomainError
from memories.messaging.outbox import notify
from memories.models import Book, Notification
from reviews.consolidation.errors import RunCancelled
from reviews.consolidation.health import finished_text
from reviews.consolidation.standing import standing_of
from reviews.models import ConsolidationRun, Extraction

State = ConsolidationRun.State
Phase = ConsolidationRun.Phase
TASK = "reviews.consolidation.tasks.consolidation_execute"
MAX_ATTEMPTS = 5
# After so long a run lets other jobs of the queue go first.
SLICE_SECONDS = 60.0
BACKSTOP_SECONDS = 300
OFF = "Consolidation is off. An administrator turns it on with memories.enabled."
_BATCH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationClaim:
    """A run that this worker holds in one phase, with the settings it works by."""

    run: ConsolidationRun
    token: UUID
    limits: ConsolidationSettings

    @property
    def lease(self) -> str:
        return lease_name(self.run.book_id, self.run.phase)

    def after_rest(self, error: DomainError) -> datetime:
        """Return when to go on after an upstream asked for a pause."""
        return timezone.now() + timedelta(seconds=jobs.retry_pause(error, least=self.limits.retry_seconds))


def lease_name(book_id: UUID, phase: str) -> str:
    """Return the name of the lease, of which there is one per book and phase."""
    return f"consolidation:{book_id}:{phase}"


def enqueue(run_id: UUID) -> None:
    """Hand a slice of a run to the queue, in the caller's transaction."""
    # The queue's own timeout is a backstop above a slice and the answer it may wait for.
    jobs.enqueue(TASK, run_id, timeout=int(SLICE_SECONDS + consolidation_settings().request_seconds) + BACKSTOP_SECONDS)


def claim(run_id: UUID) -> ConsolidationClaim | None:
    """Take a run's present phase. None when there is nothing to do now: each cause is logged."""
    try:
        return _claim(run_id)
    except NotClaimed as why:
        why.log("consolidation", run_id)
        return None


def _claim(run_id: UUID) -> ConsolidationClaim:
    limits = consolidation_settings()
    now = timezone.now()
    run = ConsolidationRun.objects.filter(pk=run_id).first()
    if run is None:
        raise NotClaimed("unknown")
    if run.state not in ConsolidationRun.OPEN:
        raise NotClaimed("over", state=run.state)
    if run.not_before > now:
        raise NotClaimed("not_due", not_before=run.not_before.isoformat())
    with transaction.atomic():
        name = lease_name(run.book_id, run.phase)
        token = jobs.lease_take(name, seconds=limits.lease_seconds)
        if token is None:
            raise NotClaimed("lease_held", phase=run.phase)
        rows = ConsolidationRun.objects.filter(pk=run_id, state__in=ConsolidationRun.OPEN, phase=run.phase)
        if not rows.update(
            state=State.RUNNING, attempts=F("attempts") + 1, started_at=Coalesce(F("started_at"), now), error=None
        ):
            raise NotClaimed("moved_on", phase=run.phase)
    run = ConsolidationRun.objects.select_related("book").get(pk=run_id)
    found = ConsolidationClaim(run=run, token=token, limits=limits)
    if cause := _ended_by(found):
        jobs.lease_release(found.lease, token)
        raise NotClaimed(cause)
    return found


def _ended_by(found: ConsolidationClaim) -> str:
    """End a run that was just claimed but can not be done. Returns the cause for the log; "" if it can be done."""
    run = found.run
    if not found.limits.enabled:
        cancel(run, OFF)
        return "off"
    if run.book.epoch != run.book_epoch:
        cancel(run, "The book was cleared meanwhile.")
        return "book_cleared"
    if obstacle := BackgroundModels.now(run.book.name).obstacle(run.book.name):
        cancel(run, obstacle)
        return "upstream_undecided"
    if run.attempts > MAX_ATTEMPTS:
        fail(found, DomainError("The worker went away again and again."), code="worker_lost")
        return "worker_lost"
    return ""


def hold(held: ConsolidationClaim) -> ConsolidationRun:
    """Lock lease, run and book of a claim. Raises LeaseLost; RunCancelled if it was ended or the book cleared."""
    jobs.lease_require(held.lease, held.token)
    run = ConsolidationRun.objects.select_for_update().get(pk=held.run.pk)
    if run.state != State.RUNNING or run.phase != held.run.phase:
        raise RunCancelled("The run was stopped.")
    book = Book.objects.select_for_update().get(pk=run.book_id)
    if book.epoch != run.book_epoch:
        raise RunCancelled("The book was cleared meanwhile.")
    return run


def heartbeat(held: ConsolidationClaim) -> bool:
    """Renew the lease; False when it is lost or the run was ended by somebody."""
    if not jobs.lease_extend(held.lease, held.token, seconds=held.limits.lease_seconds):
        return False
    return ConsolidationRun.objects.filter(pk=held.run.pk, state=State.RUNNING).exists()


@transaction.atomic
def advance(held: ConsolidationClaim) -> ConsolidationClaim | None:
    """Move a run from extraction to synthesis and exchange the leases, in one transaction. Returns None if the other
    lease is taken."""
    hold(held)
    following = lease_name(held.run.book_id, Phase.SYNTHESIS)
    token = jobs.lease_take(following, seconds=held.limits.lease_seconds)
    if token is None:
        return None
    ConsolidationRun.objects.filter(pk=held.run.pk).update(phase=Phase.SYNTHESIS, attempts=0)
    jobs.lease_release(held.lease, held.token)
    run = ConsolidationRun.objects.select_related("book").get(pk=held.run.pk)
    return replace(held, run=run, token=token)


def pause(held: ConsolidationClaim, until: datetime, error: DomainError | None = None) -> None:
    """Let a run rest until a moment; the sweep takes it up again. Without `error` it only lets other jobs run."""
    now = timezone.now()
    problem = {"code": error.code, "message": str(error)} if error else None
    with transaction.atomic():
        hold(held)
        ConsolidationRun.objects.filter(pk=held.run.pk).update(
            state=State.PAUSED if until > now else State.SCHEDULED,
            attempts=0,
            not_before=until,
            enqueued_at=None if until > now else now,
            error=problem,
        )
        jobs.lease_release(held.lease, held.token)
        if until <= now:
            enqueue(held.run.pk)


def finish(held: ConsolidationClaim, **values: Any) -> None:
    """End a run that did its work, in the caller's transaction, with the lease held. The last statement notifies."""
    run = ConsolidationRun.objects.select_related("book").get(pk=held.run.pk)
    worked = bool(run.sessions_done or values.get("written") or values.get("removed"))
    state = State.COMPLETED if worked else State.NOTHING_TO_DO
    _end(ConsolidationRun.objects.filter(pk=run.pk), state, phase=Phase.DONE, attempts=0, **values)
    jobs.lease_release(held.lease, held.token)
    useful = run.sessions_done > run.sessions_failed or values.get("written") or values.get("removed")
    if useful or run.rebuild:
        run.refresh_from_db()
        why = "" if worked else f" {standing_of(run.book, force=run.force).text}"
        kind, text = Notification.Kind.CONSOLIDATION_FINISHED, finished_text(run) + why
        notify(owner_id=run.owner_id, kind=kind, book=run.book.name, text=text)


def fail(held: ConsolidationClaim, error: DomainError, *, code: str = "") -> None:
    """End a run that can't go on; what is done stays done."""
    with transaction.atomic():
        mine = ConsolidationRun.objects.filter(pk=held.run.pk, state=State.RUNNING, phase=held.run.phase)
        _end(mine, State.FAILED, error={"code": code or error.code, "message": str(error)})
        jobs.lease_release(held.lease, held.token)


def cancel(run: ConsolidationRun, reason: str) -> bool:
    """Stop a run that is not over; what is done stays done. Returns True if this call stopped it."""
    return cancel_all(Q(pk=run.pk), reason) == 1


def cancel_all(which: Q, reason: str) -> int:
    """Stop all open runs of a scope, in the caller's transaction. Returns how many."""
    rows = ConsolidationRun.objects.filter(which, state__in=ConsolidationRun.OPEN)
    return _end(rows, State.CANCELLED, error={"code": "cancelled", "message": reason})


def recover() -> int:
    """Queue runs whose worker died, and due runs without a job. Of runs that nobody asked for only a few are let in at
    a time, so that reviews need not wait behind them. Returns how many were queued."""
    now = timezone.now()
    for run in ConsolidationRun.objects.filter(state=State.RUNNING)[:_BATCH]:
        if not jobs.lease_is_held(lease_name(run.book_id, run.phase)):
            mine = ConsolidationRun.objects.filter(pk=run.pk, state=State.RUNNING, phase=run.phase)
            mine.update(state=State.SCHEDULED, enqueued_at=None)
    due = ConsolidationRun.objects.filter(state__in=(State.SCHEDULED, State.PAUSED), not_before__lte=now)
    at_work = ConsolidationRun.objects.filter(state=State.RUNNING).count() + due.exclude(jobs.without_job(now)).count()
    slots = max(0, consolidation_settings().parallel_runs - at_work)
    lost = due.filter(jobs.without_job(now)).order_by("not_before")
    count = 0
    for run in [*lost.filter(rebuild=True)[:_BATCH], *lost.filter(rebuild=False)[:slots]]:
        with transaction.atomic():
            if jobs.mark_enqueued(due, run, now):
                enqueue(run.pk)
                count += 1
    return count


def _end(runs: "QuerySet[ConsolidationRun]", state: ConsolidationRun.State, **values: Any) -> int:
    """End runs, in the caller's transaction; sessions that were chosen and not read are as if they had not been. `runs`
    filters by what the runs must still be. Returns how many it was."""
    ids = list(runs.values_list("pk", flat=True))
    Extraction.objects.filter(run__in=ids, state=Extraction.State.QUEUED).update(state=Extraction.State.PASSED)
    return runs.update(state=state, finished_at=timezone.now(), **values)

"""Consolidation runs, write side: asked for, claimed, advanced, paused, ended. A claim is the lease of a book's phase;
every transaction that writes looks at it again (`hold`). Attempts are counted here, never by the queue.
Lock order: lease → run → book → extractions → state of the book → artifacts → owner."""

import os
import socket
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.utils import timezone
from django_q.tasks import async_task

from gateway.agents.configuration import consolidation_settings
from gateway.agents.model_choice import BackgroundModels, UpstreamUndecided
from gateway.agents.settings import ConsolidationSettings
from memories import leases
from memories.background import redis_calls
from memories.caller import UNLIMITED, KeyLimits
from memories.errors import Conflict, DomainError, NotFound
from memories.models import Book, Notification
from memories.outbox import notify
from prompts.consolidation import prompts_sha256
from reviews.consolidation.errors import RunCancelled
from reviews.consolidation.standing import standing_of
from reviews.models import ConsolidationRun, Extraction

State = ConsolidationRun.State
Phase = ConsolidationRun.Phase
Trigger = ConsolidationRun.Trigger
TASK = "reviews.consolidation.tasks.consolidation_execute"
MAX_ATTEMPTS = 5
LOST_AFTER = timedelta(seconds=60)
# After so long a run lets other jobs of the queue go first.
SLICE_SECONDS = 60.0
# The queue's own timeout is a backstop above a slice and the answer it may wait for.
BACKSTOP_SECONDS = 300
OFF = "Consolidation is off. An administrator turns it on with `memories.enabled`."
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


def lease_name(book_id: UUID, phase: str) -> str:
    """Return the name of the lease, of which there is one per book and phase."""
    return f"consolidation:{book_id}:{phase}"


@transaction.atomic
def consolidation_request(
    book: Book,
    *,
    trigger: ConsolidationRun.Trigger,
    actor: str = "system",
    force: bool = False,
    max_sessions: int | None = None,
) -> ConsolidationRun:
    """Schedule a run of the book, or return the one that is open already, woken if somebody asks and it rests.
    A run that was asked for knows no cool-down and goes to the queue at once; the others wait for the sweep, which lets
    a few at a time in. `force`: also when nothing changed. `max_sessions`: its share of what one start reads, None for
    all of it. Raises Conflict when consolidation is off, or no upstream may be given the book."""
    if not consolidation_settings().enabled:
        raise Conflict(OFF)
    if obstacle := BackgroundModels.now(book.name).obstacle(book.name):
        raise UpstreamUndecided(obstacle)
    asked = trigger == Trigger.REQUEST
    present = Book.objects.get(pk=book.pk)
    now = timezone.now()
    try:
        with transaction.atomic():
            run = ConsolidationRun.objects.create(
                owner_id=present.owner_id,
                book=present,
                trigger=trigger,
                actor=actor,
                rebuild=asked,
                force=force,
                max_sessions=max_sessions,
                book_epoch=present.epoch,
                prompts=prompts_sha256(),
                not_before=now,
                enqueued_at=now if asked else None,
            )
    except IntegrityError:
        return _join_open(present, asked=asked, force=force)
    if asked:
        enqueue(run.pk)
    return run


def enqueue(run_id: UUID) -> None:
    """Hand a run to the queue, as reviews.schedule does. A job that is lost or comes twice does no harm."""
    limits = consolidation_settings()
    timeout = int(SLICE_SECONDS + limits.request_seconds) + BACKSTOP_SECONDS
    options: dict[str, Any] = {"timeout": timeout, "ack_failure": True, "save": False}
    if settings.REDIS_URL:
        job = partial(async_task, TASK, str(run_id), q_options=options)
        transaction.on_commit(lambda: redis_calls.submit((TASK, run_id), job), robust=True)
    else:
        async_task(TASK, str(run_id), q_options=options)


def claim(run_id: UUID) -> ConsolidationClaim | None:
    """Take a run's present phase. None: somebody else holds it, it is not due, or it is over."""
    limits = consolidation_settings()
    now = timezone.now()
    run = ConsolidationRun.objects.filter(pk=run_id, state__in=ConsolidationRun.OPEN, not_before__lte=now).first()
    if run is None:
        return None
    with transaction.atomic():
        name = lease_name(run.book_id, run.phase)
        token = leases.take(name, holder=_holder(), seconds=limits.lease_seconds)
        if token is None:
            return None
        rows = ConsolidationRun.objects.filter(pk=run_id, state__in=ConsolidationRun.OPEN, phase=run.phase)
        if not rows.update(
            state=State.RUNNING, attempts=F("attempts") + 1, started_at=Coalesce(F("started_at"), now), error=None
        ):
            leases.release(name, token)
            return None
    run = ConsolidationRun.objects.select_related("book").get(pk=run_id)
    found = ConsolidationClaim(run=run, token=token, limits=limits)
    if not limits.enabled:
        cancel(run, OFF)
    elif run.book.epoch != run.book_epoch:
        cancel(run, "The book was cleared meanwhile.")
    elif obstacle := BackgroundModels.now(run.book.name).obstacle(run.book.name):
        cancel(run, obstacle)
    elif run.attempts > MAX_ATTEMPTS:
        fail(found, DomainError("The worker went away again and again."), code="worker_lost")
    else:
        return found
    leases.release(found.lease, token)
    return None


def hold(held: ConsolidationClaim) -> ConsolidationRun:
    """Lock lease, run and book for the rest of the transaction. Raises LeaseLost, or RunCancelled when the run was
    ended or the book was cleared."""
    leases.require(held.lease, held.token)
    run = ConsolidationRun.objects.select_for_update().get(pk=held.run.pk)
    if run.state != State.RUNNING or run.phase != held.run.phase:
        raise RunCancelled("The run was stopped.")
    book = Book.objects.select_for_update().get(pk=run.book_id)
    if book.epoch != run.book_epoch:
        raise RunCancelled("The book was cleared meanwhile.")
    return run


def heartbeat(held: ConsolidationClaim) -> bool:
    """Renew the lease. Return False if it is lost or the run was ended."""
    if not leases.extend(held.lease, held.token, seconds=held.limits.lease_seconds):
        return False
    return ConsolidationRun.objects.filter(pk=held.run.pk, state=State.RUNNING).exists()


@transaction.atomic
def advance(held: ConsolidationClaim) -> ConsolidationClaim | None:
    """Go from extraction to synthesis: the leases are exchanged in one step. Return None if the other lease is
    taken."""
    hold(held)
    following = lease_name(held.run.book_id, Phase.SYNTHESIS)
    token = leases.take(following, holder=_holder(), seconds=held.limits.lease_seconds)
    if token is None:
        return None
    ConsolidationRun.objects.filter(pk=held.run.pk).update(phase=Phase.SYNTHESIS, attempts=0)
    leases.release(held.lease, held.token)
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
        leases.release(held.lease, held.token)
        if until <= now:
            enqueue(held.run.pk)


def finish(held: ConsolidationClaim, **values: Any) -> None:
    """End a run that did its work, in the caller's transaction, with the lease held. The last statement notifies."""
    run = ConsolidationRun.objects.select_related("book").get(pk=held.run.pk)
    worked = bool(run.sessions_done or values.get("written") or values.get("removed"))
    _unqueue(run)
    ConsolidationRun.objects.filter(pk=run.pk).update(
        state=State.COMPLETED if worked else State.NOTHING_TO_DO,
        phase=Phase.DONE,
        finished_at=timezone.now(),
        attempts=0,
        **values,
    )
    leases.release(held.lease, held.token)
    if worked or run.rebuild:
        run.refresh_from_db()
        why = "" if worked else f" {standing_of(run.book, force=run.force).text}"
        text = finished_text(run) + why
        notify(
            owner_id=run.owner_id,
            kind=Notification.Kind.CONSOLIDATION_FINISHED,
            book=run.book.name,
            text=text,
        )


def fail(held: ConsolidationClaim, error: DomainError, *, code: str = "") -> None:
    """End a run that can't go on; what is done stays done."""
    with transaction.atomic():
        hold_run = ConsolidationRun.objects.filter(pk=held.run.pk, state=State.RUNNING, phase=held.run.phase)
        problem = {"code": code or error.code, "message": str(error)}
        if hold_run.update(state=State.FAILED, finished_at=timezone.now(), error=problem):
            _unqueue(held.run)
        leases.release(held.lease, held.token)


def cancel(run: ConsolidationRun, reason: str) -> bool:
    """Stop a run that is not over; what is done stays done. True when it was this call that did it."""
    return cancel_all(Q(pk=run.pk), reason) == 1


def cancel_all(which: Q, reason: str) -> int:
    """Stop all open runs of a scope, in the caller's transaction. Returns how many."""
    rows = ConsolidationRun.objects.filter(which, state__in=ConsolidationRun.OPEN)
    ids = list(rows.values_list("pk", flat=True))
    Extraction.objects.filter(run__in=ids, state=Extraction.State.QUEUED).update(state=Extraction.State.PASSED)
    return rows.update(
        state=State.CANCELLED, finished_at=timezone.now(), error={"code": "cancelled", "message": reason}
    )


def recover() -> int:
    """Runs whose worker died, and due ones without a job, go to the queue; of those that nobody asked for only so many
    at a time that reviews need not wait behind them. Returns how many."""
    now = timezone.now()
    for run in ConsolidationRun.objects.filter(state=State.RUNNING)[:_BATCH]:
        if not leases.is_held(lease_name(run.book_id, run.phase)):
            mine = ConsolidationRun.objects.filter(pk=run.pk, state=State.RUNNING, phase=run.phase)
            mine.update(state=State.SCHEDULED, enqueued_at=None)
    due = ConsolidationRun.objects.filter(state__in=(State.SCHEDULED, State.PAUSED), not_before__lte=now)
    without_job = Q(enqueued_at__isnull=True) | Q(enqueued_at__lt=now - LOST_AFTER)
    at_work = ConsolidationRun.objects.filter(state=State.RUNNING).count() + due.exclude(without_job).count()
    slots = max(0, consolidation_settings().parallel_runs - at_work)
    lost = due.filter(without_job).order_by("not_before")
    count = 0
    for run in [*lost.filter(rebuild=True)[:_BATCH], *lost.filter(rebuild=False)[:slots]]:
        with transaction.atomic():
            if due.filter(pk=run.pk, enqueued_at=run.enqueued_at).update(enqueued_at=now):
                enqueue(run.pk)
                count += 1
    return count


def run_get(owner_id: UUID, run_id: UUID | None, *, limits: KeyLimits = UNLIMITED) -> ConsolidationRun:
    """Return the owner's run, with its book. Raises NotFound."""
    rows = limits.filter(ConsolidationRun.objects.select_related("book").filter(owner_id=owner_id), book="book__name")
    found = rows.filter(pk=run_id).first() if run_id else None
    if found is None:
        raise NotFound("There is no such consolidation.")
    return found


def finished_text(run: ConsolidationRun) -> str:
    """Return the sentence of a finished run."""
    read = f"read {run.sessions_done} {'session' if run.sessions_done == 1 else 'sessions'}"
    count = len(run.written)
    if count:
        return f"Consolidation {read} and wrote {count} {'document' if count == 1 else 'documents'}."
    return f"Consolidation {read}; the documents stay as they are." if run.sessions_done else "Nothing new was found."


def _join_open(book: Book, *, asked: bool, force: bool) -> ConsolidationRun:
    rows = ConsolidationRun.objects.select_for_update(of=("self",)).select_related("book")
    found = rows.filter(book=book, state__in=ConsolidationRun.OPEN).first()
    if found is None:
        raise Conflict("Another consolidation of this book has just ended. Ask again.")
    if not asked:
        return found
    found.rebuild, found.force = True, found.force or force
    now = timezone.now()
    if found.state != State.RUNNING and (found.enqueued_at is None or found.not_before > now):
        _wake(found, now)
    found.save(update_fields=_WOKEN)
    return found


_WOKEN = (
    "rebuild",
    "force",
    "state",
    "attempts",
    "failures",
    "max_sessions",
    "selected",
    "error",
    "not_before",
    "enqueued_at",
)


def _wake(run: ConsolidationRun, now: datetime) -> None:
    """End the rest of a run that somebody asks for: it and its sessions are tried anew, as often as a new run would.
    What it has no share of as the run of a start, it may read now. The caller saves it."""
    Extraction.objects.filter(run=run, state=Extraction.State.QUEUED).update(not_before=now, attempts=0)
    if run.max_sessions is not None and run.phase == Phase.EXTRACTION:
        run.max_sessions, run.selected = None, False
    run.state, run.attempts, run.failures, run.error = State.SCHEDULED, 0, 0, None
    run.not_before = run.enqueued_at = now
    enqueue(run.pk)


def _unqueue(run: ConsolidationRun) -> None:
    """Sessions that were chosen and not read are as if they had not been."""
    Extraction.objects.filter(run=run, state=Extraction.State.QUEUED).update(state=Extraction.State.PASSED)


def _holder() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"

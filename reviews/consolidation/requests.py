"""Requesting a consolidation. A book has at most one open run, and a request while it is open joins it."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from gateway.agents.configuration import consolidation_settings
from gateway.agents.model_choice import BackgroundModels, UpstreamUndecided
from memories.errors import Conflict
from memories.models import Book
from memories.selectors import require_active_account
from prompts.consolidation import prompts_sha256
from reviews.consolidation.runs import CLEARED, OFF, cancel_all, enqueue
from reviews.models import ConsolidationRun, Extraction

State = ConsolidationRun.State
Trigger = ConsolidationRun.Trigger


@transaction.atomic
def consolidation_request(
    book: Book, *, trigger: Trigger, actor: str = "system", force: bool = False, max_sessions: int | None = None
) -> ConsolidationRun:
    """Schedule a run of the book, or return its open run, resumed if a person requests it and it is paused.

    A run with the trigger REQUEST ignores the cool-down and is enqueued at once; others wait for the sweep, which
    enqueues a few at a time. `force` writes the documents even if nothing changed. `max_sessions` is the run's share of
    the sessions that one start reads; None for all. Raises Conflict if consolidation is off or the account deactivated,
    UpstreamUndecided if no upstream may be given the book."""
    if not consolidation_settings().enabled:
        raise Conflict(OFF)
    require_active_account(Book.objects.filter(pk=book.pk))
    if obstacle := BackgroundModels.now(book.name).obstacle(book.name):
        raise UpstreamUndecided(obstacle)
    requested = trigger == Trigger.REQUEST
    book = Book.objects.get(pk=book.pk)
    now = timezone.now()
    try:
        with transaction.atomic():
            cancel_all(Q(book=book) & ~Q(book_epoch=book.epoch), CLEARED)  # it would end instead of serving a request
            run = ConsolidationRun.objects.create(
                owner_id=book.owner_id,
                book=book,
                trigger=trigger,
                actor=actor,
                rebuild=requested,
                force=force,
                max_sessions=max_sessions,
                book_epoch=book.epoch,
                prompts=prompts_sha256(),
                not_before=now,
                enqueued_at=now if requested else None,
            )
    except IntegrityError:
        return _join_open(book, requested=requested, force=force)
    if requested:
        enqueue(run.pk)
    return run


def _join_open(book: Book, *, requested: bool, force: bool) -> ConsolidationRun:
    rows = ConsolidationRun.objects.select_for_update(of=("self",)).select_related("book")
    run = rows.filter(book=book, state__in=ConsolidationRun.OPEN).first()
    if run is None:
        raise Conflict("Another consolidation of this book has just ended. Ask again.")
    if not requested:
        return run
    run.rebuild, run.force = True, run.force or force
    now = timezone.now()
    if run.state != State.RUNNING and (run.enqueued_at is None or run.not_before > now):
        _resume(run, now)
    run.save()
    return run


def _resume(run: ConsolidationRun, now: datetime) -> None:
    """Enqueue a paused or waiting run now, with fresh attempts and without the limit `max_sessions`. The caller saves
    it."""
    Extraction.objects.filter(run=run, state=Extraction.State.QUEUED).update(not_before=now, attempts=0)
    if run.max_sessions is not None and run.phase == ConsolidationRun.Phase.EXTRACTION:
        run.max_sessions, run.selected = None, False
    run.state, run.attempts, run.failures, run.error = State.SCHEDULED, 0, 0, None
    run.not_before = run.enqueued_at = now
    enqueue(run.pk)

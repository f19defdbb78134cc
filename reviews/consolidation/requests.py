"""Asking for a consolidation. A book has one open run at most: a request while it is open joins it. Lock order as in
reviews.consolidation.runs."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from gateway.agents.configuration import consolidation_settings
from gateway.agents.model_choice import BackgroundModels, UpstreamUndecided
from memories.errors import Conflict
from memories.models import Book
from prompts.consolidation import prompts_sha256
from reviews.consolidation.runs import OFF, enqueue
from reviews.models import ConsolidationRun, Extraction

State = ConsolidationRun.State
Trigger = ConsolidationRun.Trigger


@transaction.atomic
def consolidation_request(
    book: Book, *, trigger: Trigger, actor: str = "system", force: bool = False, max_sessions: int | None = None
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
    found.save()
    return found


def _wake(run: ConsolidationRun, now: datetime) -> None:
    """End the rest of a run that somebody asks for: it and its sessions are tried anew, as often as a new run would.
    What it has no share of as the run of a start, it may read now. The caller saves it."""
    Extraction.objects.filter(run=run, state=Extraction.State.QUEUED).update(not_before=now, attempts=0)
    if run.max_sessions is not None and run.phase == ConsolidationRun.Phase.EXTRACTION:
        run.max_sessions, run.selected = None, False
    run.state, run.attempts, run.failures, run.error = State.SCHEDULED, 0, 0, None
    run.not_before = run.enqueued_at = now
    enqueue(run.pk)

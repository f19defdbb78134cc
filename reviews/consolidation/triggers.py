"""Triggers of consolidation for books that are due: the start of a worker, and a schedule. The sweep also recovers runs
whose worker died, resumes paused runs, and purges notes that were cleared long ago."""

import math
from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from gateway.agents.configuration import consolidation_settings
from gateway.agents.settings import ConsolidationSettings
from gateway.jobs import Throttle
from memories.errors import Conflict
from reviews.consolidation.requests import Trigger, consolidation_request
from reviews.consolidation.runs import recover
from reviews.consolidation.selection import due_books, waiting_sessions
from reviews.forgetting import purge_cleared
from reviews.models import ConsolidationRun

MAX_BOOKS = 200
_throttle = Throttle()
_sessions_left: int | None = None  # that the current start may still read; None between starts


def consolidation_sweep() -> None:
    """Run one sweep. Idempotent and safe in several workers, since a book has at most one open run."""
    global _sessions_left
    recover()
    limits = consolidation_settings()
    trigger = _due_trigger(limits)
    if trigger is None:
        return
    purge_cleared(timezone.now() - timedelta(days=settings.UNDO_DAYS))
    if limits.enabled:
        left = limits.max_rollouts_per_startup if _sessions_left is None else _sessions_left
        books, sessions = start_due(trigger, limits, max_sessions=left)
        _sessions_left = left - sessions
        if books == MAX_BOOKS and _sessions_left:
            return  # there may be more books: the next sweep continues
    _sessions_left = None
    _throttle.check()


def start_due(
    trigger: ConsolidationRun.Trigger, limits: ConsolidationSettings, *, max_sessions: int
) -> tuple[int, int]:
    """Schedule runs for due books, which together read up to `max_sessions`. A book that gets no share of them waits.
    Returns the number of books, and of sessions that their runs may read."""
    books = due_books(limits, max_books=MAX_BOOKS)
    waiting = waiting_sessions(books, limits)
    wanted = [waiting.get((book.owner_id, book.name), 0) for book in books]
    count = sessions = 0
    for book, wants, share in zip(books, wanted, fair_shares(wanted, max_sessions), strict=True):
        if wants and not share:
            continue
        try:
            consolidation_request(book, trigger=trigger, max_sessions=share)
        except Conflict:
            continue  # another run of the book has just ended, or consolidation was turned off
        count += 1
        sessions += share
    return count, sessions


def fair_shares(wanted: Sequence[int], total: int) -> list[int]:
    """Divide `total` sessions fairly: each book gets one in turn, up to the number that it wants."""
    given = [0] * len(wanted)
    left = min(total, sum(wanted))
    while left:
        for place, number in enumerate(wanted):
            if left and given[place] < number:
                given[place] += 1
                left -= 1
    return given


def _due_trigger(limits: ConsolidationSettings) -> Trigger | None:
    passed = _throttle.elapsed()
    if math.isinf(passed):
        return Trigger.STARTUP
    return Trigger.SCHEDULE if limits.schedule_minutes and passed >= limits.schedule_minutes * 60 else None

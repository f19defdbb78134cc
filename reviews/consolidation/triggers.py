"""Triggers of consolidation: when a worker starts, and on a schedule, for each book that is due. The sweep also
recovers runs whose worker died, resumes paused runs, and purges notes that were cleared long ago."""

import math
from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from gateway.agents.configuration import consolidation_settings
from gateway.agents.settings import ConsolidationSettings
from gateway.jobs import Throttle
from memories.errors import Conflict
from reviews.consolidation.clear import purge_cleared
from reviews.consolidation.requests import Trigger, consolidation_request
from reviews.consolidation.runs import recover
from reviews.consolidation.selection import due_books, waiting_sessions
from reviews.models import ConsolidationRun

MOST_BOOKS = 200
_throttle = Throttle()
_left: int | None = None  # sessions that the look under way may still read, None when none is


def consolidation_sweep() -> None:
    """Run one sweep. It is idempotent and safe in several workers: a book has one open run at most."""
    global _left
    recover()
    limits = consolidation_settings()
    trigger = _time_to_look(limits)
    if trigger is None:
        return
    purge_cleared(timezone.now() - timedelta(days=settings.UNDO_DAYS))
    if limits.enabled:
        most = limits.max_rollouts_per_startup if _left is None else _left
        books, sessions = start_due(trigger, limits, most_sessions=most)
        _left = most - sessions
        if books == MOST_BOOKS and _left:
            return  # there may be more: the next sweep looks on
    _left = None
    _throttle.check()


def start_due(
    trigger: ConsolidationRun.Trigger, limits: ConsolidationSettings, *, most_sessions: int
) -> tuple[int, int]:
    """Schedule a run for each due book, for `most_sessions` together. A book that gets no share of them waits. Returns
    how many books it was, and how many sessions these runs may read."""
    now = timezone.now()
    books = due_books(limits, now, most=MOST_BOOKS)
    waiting = waiting_sessions(books, limits, now)
    wanted = [waiting.get((book.owner_id, book.name), 0) for book in books]
    count = sessions = 0
    for book, wants, share in zip(books, wanted, shares(wanted, most_sessions), strict=True):
        if wants and not share:
            continue
        try:
            consolidation_request(book, trigger=trigger, max_sessions=share)
        except Conflict:
            continue  # one ended this very moment, or it was turned off
        count += 1
        sessions += share
    return count, sessions


def shares(wanted: Sequence[int], most: int) -> list[int]:
    """Divide `most` fairly: each book gets one session in turn until nothing is left or no book has more sessions."""
    given = [0] * len(wanted)
    left = min(most, sum(wanted))
    while left:
        for place, number in enumerate(wanted):
            if left and given[place] < number:
                given[place] += 1
                left -= 1
    return given


def _time_to_look(limits: ConsolidationSettings) -> Trigger | None:
    passed = _throttle.elapsed()
    if math.isinf(passed):
        return Trigger.STARTUP
    return Trigger.SCHEDULE if limits.schedule_minutes and passed >= limits.schedule_minutes * 60 else None

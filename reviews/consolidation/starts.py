"""When consolidation starts by itself: as a worker starts, and on a schedule, for each book that is due. And what a
worker looks after: runs whose worker died, pauses that are over, notes that were cleared long ago."""

import time
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from gateway.agents.configuration import memory_settings
from gateway.agents.settings import MemorySettings
from memories.errors import Conflict
from reviews.consolidation.clearing import purge_cleared
from reviews.consolidation.runs import Trigger, consolidation_request, recover
from reviews.consolidation.selection import due_books
from reviews.models import ConsolidationRun

MOST_BOOKS = 200
_looked_at: float | None = None  # when this process last looked for due books, in time.monotonic()


def consolidation_sweep() -> None:
    """One sweep. Idempotent; safe in several workers: a book has one open run at most."""
    global _looked_at
    recover()
    limits = memory_settings()
    trigger = _time_to_look(limits)
    if trigger is None:
        return
    purge_cleared(timezone.now() - timedelta(days=settings.UNDO_DAYS))
    if limits.enabled and start_due(trigger, limits) == MOST_BOOKS:
        return  # there may be more: the next sweep looks on
    _looked_at = time.monotonic()


def start_due(trigger: ConsolidationRun.Trigger, limits: MemorySettings) -> int:
    """Schedule a run for each book that is due. Returns how many books."""
    count = 0
    for book in due_books(limits, timezone.now(), most=MOST_BOOKS):
        try:
            consolidation_request(book, trigger=trigger)
        except Conflict:
            continue  # one ended this very moment, or it was turned off
        count += 1
    return count


def _time_to_look(limits: MemorySettings) -> ConsolidationRun.Trigger | None:
    if _looked_at is None:
        return Trigger.STARTUP
    passed = time.monotonic() - _looked_at
    return Trigger.SCHEDULE if limits.schedule_minutes and passed >= limits.schedule_minutes * 60 else None

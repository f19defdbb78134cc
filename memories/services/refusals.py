"""How often the scan refused a write, kept by day and rule. A refusal rolls its transaction back, so it is counted in
the process first and stored when that transaction is over; a writing without a refusal costs no statement."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models import F

from memories import counters
from memories.models import ScanDay

logger = logging.getLogger("daybook.memories")
KEPT = timedelta(days=366)


@contextmanager
def refusals_stored() -> Iterator[None]:
    """Store the refusals of the block after its transaction, also if that is rolled back. Within a larger transaction
    they wait for its commit; if that is rolled back too (a preview), they are stored with the next ones. A process that
    is killed loses what it had not stored."""
    before = counters.scan_blocks.total()
    try:
        yield
    finally:
        if counters.scan_blocks.total() != before:
            transaction.on_commit(_store, robust=True)


def scan_days_purge(now: datetime) -> None:
    """Delete the days that are older than a year."""
    ScanDay.objects.filter(day__lt=(now - KEPT).date()).delete()


def _store() -> None:
    """Add what this process counted to the days' rows: other processes add to the same ones."""
    taken = counters.unstored_take()
    try:
        for refusal in sorted(taken):
            day, rule, kind = refusal
            row = ScanDay.objects.filter(day=day, rule=rule)
            if not row.update(number=F("number") + taken[refusal]):
                ScanDay.objects.get_or_create(day=day, rule=rule, defaults={"kind": kind})
                row.update(number=F("number") + taken[refusal])
            taken[refusal] = 0
    except DatabaseError:
        logger.warning("Refusals of the scan could not be stored; the next one tries again.", exc_info=True)
    finally:
        counters.unstored_give_back(+taken)

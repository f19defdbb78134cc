"""Daily counts of the writes that the scan refused, by rule. A refusal rolls its transaction back, so it is counted in
memory first and stored after the transaction. A write without refusals costs no statement."""

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
RETENTION = timedelta(days=366)


@contextmanager
def refusals_stored() -> Iterator[None]:
    """Store the refusals of the block after its transaction, even if that is rolled back. Within an outer transaction
    they are stored on its commit; if that is rolled back too (a preview), they are stored with the next ones. They are
    lost if the process is killed before."""
    before = counters.scan_blocks.total()
    try:
        yield
    finally:
        if counters.scan_blocks.total() != before:
            transaction.on_commit(_store, robust=True)


def scan_days_purge(now: datetime) -> None:
    """Delete counts that are older than a year."""
    ScanDay.objects.filter(day__lt=(now - RETENTION).date()).delete()


def _store() -> None:
    """Add the counts of this process to the rows, which other processes update as well."""
    refusals = counters.unstored_take()
    try:
        for refusal in sorted(refusals):
            day, rule, kind = refusal
            row = ScanDay.objects.filter(day=day, rule=rule)
            if not row.update(number=F("number") + refusals[refusal]):
                ScanDay.objects.get_or_create(day=day, rule=rule, defaults={"kind": kind})
                row.update(number=F("number") + refusals[refusal])
            refusals[refusal] = 0
    except DatabaseError:
        logger.warning("Counts of refused writes could not be stored; the next refusal tries again.", exc_info=True)
    finally:
        counters.unstored_give_back(+refusals)

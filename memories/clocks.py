"""Conditions on leases and timestamps in rows that tolerate a clock which was ahead when they were written.

Otherwise a lease taken while the clock was an hour ahead would be held for an hour after the clock was corrected. A
lease normally ends at most one lease from now, so one that ends later than twice that, plus the difference allowed
between the clocks of servers, counts as over. The leases of runs and reviews, whose loss would stop a turn or repeat a
review, are shortened instead (gateway.runs.leases, reviews.services)."""

from datetime import datetime, timedelta

from django.db.models import Q

CLOCK_SKEW = timedelta(minutes=1)  # maximum difference between the clocks of servers


def lease_over(field: str, now: datetime, *, lease: timedelta) -> Q:
    """Return the condition for rows whose lease has expired; `field` is the end, `lease` the duration."""
    return Q(**{f"{field}__lte": now}) | Q(**{f"{field}__gt": _latest(now, lease)})


def long_ago(field: str, now: datetime, *, age: timedelta) -> Q:
    """Return the condition for rows whose timestamp `field` is at least `age` ago."""
    return Q(**{f"{field}__lte": now - age}) | Q(**{f"{field}__gt": _latest(now, age) - age})


def _latest(now: datetime, lease: timedelta) -> datetime:
    return now + 2 * lease + CLOCK_SKEW

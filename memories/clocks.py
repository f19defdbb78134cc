"""Leases and stamps in rows, read so that a clock which was ahead when they were written holds nobody up.

Without this a lease that was taken an hour ahead would be held for an hour after the clock was set right. A live holder
renews its lease before it ends, so that none can honestly end later than one lease from now; twice that, and what the
clocks of several servers may differ, is left as a margin."""

from datetime import datetime, timedelta

from django.db.models import Q

CLOCKS_DIFFER = timedelta(minutes=1)  # those of several servers, at most


def lease_over(field: str, now: datetime, *, lease: timedelta) -> Q:
    """Return the condition for rows whose lease, which ends at `field`, has run out."""
    return Q(**{f"{field}__lte": now}) | Q(**{f"{field}__gt": _latest(now, lease)})


def is_over(end: datetime, now: datetime, *, lease: timedelta) -> bool:
    """Return True if a lease that ends at `end` has run out."""
    return not now < end <= _latest(now, lease)


def long_ago(field: str, now: datetime, *, age: timedelta) -> Q:
    """Return the condition for rows that were stamped at `field` at least `age` ago."""
    return Q(**{f"{field}__lte": now - age}) | Q(**{f"{field}__gt": _latest(now, age) - age})


def _latest(now: datetime, lease: timedelta) -> datetime:
    return now + 2 * lease + CLOCKS_DIFFER

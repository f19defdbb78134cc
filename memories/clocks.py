"""Conditions on leases and timestamps in rows that tolerate a clock which was ahead when they were written.

Otherwise a lease taken while the clock was an hour ahead would be held for an hour after the clock was corrected. A
lease normally ends at most one lease from now, so one that ends later than twice that, plus the difference allowed
between the clocks of servers, counts as over. The leases of runs and reviews, whose loss would stop a turn or repeat a
review, are shortened instead (gateway.runs.leases, reviews.services), and survive a clock that is set forward
(`since_set_forward`)."""

import math
from datetime import datetime, timedelta
from time import monotonic, time

from django.db.models import Q

CLOCK_SKEW = timedelta(minutes=1)  # maximum difference between the clocks of servers
_STEP_SECONDS = 10.0  # a smaller step makes no lease look expired
_LONGEST_LEASE = timedelta(days=1)
_difference = time() - monotonic()
_set_forward_at = -math.inf


def lease_over(field: str, now: datetime, *, lease: timedelta) -> Q:
    """Return the condition for rows whose lease has expired; `field` is the end, `lease` the duration."""
    return Q(**{f"{field}__lte": now}) | Q(**{f"{field}__gt": _latest(now, lease)})


def long_ago(field: str, now: datetime, *, age: timedelta) -> Q:
    """Return the condition for rows whose timestamp `field` is at least `age` ago."""
    return Q(**{f"{field}__lte": now - age}) | Q(**{f"{field}__gt": _latest(now, age) - age})


def long_since(at: datetime, now: datetime, *, age: timedelta) -> bool:
    """Return True if a timestamp that was read is at least `age` ago."""
    return at <= now - age or at > _latest(now, age) - age


def since_set_forward() -> timedelta:
    """Return the time since the clock was set forward or the machine was suspended, at most a day. Until a lease has
    lasted that long, it may look expired without being so. Each call compares the clock with the monotonic one; the
    step counts from the call that notices it."""
    global _difference, _set_forward_at
    now = monotonic()
    before, _difference = _difference, time() - now
    if _difference - before > _STEP_SECONDS:
        _set_forward_at = now
    return timedelta(seconds=min(now - _set_forward_at, _LONGEST_LEASE.total_seconds()))


def _latest(now: datetime, lease: timedelta) -> datetime:
    return now + 2 * lease + CLOCK_SKEW

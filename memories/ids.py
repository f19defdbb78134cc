"""Identifiers: UUIDv7, so that rows sort by creation and indexes grow at their end."""

from datetime import datetime, timedelta
from uuid import UUID

from uuid_utils import compat

_TIME_SHIFT = 80  # bits to the right of the timestamp in milliseconds


def uuid7() -> UUID:
    """Return a new time-ordered UUID (RFC 9562, version 7)."""
    return compat.uuid7()


def uuid7_after(moment: datetime) -> UUID:
    """Return a new UUIDv7 that sorts after all ids from before `moment`, even if the clock was set back since or
    another server's clock is ahead."""
    new, minimum = uuid7(), int(moment.timestamp() * 1000)
    behind = minimum - (new.int >> _TIME_SHIFT)
    return UUID(int=new.int + ((behind + 1) << _TIME_SHIFT)) if behind > 0 else new


def parse_uuid(value: object) -> UUID | None:
    """Return the UUID that a client sent, or None if it is not one; callers treat that like an unknown id."""
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError:
        return None


def first_id(moment: datetime) -> UUID:
    """Return the smallest UUIDv7 of a millisecond. Rows created at that time or later have a greater or equal key, so
    the primary key finds them without another index."""
    return UUID(int=(int(moment.timestamp() * 1000) << _TIME_SHIFT) | (7 << 76) | (2 << 62))


def recent_ids(now: datetime, period: timedelta) -> tuple[UUID, UUID]:
    """Return the first and last id of the last period, for `pk__range`, without rows from a clock that was ahead."""
    return first_id(now - period), first_id(now + period)

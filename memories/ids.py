"""Identifiers: UUIDv7, so that rows sort by creation and indexes grow at their end."""

from datetime import datetime, timedelta
from uuid import UUID

from uuid_utils import compat

_TIME_AT = 80  # the place of the milliseconds
_SET_BACK = timedelta(days=1)


def uuid7() -> UUID:
    """Return a new time-ordered UUID (RFC 9562, version 7)."""
    return compat.uuid7()


def uuid7_after(moment: datetime) -> UUID:
    """Return a new UUIDv7 that sorts after those of earlier milliseconds than `moment`, also if the clock was set back
    since, or another server's is ahead; by a day at most."""
    new, least = uuid7(), int(moment.timestamp() * 1000)
    behind = least - (new.int >> _TIME_AT)
    if not 0 < behind <= _SET_BACK.total_seconds() * 1000:
        return new
    return UUID(int=new.int + ((behind + 1) << _TIME_AT))


def parse_uuid(value: object) -> UUID | None:
    """Return the UUID a client wrote, or None: an id that cannot exist is answered like one that does not."""
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError:
        return None


def first_id(moment: datetime) -> UUID:
    """Return the smallest UUIDv7 of that millisecond. Rows with a greater or equal key were made at that time or
    later, so the primary key finds them without another index."""
    return UUID(int=(int(moment.timestamp() * 1000) << _TIME_AT) | (7 << 76) | (2 << 62))

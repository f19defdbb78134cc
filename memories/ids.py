"""Identifiers: UUIDv7, so that rows sort by creation and indexes grow at their end."""

from datetime import datetime
from uuid import UUID

from uuid_utils import compat


def uuid7() -> UUID:
    """Return a new time-ordered UUID (RFC 9562, version 7)."""
    return compat.uuid7()


def parse_uuid(value: object) -> UUID | None:
    """Return the UUID a client wrote, or None: an id that cannot exist is answered like one that does not."""
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError:
        return None


def first_id(moment: datetime) -> UUID:
    """Return the smallest UUIDv7 of that millisecond. Rows with a greater or equal key were made at that time or
    later, so the primary key finds them without another index."""
    return UUID(int=(int(moment.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62))

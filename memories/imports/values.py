"""Values of foreign JSON, read so that nothing in them is relied on: what has another type than it should have counts
as missing."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
_LATEST_SECONDS = 10_000_000_000


def text_of(value: Any) -> str:
    """Return a value if it is text, else an empty one."""
    return value if isinstance(value, str) else ""


def object_of(value: Any) -> dict[str, Any]:
    """Return a value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; none of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts_of(value: Any) -> list[str]:
    """Return the texts of a list; none of anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def moment(value: Any) -> datetime | None:
    """Return a time from ISO 8601 or from seconds, milliseconds, microseconds or nanoseconds since 1970; None for what
    is no time, and for times before 1990 or in the future. A time without a zone is taken for UTC."""
    found = _from_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else _from_text(value)
    if found is None or not _EARLIEST <= found <= timezone.now() + timedelta(days=1):
        return None
    return min(found, timezone.now())


def future(value: Any) -> datetime | None:
    """Return a time of ISO 8601, also one to come; None for anything else."""
    return _from_text(value)


def _from_number(value: float) -> datetime | None:
    if not math.isfinite(value) or value < 0 or value > _LATEST_SECONDS * 10**9:
        return None
    seconds = float(value)
    while seconds > _LATEST_SECONDS:
        seconds /= 1_000
    return datetime.fromtimestamp(seconds, UTC)


def _from_text(value: Any) -> datetime | None:
    try:
        found = parse_datetime(value) if isinstance(value, str) else None
        if found is None:
            return None
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None

"""When a review that failed is tried again."""

import math
from datetime import UTC
from email.utils import parsedate_to_datetime

from django.conf import settings
from django.utils import timezone

from gateway.errors import UpstreamSilent
from memories.errors import DomainError, RateLimited, UpstreamError
from reviews.undo import review_undo as review_undo  # one door for the edges

# Seconds before the second, third and further attempts; a server that says how long it wants to rest is heard.
RETRY_SECONDS = (5.0, 30.0, 120.0)
_MAX_RETRY_AFTER = 3600.0


def retry_delay(error: DomainError, attempts: int) -> float | None:
    """Seconds until the next attempt, or None for a fault that will not pass or when the attempts are used up."""
    status = error.details.get("status")
    passing = isinstance(error, RateLimited | UpstreamSilent) or (
        isinstance(error, UpstreamError) and (status is None or int(status) >= 500)
    )
    if not passing or attempts >= settings.REVIEW_ATTEMPTS:
        return None
    delay = RETRY_SECONDS[min(attempts, len(RETRY_SECONDS)) - 1]
    return min(max(delay, _retry_after(str(error.details.get("retry_after", "")))), _MAX_RETRY_AFTER)


def _retry_after(header: str) -> float:
    """Seconds of a Retry-After header, which is a number or a date; 0 when it is neither."""
    try:
        seconds = float(header)
    except ValueError:
        return _seconds_until(header)
    return seconds if math.isfinite(seconds) else 0.0


def _seconds_until(date: str) -> float:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - timezone.now().timestamp()

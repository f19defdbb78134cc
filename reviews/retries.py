"""When a review that failed is tried again."""

from django.conf import settings

from gateway.errors import UpstreamSilent
from gateway.upstream import retry_after_seconds
from memories.errors import DomainError, RateLimited, UpstreamError
from reviews.undo import review_undo as review_undo  # exported for the edges

# Seconds before the second, third and further attempts; a pause that the server asks for is respected.
RETRY_SECONDS = (5.0, 30.0, 120.0)


def retry_delay(error: DomainError, attempts: int) -> float | None:
    """Seconds until the next attempt, or None for a fault that will not pass or when the attempts are used up."""
    status = error.details.get("status")
    passing = isinstance(error, RateLimited | UpstreamSilent) or (
        isinstance(error, UpstreamError) and (status is None or int(status) >= 500)
    )
    if not passing or attempts >= settings.REVIEW_ATTEMPTS:
        return None
    delay = RETRY_SECONDS[min(attempts, len(RETRY_SECONDS)) - 1]
    return max(delay, retry_after_seconds(error))

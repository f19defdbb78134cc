"""The reviews' own refusals; the tree and the codes are in memories.errors."""

from memories.errors import DomainError


class WorkBroke(DomainError):
    """Something in a review or a consolidation itself went wrong; the log says what."""

    code, http_type, http_status = "internal_error", "api_error", 500

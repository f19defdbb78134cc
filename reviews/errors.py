"""The reviews' own refusals; the tree and the codes are in memories.errors."""

from typing import ClassVar

from memories.errors import DomainError


class ReviewBroke(DomainError):
    """An unexpected error of the review; the log has the details."""

    code: ClassVar[str] = "internal_error"
    http_type: ClassVar[str] = "api_error"
    http_status: ClassVar[int] = 500

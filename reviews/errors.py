"""The reviews' own refusals; the tree and the codes are in memories.errors."""

from memories.errors import DomainError


class NeedsTools(DomainError):
    """The model of a review takes no tools, and wrote nothing that could be read in their place."""

    code, http_type, http_status = "model_without_tools", "api_error", 502


class WorkBroke(DomainError):
    """Something in a review or a consolidation itself went wrong; the log says what."""

    code, http_type, http_status = "internal_error", "api_error", 500

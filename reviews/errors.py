"""Errors of reviews and consolidation. The class hierarchy and the codes are in memories.errors."""

from memories.errors import DomainError


class NeedsTools(DomainError):
    """The review's model does not support tools, and its answer contained no JSON to read instead."""

    code, http_type, http_status = "model_without_tools", "api_error", 502


class AnswerCutOff(DomainError):
    """The review's model reached the limit of its answer before it called a tool or said that there is nothing to
    save."""

    code, http_type, http_status = "answer_cut_off", "api_error", 502


class InternalError(DomainError):
    """An unexpected exception in a review or a consolidation; the log has the traceback."""

    code, http_type, http_status = "internal_error", "api_error", 500

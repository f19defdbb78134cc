"""Errors of reviews and consolidation, besides those of the upstream. The codes are explained in memories.errors."""

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


class AnswerUnusable(DomainError):
    """The model's answer does not have the requested form or must not be stored. A retry may succeed."""

    code, http_type, http_status = "unusable_answer", "api_error", 502


class SourcesChanged(AnswerUnusable):
    """The sources of a synthesis changed during the model call; it must be repeated, so that a person's edit wins."""


class RetryLater(DomainError):
    """Sessions could not be read and will be retried after a pause. The message is that of the first one."""

    code, http_type, http_status = "tried_again", "api_error", 502


class RunOutOfQuota(DomainError):
    """The run was paused or ended because a quota of the run or of the owner's day is used up."""

    code, http_type, http_status = "ceiling_reached", "rate_limit_error", 429


class RunCancelled(Exception):
    """The book was cleared or the session deleted: the review or the consolidation must not write anything more."""


class QuotaExceeded(Exception):
    """A quota of requests or tokens is used up; `scope` is "run" or "day"."""

    def __init__(self, scope: str) -> None:
        super().__init__(scope)
        self.scope = scope

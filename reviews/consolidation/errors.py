"""What can stop a part of a consolidation, beside the upstream's errors."""

from memories.errors import DomainError


class AnswerUnusable(DomainError):
    """The model's answer is not what was asked for, or must not be stored. Asked again, it may be."""

    code, http_type, http_status = "unusable_answer", "api_error", 502


class TriedAgain(DomainError):
    """Sessions could not be read, and are tried again after a pause; the message is the first one's."""

    code, http_type, http_status = "tried_again", "api_error", 502


class RunCancelled(Exception):
    """The book was cleared, or somebody stopped the run: nothing more of it may be written."""


class QuotaExceeded(Exception):
    """A quota of requests or tokens is used up; `scope` is "run" or "day"."""

    def __init__(self, scope: str) -> None:
        super().__init__(scope)
        self.scope = scope


class Stale(Exception):
    """What a synthesis had read was changed meanwhile (a person's edit wins): it must be done again."""

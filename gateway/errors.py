"""The gateway's own errors. The base classes and the codes are in memories.errors."""

import logging
from collections.abc import Mapping
from typing import Any

from memories.database.access import overloaded, vanished
from memories.errors import (
    Conflict,
    DomainError,
    Forbidden,
    InvalidRequest,
    NotFound,
    Overloaded,
    RateLimited,
    TooLarge,
    Unauthorized,
    UpstreamError,
    UpstreamTimeout,
)

logger = logging.getLogger("daybook.api")
GONE = "This was deleted in the meantime, or something that it belongs to."


class InternalError(DomainError):
    """An unexpected error, which is in the log."""

    code, http_type, http_status = "internal_error", "api_error", 500

    def __init__(self) -> None:
        super().__init__("Something went wrong in the gateway. The x-request-id of this answer names it in the log.")


class SessionBusy(Conflict):
    """Another run of this session is open; details name it."""


class SessionEnded(Conflict):
    """The session was ended; a new one is needed."""


class RunSuperseded(Conflict):
    """Another process took over the run's lease. The run's text is kept, but it is not the answer of the turn."""


class RunStopped(Conflict):
    """The run was stopped. Its text so far is kept. details: run_id."""


class Restarting(Overloaded):
    """This process is shutting down, usually for a restart. details: retry_after (seconds)."""


class RequestRefused(InvalidRequest):
    """The upstream refused a request because of its content. The error has the upstream's code, param and message, the
    latter without keys and addresses. details: status."""

    def __init__(
        self,
        message: str,
        *,
        upstream_code: str = "",
        param: str | None = None,
        server_message: str = "",
        **details: Any,
    ) -> None:
        super().__init__(message, param=param, **details)
        self.upstream_code, self.server_message = upstream_code, server_message

    def as_json(self) -> dict[str, Any]:
        answer = super().as_json()
        answer["error"]["code"] = self.upstream_code or self.code
        return answer


class ToolsRefused(RequestRefused):
    """The upstream's model does not support tools, or its server was started without support for them."""


class PreviousResponseNotFound(InvalidRequest):
    """The target of `previous_response_id` or of an `item_reference` does not exist or was not stored."""

    code = "previous_response_not_found"


class TooManySteps(UpstreamError):
    """The model called tools in every step and never answered. details: reason, steps."""


class UpstreamRefused(UpstreamError):
    """The upstream answered with an error status; details: status."""


class UpstreamUnreachable(UpstreamError):
    """The connection to the upstream could not be made, or was lost."""


class UpstreamSilent(UpstreamTimeout):
    """The upstream was silent for too long."""


_WITH_OWN_CODE: dict[str, type[DomainError]] = {
    kind.code: kind
    for kind in (
        Unauthorized,
        Forbidden,
        NotFound,
        Conflict,
        TooLarge,
        RateLimited,
        UpstreamError,
        Overloaded,
        UpstreamTimeout,
    )
}


def run_failure(stored: Mapping[str, Any]) -> DomainError:
    """Return the error that a run failed with, from the JSON stored with the run. A code that is not ours is that of an
    upstream that refused the request."""
    code, param, details = str(stored.get("code", "")), stored.get("param"), stored.get("details") or {}
    message = str(stored.get("message") or "The model server gave no answer.")
    if code == InternalError.code:
        return InternalError()
    if kind := _WITH_OWN_CODE.get(code or UpstreamError.code):
        return kind(message, param=param, **details)
    return RequestRefused(message, upstream_code=code, param=param, **details)


def public_error(error: Exception, *, what: str = "a request") -> DomainError:
    """Return the error to show to a caller: a DomainError itself, Overloaded if the database is busy, NotFound if a row
    was deleted after it was looked up, and InternalError for anything else. The last two are logged with their stack.
    `what` names the failed operation in the log."""
    if isinstance(error, DomainError):
        return error
    if busy := overloaded(error):
        logger.warning("the database refused %s: %s", what, busy)
        return busy
    if vanished(error):
        logger.warning("%s failed: what it needs was deleted in the meantime", what, exc_info=error)
        return NotFound(GONE)
    logger.error("%s failed", what, exc_info=error)
    return InternalError()

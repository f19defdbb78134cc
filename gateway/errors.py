"""The gateway's own refusals; the tree and the codes are in memories.errors."""

import logging
from typing import Any

from memories.database.access import overloaded
from memories.errors import Conflict, DomainError, InvalidRequest, Overloaded, UpstreamError, UpstreamTimeout

logger = logging.getLogger("daybook.api")


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
    """Another process took over the run's lease. What it said is kept, but it is not the answer of the turn."""


class RunStopped(Conflict):
    """The run was stopped. What it said is kept. details: run_id."""


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
    """The upstream's model takes no tools, or its server was not started to take any."""


class PreviousResponseNotFound(InvalidRequest):
    """The target of `previous_response_id` or of an `item_reference` does not exist or was not stored."""

    code = "previous_response_not_found"


class TooManySteps(UpstreamError):
    """The model called tools in every step and never answered. details: reason, steps."""


class UpstreamRefused(UpstreamError):
    """The upstream answered with an error status; details: status."""


class UpstreamUnreachable(UpstreamError):
    """There was no connection to the upstream, or it broke off."""


class UpstreamSilent(UpstreamTimeout):
    """The upstream was silent for too long."""


def as_told(error: Exception, *, what: str = "a request") -> DomainError:
    """Return what a caller is told of an error: an expected one as it is, Overloaded if the database is busy, and
    InternalError for anything else, which is logged. `what` failed is named in the log."""
    if isinstance(error, DomainError):
        return error
    if busy := overloaded(error):
        logger.warning("the database refused %s: %s", what, busy)
        return busy
    logger.error("%s failed", what, exc_info=error)
    return InternalError()

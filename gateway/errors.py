"""The gateway's own refusals; the tree and the codes are in memories.errors."""

from typing import Any

from memories.errors import Conflict, InvalidRequest, Overloaded, UpstreamError, UpstreamTimeout


class SessionBusy(Conflict):
    """Another run of this session is open; details name it."""


class SessionEnded(Conflict):
    """The session was ended; a new one is needed."""


class RunSuperseded(Conflict):
    """The run's lease went to somebody else; what it said is kept, but it is not the turn's answer."""


class RunStopped(Conflict):
    """The run was stopped while it was answered; what it said is kept. details: run_id."""


class Restarting(Overloaded):
    """This process is being stopped, usually to be started again. details: retry_after (seconds)."""


class RequestRefused(InvalidRequest):
    """The upstream refused a request for a reason that is the client's business: it keeps the upstream's code and
    param. `said` are its own words, without key and address. details: status."""

    def __init__(
        self, message: str, *, upstream_code: str = "", param: str | None = None, said: str = "", **details: Any
    ) -> None:
        super().__init__(message, param=param, **details)
        self.upstream_code, self.said = upstream_code, said

    def as_json(self) -> dict[str, Any]:
        answer = super().as_json()
        answer["error"]["code"] = self.upstream_code or self.code
        return answer


class PreviousResponseNotFound(InvalidRequest):
    """What `previous_response_id` or an `item_reference` names is not there, or was not stored."""

    code = "previous_response_not_found"


class TooManySteps(UpstreamError):
    """The model went on calling tools and never answered. details: reason, steps."""


class UpstreamRefused(UpstreamError):
    """The upstream answered with an error status; details: status."""


class UpstreamUnreachable(UpstreamError):
    """No connection to the upstream, or it broke off."""


class UpstreamSilent(UpstreamTimeout):
    """The upstream said nothing for too long."""

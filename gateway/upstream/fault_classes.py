"""Classes of faults of model servers: which are safe to repeat, which another server may not have, and which show that
a server is ill. gateway.upstream.attempts acts on them."""

from dataclasses import dataclass

import aiohttp
import httpx2

from gateway.errors import RequestRefused, ToolsRefused, UpstreamRefused, UpstreamUnreachable
from gateway.upstream.faults import certificate_fault, speaks_no_tls
from memories.errors import DomainError, InvalidRequest, Overloaded, RateLimited, UpstreamTimeout

_CONTEXT = "context_length_exceeded"
BOTCHED_CALL = "tool_use_failed"
"""Groq's code where it could not parse a call of the model."""
_PASSING = frozenset({408, 409, 425})
_LOCKED = frozenset({401, 402, 403, 404, 429})  # 429 if no credit is left


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultClass:
    """A class of faults. `repeats`: how often the same request may be sent again to the same model. `elsewhere`:
    whether another model may answer it. `counts`: whether the circuit breaker counts it. `rests`: for how many seconds
    the model is left alone if another one can answer. `told`: the server answered with an error."""

    name: str
    repeats: int = 0
    elsewhere: bool = True
    counts: bool = False
    rests: float = 0.0
    told: bool = True


RATE = FaultClass(name="rate", repeats=2, counts=True)
OVERLOAD = FaultClass(name="overload", repeats=2, counts=True)
NETWORK = FaultClass(name="network", repeats=2, counts=True)
CONNECT = FaultClass(name="connect", repeats=2, counts=True)
SILENCE = FaultClass(name="silence", repeats=1, counts=True)
LOCKED = FaultClass(name="locked", counts=True, rests=60.0)  # key, money, a model that is not there
CERTIFICATE = FaultClass(name="certificate", counts=True, rests=60.0)  # no repetition mends it
UNKNOWN = FaultClass(name="unknown", told=False)  # an upstream that is not configured, a status that says nothing
CONTEXT = FaultClass(name="context")  # another model may accept a longer request
TOOLS = FaultClass(name="tools")  # another model may take tools
QUEUE = FaultClass(name="queue", told=False)  # our own limit of requests at once
CALL = FaultClass(name="call", repeats=1, elsewhere=False)
REFUSAL = FaultClass(name="refusal", elsewhere=False)  # errors of the client, also a content filter
FINAL = FaultClass(name="final", elsewhere=False, told=False)


def fault_class(error: DomainError) -> FaultClass:
    """Return the class of an error of an upstream or of the connection to it."""
    match error:
        case RateLimited():
            return RATE
        case UpstreamTimeout():
            return CONNECT if error.details.get("limit") == "connect" else SILENCE
        case UpstreamUnreachable() if certificate_fault(error) or speaks_no_tls(error):
            return CERTIFICATE
        case UpstreamUnreachable():
            return CONNECT if _never_connected(error) else NETWORK
        case UpstreamRefused():
            return _of_status(int(error.details.get("status", 0)))
        case ToolsRefused():
            return TOOLS
        case RequestRefused():
            return _of_refusal(error)
        case InvalidRequest():
            return UNKNOWN
        case Overloaded():
            return QUEUE
    return FINAL


def _of_status(status: int) -> FaultClass:
    if status >= 500 or status in _PASSING:
        return OVERLOAD
    return LOCKED if status in _LOCKED else UNKNOWN


def _of_refusal(error: RequestRefused) -> FaultClass:
    if error.upstream_code == _CONTEXT or error.details.get("status") == 413:
        return CONTEXT
    return CALL if error.upstream_code == BOTCHED_CALL else REFUSAL


def _never_connected(error: BaseException | None) -> bool:
    """Return True if no connection was made, so that nothing of the request can have arrived."""
    while error is not None:
        if isinstance(error, aiohttp.ClientConnectorError | httpx2.ConnectError):
            return True
        error = error.__cause__
    return False

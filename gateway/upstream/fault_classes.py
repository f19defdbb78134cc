"""Classes of upstream faults: whether to retry, whether to fall back to another model, and whether the server looks
unhealthy. gateway.upstream.attempts acts on them."""

from dataclasses import dataclass

import aiohttp
import httpx2

from gateway.errors import RequestRefused, ToolsRefused, UpstreamRefused, UpstreamUnreachable
from gateway.upstream.error_body import refuses_media
from gateway.upstream.faults import causes_of, certificate_fault, is_redirect, speaks_no_tls
from memories.errors import DomainError, InvalidRequest, Overloaded, RateLimited, UpstreamTimeout

_CONTEXT = "context_length_exceeded"
BOTCHED_CALL = "tool_use_failed"
"""Groq's error code for a tool call that it could not parse."""
_TEMPORARY = frozenset({408, 409, 425})
_LOCKED = frozenset({401, 402, 403, 404})
_NO_CONNECTION = (aiohttp.ClientConnectorError, httpx2.ConnectError)  # so the server cannot have received the request


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultClass:
    """A class of faults. `retries`: how often the request may be sent again to the same model. `fall_back`: whether
    another model may answer it. `unhealthy`: whether the circuit breaker counts it as a failure. `rest_seconds`: how
    long the model gets no requests if another one can answer. `about_server`: whether it says anything about the
    server, healthy or not."""

    name: str
    retries: int = 0
    fall_back: bool = True
    unhealthy: bool = False
    rest_seconds: float = 0.0
    about_server: bool = True


RATE = FaultClass(name="rate", retries=2, unhealthy=True)
OVERLOAD = FaultClass(name="overload", retries=2, unhealthy=True)
NETWORK = FaultClass(name="network", retries=2, unhealthy=True)
CONNECT = FaultClass(name="connect", retries=2, unhealthy=True)
SILENCE = FaultClass(name="silence", retries=1, unhealthy=True)
LOCKED = FaultClass(name="locked", unhealthy=True, rest_seconds=60.0)  # key refused, no such model, redirected
CERTIFICATE = FaultClass(name="certificate", unhealthy=True, rest_seconds=60.0)
UNKNOWN = FaultClass(name="unknown", about_server=False)  # an upstream that is not configured, an unexpected status
CONTEXT = FaultClass(name="context")  # another model may accept a longer request
TOOLS = FaultClass(name="tools")  # another model may support tools
MEDIA = FaultClass(name="media")  # another model may accept the attachment
QUEUE = FaultClass(name="queue", about_server=False)  # our own concurrency limit
CALL = FaultClass(name="call", retries=1, fall_back=False)
REFUSAL = FaultClass(name="refusal", fall_back=False)  # the client's error, or a content filter
FINAL = FaultClass(name="final", fall_back=False, about_server=False)


def fault_class(error: DomainError) -> FaultClass:
    """Return the class of a fault. Of a lost connection and of a certificate its causes tell."""
    match error:
        case RateLimited():
            return RATE
        case UpstreamTimeout():
            return CONNECT if error.details.get("limit") == "connect" else SILENCE
        case UpstreamUnreachable() if certificate_fault(error) or speaks_no_tls(error):
            return CERTIFICATE
        case UpstreamUnreachable():
            return CONNECT if any(isinstance(cause, _NO_CONNECTION) for cause in causes_of(error)) else NETWORK
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
    if status >= 500 or status in _TEMPORARY:
        return OVERLOAD
    return LOCKED if status in _LOCKED or is_redirect(status) else UNKNOWN


def _of_refusal(error: RequestRefused) -> FaultClass:
    if error.upstream_code == _CONTEXT or error.details.get("status") == 413:
        return CONTEXT
    if refuses_media(error.server_message):
        return MEDIA
    return CALL if error.upstream_code == BOTCHED_CALL else REFUSAL

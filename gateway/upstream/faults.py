"""Translates the faults of model servers and of connections to them into the gateway's errors."""

import math
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import httpx2

from gateway.errors import RequestRefused, ToolsRefused, UpstreamRefused, UpstreamSilent, UpstreamUnreachable
from gateway.upstream.error_body import (
    REQUEST_STATUSES,
    ParsedError,
    is_unknown_address,
    read_error,
    refuses_media,
    refuses_tools,
    status_meant,
)
from memories.errors import DomainError, InvalidRequest, RateLimited

_MAX_RETRY_AFTER = 3600.0
_KNOWN_STATUSES = frozenset({400, 401, 402, 403, 404, 413, 422, 429})
# Statuses with which a model does not support tools or pictures; OpenRouter: 404, llama.cpp: 500
_UNSUPPORTED_STATUSES = frozenset({400, 404, 422, 500, 501})
_NO_HEADERS: Mapping[str, str] = {}
_KEY_HEADERS = ("authorization", "api-key", "x-api-key")
KEY_REFUSED = "refused the gateway's key"
UNKNOWN_MODEL = "does not know this model"
NO_SUCH_ADDRESS = "has nothing at this address"
REDIRECTS = "redirects to another address"
_REASONS = {401: KEY_REFUSED, 403: KEY_REFUSED, 404: UNKNOWN_MODEL}
NO_CREDIT_LEFT = "The model server says that its account has no credit left."
NOT_REACHED = "The model server could not be reached."
BROKE_OFF = "The model server broke off"
CERTIFICATE = "The certificate of the model server"
NO_TLS = "The model server does not speak TLS, but its address begins with https."
# Certificate faults by OpenSSL's codes. Its own messages contain the host name.
_CERTIFICATE_FAULTS = {
    9: "is not valid yet",
    10: "has expired",
    **dict.fromkeys((18, 19, 20, 21), "is not signed by an authority that this machine trusts"),
    **dict.fromkeys((62, 64), "is for another host"),
}
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
_STREAM = re.compile(r"\bstream", re.IGNORECASE)
NO_KEY = "none"
"""Passed to the SDK, which requires a key, for an upstream without one. It is not treated as a secret, since refusals
may contain this word."""

# What a request can raise. ValueError and RecursionError mean that a body is not usable JSON or UTF-8.
WIRE_ERRORS = (httpx2.HTTPError, aiohttp.ClientError, ValueError, RecursionError)


def refusal_error(response: httpx2.Response, body: bytes) -> DomainError:
    """Return the gateway's error for a response with an error status and this body. Like those of the functions below,
    its message contains neither the key nor the address."""
    parsed = read_error(body, secrets=_secrets(response.request))
    return _error_for(status_meant(response.status_code, parsed), parsed, response.headers)


def connection_error(error: Exception, *, answered: bool) -> DomainError:
    """Return the gateway's error for one of WIRE_ERRORS. `answered`: the server's answer had begun."""
    if fault := certificate_fault(error):
        return UpstreamUnreachable(f"{CERTIFICATE} {fault}.")
    if speaks_no_tls(error):
        return UpstreamUnreachable(NO_TLS)
    if isinstance(error, httpx2.TimeoutException) and not _connection_lost(error):
        return UpstreamSilent("The model server took too long to answer.", limit="connect")
    if isinstance(error, ValueError | RecursionError):
        return UpstreamUnreachable("The model server's answer is not JSON.")
    if not answered and isinstance(error, httpx2.HTTPError):
        return UpstreamUnreachable(NOT_REACHED)
    return UpstreamUnreachable(f"{BROKE_OFF} in the middle of its answer.")


def certificate_fault(error: BaseException) -> str:
    """Return what is wrong with the server's certificate, as the end of a sentence, or "" for any other fault."""
    causes = [cause for cause in causes_of(error) if isinstance(cause, ssl.SSLCertVerificationError)]
    if not causes:
        return ""
    return _CERTIFICATE_FAULTS.get(getattr(causes[-1], "verify_code", 0), "is not accepted")  # aiohttp sets no code


def speaks_no_tls(error: BaseException) -> bool:
    """Return True if the server did not answer the TLS handshake with TLS."""
    causes = (cause for cause in causes_of(error) if isinstance(cause, ssl.SSLError))
    return any(getattr(cause, "reason", "") in _NOT_TLS for cause in causes)


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what caused it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def is_redirect(status: int) -> bool:
    """Return True for a status that sends the client to another address. It is not followed."""
    return 300 <= status < 400


def refuses_to_stream(error: DomainError) -> bool:
    """Return True if an upstream refused a request because of streaming or its stream options."""
    return isinstance(error, InvalidRequest) and "status" in error.details and bool(_STREAM.search(str(error)))


def retry_after_seconds(error: DomainError) -> float:
    """Return the seconds to wait before asking an upstream again, from its refusal: at most an hour, 0 if it did not
    say."""
    return parse_retry_after(str(error.details.get("retry_after", "")))


def parse_retry_after(header: str) -> float:
    """Return the seconds in a Retry-After header, which is a number or a date: at most an hour, 0 for anything else."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return _bounded(seconds)


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), _MAX_RETRY_AFTER) if math.isfinite(seconds) else 0.0


def _connection_lost(error: BaseException | None) -> bool:
    """Return True if the connection was refused or dropped, which the SDK's aiohttp transport reports as a time-out."""
    for cause in causes_of(error):
        if isinstance(cause, aiohttp.ClientConnectionError):
            return not isinstance(cause, aiohttp.ServerTimeoutError)
    return False


def fault_in_answer(answer: Any, request: httpx2.Request) -> DomainError:
    """Return the gateway's error for an error sent with a success status, as a document or within a stream."""
    parsed = read_error(answer, secrets=_secrets(request))
    if (status := status_meant(parsed.status, parsed)) in _KNOWN_STATUSES:
        return _error_for(status, parsed)
    return UpstreamUnreachable(f"{BROKE_OFF} with an error{_reason(parsed)}")


def _reason(parsed: ParsedError) -> str:
    """Return the end of a sentence with the server's message, if it has one and is not a proxy's HTML page."""
    return f": {parsed.message}" if parsed.message and not parsed.message.startswith("<") else "."


def _retry_after(headers: Mapping[str, str], parsed: ParsedError) -> float:
    """Return when to ask again, in seconds from now: at most an hour, 0 if the answer does not say."""
    try:
        seconds = _bounded(float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        seconds = 0.0
    seconds = seconds or math.ceil(parse_retry_after(headers.get("retry-after", parsed.retry_after)))
    return int(seconds) if seconds == int(seconds) else seconds


def _error_for(status: int, parsed: ParsedError, headers: Mapping[str, str] = _NO_HEADERS) -> DomainError:
    if status == 402:
        return UpstreamRefused(NO_CREDIT_LEFT, status=status)
    if is_redirect(status):
        message = f"The model server {REDIRECTS}. Its address in the settings must be changed."
        return UpstreamRefused(message, status=status)
    retry_after = _retry_after(headers, parsed)
    details: dict[str, Any] = {"retry_after": retry_after} if retry_after else {}
    if status == 429:
        return RateLimited(
            "The model server is receiving too many requests. Try again later.", status=status, **details
        )
    no_tools = status in _UNSUPPORTED_STATUSES and refuses_tools(parsed.message)
    no_media = status in _UNSUPPORTED_STATUSES and refuses_media(parsed.message)
    if status in REQUEST_STATUSES or no_tools or no_media:
        message = f"The model server refused the request: {parsed.message or 'it was not accepted'}"
        refused = ToolsRefused if no_tools else RequestRefused
        return refused(
            message, upstream_code=parsed.code, param=parsed.param, server_message=parsed.message, status=status
        )
    if status in _REASONS:
        reason = NO_SUCH_ADDRESS if status == 404 and is_unknown_address(parsed) else _REASONS[status]
        return UpstreamRefused(f"The model server {reason}.", status=status, **details)
    message = f"The model server answered with an error ({status}){_reason(parsed)}"
    return UpstreamRefused(message, status=status, **details)


def _secrets(request: httpx2.Request) -> list[str]:
    """Return the strings that no message may contain: the key and the address of the request."""
    keys = [value.removeprefix("Bearer ") for name in _KEY_HEADERS if (value := request.headers.get(name))]
    return [*(key for key in keys if key != NO_KEY), f"{request.url.host}:{request.url.port}", request.url.host]

"""Translates everything that can go wrong at a model server into the gateway's errors."""

import math
import ssl
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import httpx2
import openai

from gateway.errors import RequestRefused, ToolsRefused, UpstreamRefused, UpstreamSilent, UpstreamUnreachable
from gateway.upstream.error_body import SaidError, finds_nothing, knows_no_model, read_error, takes_no_tools
from memories.errors import DomainError, InvalidRequest, RateLimited

_LONGEST_REST = 3600.0
_CLIENTS = frozenset({400, 413, 422})  # the request is refused, not the caller
_FAULTS = frozenset({400, 401, 402, 403, 404, 413, 422, 429})
_FAULTY_CODES = frozenset({"context_length_exceeded", "content_filter"})
_ABOUT_TOOLS = frozenset({400, 404, 422, 500, 501})  # OpenRouter: 404; llama.cpp: 500
_NO_CREDIT = frozenset({"insufficient_quota", "credit_balance_exhausted"})
_KEY_HEADERS = ("authorization", "api-key", "x-api-key")
KEY_REFUSED = "refused the gateway's key"
UNKNOWN_MODEL = "does not know this model"
NO_SUCH_ADDRESS = "has nothing at this address"
_REASONS = {401: KEY_REFUSED, 403: KEY_REFUSED, 404: UNKNOWN_MODEL}
NO_CREDIT_LEFT = "The model server says that its account has no credit left."
NOT_REACHED = "The model server could not be reached."
BROKE_OFF = "The model server broke off"
CERTIFICATE = "The certificate of the model server"
NO_TLS = "The model server does not speak TLS, and its address begins with https."
# What is wrong with a certificate, by OpenSSL's codes. Its own words name the host.
_CERTIFICATE_FAULTS = {
    9: "is not valid yet",
    10: "has expired",
    **dict.fromkeys((18, 19, 20, 21), "is signed by nobody whom this machine trusts"),
    **dict.fromkeys((62, 64), "is for another host"),
}
_PLAIN_ANSWERS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
NO_KEY = "none"
"""What the SDK is given for an upstream that has no key: no secret, and a word that refusals use."""

# What the wire can raise. ValueError and RecursionError mean that a body is not usable JSON or UTF-8.
WIRE_ERRORS = (openai.OpenAIError, httpx2.HTTPError, aiohttp.ClientError, ValueError, RecursionError)


def domain_error(error: Exception) -> DomainError:
    """Return the gateway's error for a fault. Its message holds neither key nor address."""
    if isinstance(error, openai.APIStatusError):
        said = read_error(_content(error.response), secrets=_secrets(error.request))
        return _fault(error.status_code, said, retry_after=_rest_of(error.response.headers))
    if fault := certificate_fault(error):
        return UpstreamUnreachable(f"{CERTIFICATE} {fault}.")
    if speaks_no_tls(error):
        return UpstreamUnreachable(NO_TLS)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException) and not _is_lost(error):
        return UpstreamSilent("The model server took too long to answer.", limit="connect")
    if isinstance(error, openai.APIConnectionError):
        return UpstreamUnreachable(NOT_REACHED)
    if isinstance(error, ValueError | RecursionError):
        return UpstreamUnreachable("The model server gave an answer that is not JSON.")
    return UpstreamUnreachable(f"{BROKE_OFF} in the middle of its answer.")


def certificate_fault(error: BaseException) -> str:
    """Return what is wrong with a server's certificate, as the end of a sentence; "" if that is not the fault."""
    found = [cause for cause in _causes(error) if isinstance(cause, ssl.SSLCertVerificationError)]
    if not found:
        return ""
    return _CERTIFICATE_FAULTS.get(getattr(found[-1], "verify_code", 0), "is not accepted")  # aiohttp's has none


def speaks_no_tls(error: BaseException) -> bool:
    """Return True if a server answered the handshake of TLS with something else."""
    found = (cause for cause in _causes(error) if isinstance(cause, ssl.SSLError))
    return any(getattr(cause, "reason", "") in _PLAIN_ANSWERS for cause in found)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def refuses_to_stream(error: DomainError) -> bool:
    """Return True if an upstream refused a request because of streaming or of its stream options."""
    return isinstance(error, InvalidRequest) and "status" in error.details and "stream" in str(error).lower()


def retry_after_seconds(error: DomainError) -> float:
    """Return the seconds after which an upstream may be asked again, from the Retry-After header of its refusal (a
    number or a date): at most an hour, 0 without the header."""
    return seconds_of_retry_after(str(error.details.get("retry_after", "")))


def seconds_of_retry_after(header: str) -> float:
    """Return the seconds that a Retry-After header asks for, a number or a date: at most an hour, 0 for anything
    else."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return min(max(seconds, 0.0), _LONGEST_REST) if math.isfinite(seconds) else 0.0


def _is_lost(error: BaseException | None) -> bool:
    """Return True if a connection was refused or dropped. The SDK's aiohttp transport reports that as a time-out,
    too."""
    for cause in _causes(error):
        if isinstance(cause, aiohttp.ClientConnectionError):
            return not isinstance(cause, aiohttp.ServerTimeoutError)
    return False


def fault_in_answer(answer: Any, request: httpx2.Request) -> DomainError:
    """Return the gateway's error for an error with a status of success, as a document or within a stream."""
    said = read_error(answer, secrets=_secrets(request))
    if said.status in _FAULTS or said.code in _FAULTY_CODES:
        return _fault(said.status or 400, said)
    what = f": {said.message}" if said.message and not said.message.startswith("<") else "."
    return UpstreamUnreachable(f"{BROKE_OFF} with an error{what}")


def _rest_of(headers: httpx2.Headers) -> str:
    """Return the header that says when to ask again, in seconds or as a date; "" if there is none."""
    try:
        return f"{float(headers['retry-after-ms']) / 1000:g}"
    except (KeyError, ValueError):
        return str(headers.get("retry-after", ""))


def _fault(status: int, said: SaidError, *, retry_after: str = "") -> DomainError:
    if said.code in _NO_CREDIT or status == 402:
        return UpstreamRefused(NO_CREDIT_LEFT, status=status)
    details = {"retry_after": retry_after[:32]} if retry_after else {}
    if status == 429:
        return RateLimited("The model server is asked too much at once. Try again later.", status=status, **details)
    if status in _CLIENTS and knows_no_model(said):
        status = 404
    no_tools = status in _ABOUT_TOOLS and takes_no_tools(said.message)
    if status in _CLIENTS or no_tools or (status >= 500 and said.code in _FAULTY_CODES):
        message = f"The model server refused the request: {said.message or 'it was not accepted'}"
        refused = ToolsRefused if no_tools else RequestRefused
        return refused(message, upstream_code=said.code, param=said.param, said=said.message, status=status)
    if status in _REASONS:
        reason = NO_SUCH_ADDRESS if status == 404 and finds_nothing(said) else _REASONS[status]
        return UpstreamRefused(f"The model server {reason}.", status=status, **details)
    why = "." if not said.message or said.message.startswith("<") else f": {said.message}"  # no page of a proxy
    return UpstreamRefused(f"The model server answered with an error ({status}){why}", status=status, **details)


def _content(response: httpx2.Response) -> bytes:
    try:
        return response.content
    except httpx2.ResponseNotRead:  # the connection broke while the error was read
        return b""


def _secrets(request: httpx2.Request) -> list[str]:
    """Return the texts that no message may repeat: the key and the address of the request."""
    keys = [value.removeprefix("Bearer ") for name in _KEY_HEADERS if (value := request.headers.get(name))]
    return [*(key for key in keys if key != NO_KEY), f"{request.url.host}:{request.url.port}", request.url.host]

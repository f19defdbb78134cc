"""The gateway's error for everything that can go wrong at a model server."""

import math
import time
from email.utils import parsedate_to_datetime

import aiohttp
import httpx2
import openai

from gateway.errors import UpstreamRefused, UpstreamSilent, UpstreamUnreachable
from memories.errors import DomainError, InvalidRequest, RateLimited
from memories.storable import storable_text

_QUOTED = 300
_LONGEST_REST = 3600.0

# What the wire can raise; ValueError and RecursionError stand for a body that is not usable JSON or UTF-8.
WIRE_ERRORS = (openai.OpenAIError, httpx2.HTTPError, aiohttp.ClientError, ValueError, RecursionError)


def domain_error(error: Exception) -> DomainError:
    """Return the gateway's error for what went wrong upstream. No key and no address is in its message."""
    if isinstance(error, openai.APIStatusError):
        return _refused(error)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException) and not _is_lost(error):
        return UpstreamSilent("The model server took too long to answer.", limit="connect")
    if isinstance(error, openai.APIConnectionError):
        return UpstreamUnreachable("The model server could not be reached.")
    if isinstance(error, ValueError | RecursionError):
        return UpstreamUnreachable("The model server gave an answer that is not JSON.")
    return UpstreamUnreachable("The model server broke off in the middle of its answer.")


def refuses_to_stream(error: DomainError) -> bool:
    """Return True if an upstream refused a request because it was to be streamed, or for its stream options."""
    return isinstance(error, InvalidRequest) and "status" in error.details and "stream" in str(error).lower()


def retry_after_seconds(error: DomainError) -> float:
    """Return how many seconds an upstream wants to be left alone, by the Retry-After header of its refusal (a number or
    a date); at most an hour, 0 where it did not say."""
    header = str(error.details.get("retry_after", ""))
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return min(max(seconds, 0.0), _LONGEST_REST) if math.isfinite(seconds) else 0.0


def _is_lost(error: BaseException | None) -> bool:
    """Return True if a connection was refused or dropped: the SDK's aiohttp transport calls that a time-out, too."""
    while error is not None:
        if isinstance(error, aiohttp.ClientConnectionError):
            return not isinstance(error, aiohttp.ServerTimeoutError)
        error = error.__cause__
    return False


def _refused(error: openai.APIStatusError) -> DomainError:
    status = error.status_code
    if status == 429:
        details = {}
        if retry_after := error.response.headers.get("retry-after"):
            details["retry_after"] = retry_after[:32]
        return RateLimited("The model server is asked too much at once. Try again later.", status=status, **details)
    if status in {400, 422}:
        body = error.body if isinstance(error.body, dict) else {}
        said = storable_text(str(body.get("message") or "the request was not accepted"))[:_QUOTED]
        return InvalidRequest(f"The model server refused the request: {said}", status=status)
    reason = {
        401: "refused the gateway's key",
        403: "refused the gateway's key",
        404: "does not know this model",
    }.get(status, f"answered with an error ({status})")
    return UpstreamRefused(f"The model server {reason}.", status=status)

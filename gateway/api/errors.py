"""Error responses: one handler for every exception in an API. They contain no traceback and no request content."""

import json
import math
from collections.abc import Callable, Container, Iterable
from typing import Any

from django.core.exceptions import BadRequest, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from gateway.api.anthropic_errors import NOT_HERE, anthropic_error, anthropic_status, is_anthropic
from gateway.errors import InternalError, RunStopped, SessionEnded, TooManySteps, UpstreamRefused, public_error
from gateway.upstream.fault_classes import LOCKED, fault_class
from gateway.upstream.faults import retry_after_seconds
from memories.errors import DomainError, Forbidden, InvalidRequest, NotFound, RateLimited, TooLarge, Unauthorized

# Parts of pydantic's `loc` that are not fields: ninja's names for bodies, and the first type of a union.
_NOT_FIELDS = frozenset({"body", "payload", "data", "str", "constrained-str"})
# The longest Retry-After that the SDKs of OpenAI and Anthropic respect. They ignore a longer one and retry immediately.
_MAX_SDK_WAIT = 60


class MethodNotAllowed(DomainError):
    """The path exists, but not with this HTTP method."""

    code, http_status = "method_not_allowed", 405


def error_response(error: DomainError, path: str, headers: Container[str] = ()) -> HttpResponse:
    """Return an error as JSON, in the format of the API at this path or of the client that sent these headers."""
    body, status = error.as_json(), error.http_status
    if is_anthropic(path, headers):
        body, status = anthropic_error(error), anthropic_status(error)
    # Readable where a client prints it. A lone surrogate becomes its escape in JSON.
    content = json.dumps(body, ensure_ascii=False).encode(errors="backslashreplace")
    response = HttpResponse(content, content_type="application/json", status=status, headers=error.headers)
    if wait := _whole_seconds(error.details.get("retry_after")):
        response["Retry-After"] = str(wait)
    if _is_final(error):
        response["x-should-retry"] = "false"
    if status == Unauthorized.http_status:
        response["WWW-Authenticate"] = "Bearer"
    return response


def _is_final(error: DomainError) -> bool:
    """Return True if the request should not be repeated. The SDKs otherwise retry by status, and a turn would run three
    times."""
    match error:
        case RunStopped() | SessionEnded() | TooManySteps():
            return True
        case UpstreamRefused():
            return fault_class(error) is LOCKED
        case RateLimited():
            return retry_after_seconds(error) > _MAX_SDK_WAIT
    return False


def _whole_seconds(wait: Any) -> int:
    """Return the value of a Retry-After header for a number of seconds, or 0 for anything else."""
    return math.ceil(wait) if isinstance(wait, int | float) and math.isfinite(wait) and wait > 0 else 0


_BY_STATUS: dict[int, DomainError] = {
    400: InvalidRequest("The request is not valid."),
    403: Forbidden("This is not allowed."),
    404: NotFound("There is nothing here. The addresses of the API are listed at /api/docs."),
    405: MethodNotAllowed("This address does not take this method."),
    413: TooLarge("This request is larger than the gateway takes."),
}


_addresses: dict[str, Callable[[], Iterable[str]]] = {}


def register_addresses(prefix: str, addresses: Callable[[], Iterable[str]]) -> None:
    """List these addresses in every 404 for a path below the prefix."""
    _addresses[prefix] = addresses


def error_of_status(status: int, path: str) -> DomainError:
    """Return the error that replaces an HTML error page with this status, sent by Django or a middleware."""
    if status == NotFound.http_status and is_anthropic(path):
        return NotFound(NOT_HERE)
    for prefix, addresses in _addresses.items():
        if status == NotFound.http_status and f"{path}/".startswith(prefix):
            return NotFound(f"There is nothing here. Described at {prefix}openapi.json: {', '.join(addresses())}.")
    return _BY_STATUS.get(status) or InternalError()


def as_domain_error(error: Exception) -> DomainError:
    """Return the DomainError for any exception that Django, ninja, pydantic or our code raises."""
    if isinstance(error, ValidationError):
        first: dict[str, Any] = error.errors[0] if error.errors else {}
        loc = list(first.get("loc", ()))
        loc = loc[1:] if loc[:1] in (["query"], ["header"]) else loc
        path = ".".join(str(part) for part in loc if part not in _NOT_FIELDS)
        # Without what pydantic adds to the errors of validators, and to lengths.
        reason = first.get("msg", "not valid").removeprefix("Value error, ").replace(" after validation", "")
        return InvalidRequest(f"{path or 'body'}: {reason}.", param=path or None)
    if isinstance(error, Http404):
        return NotFound("There is nothing here.")
    if isinstance(error, RequestDataTooBig):
        return TooLarge("This request is larger than the gateway takes.")
    if isinstance(error, BadRequest | MultiPartParserError):
        return InvalidRequest("The Content-Type of this request cannot be read.")
    if isinstance(error, HttpError):
        if isinstance(error.__cause__, DomainError):  # raised by BodyParser; ninja's own message is generic
            return error.__cause__
        return InvalidRequest("The body is not valid JSON." if error.status_code == 400 else str(error))
    return public_error(error)


def install_handlers(api: NinjaAPI) -> None:
    def respond(request: HttpRequest, error: Any) -> HttpResponse:
        return error_response(as_domain_error(error), request.path_info, request.headers)

    for kind in (DomainError, ValidationError, Http404, HttpError, RequestDataTooBig, Exception):
        api.add_exception_handler(kind, respond)

"""Errors in the format of the Anthropic Messages API."""

from collections.abc import Container
from typing import Any

from gateway.errors import RequestRefused, UpstreamRefused
from gateway.requests import request_id
from memories.errors import DomainError, ModelNotFound, Overloaded

PATH = "/v1/messages"
NOT_HERE = f"There is nothing here. The Messages API has POST {PATH} and POST {PATH}/count_tokens."
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_OVERLOADED = 529
_OVERLOADED_THERE = frozenset({503, 529})  # statuses of model servers; clients then retry, or use another model
_DETAILS = ("memory_changes", "error_code", "unsupported")
# Clients look for these words and then shorten the conversation.
_TOO_LONG = "prompt is too long"
_TOO_LONG_CODE = "context_length_exceeded"


def is_anthropic(path: str, headers: Container[str] = ()) -> bool:
    """Return True if a path belongs to the Messages API, or if it is below /v1 and the headers are those of Anthropic's
    clients, which also read lists of models there and try addresses that Daybook lacks."""
    return path == PATH or path.startswith(PATH + "/") or ("anthropic-version" in headers and path.startswith("/v1/"))


def anthropic_status(error: DomainError) -> int:
    """Return the HTTP status of an error: 529 for an overload, also of the model server, otherwise that of the other
    APIs."""
    there = isinstance(error, UpstreamRefused) and error.details.get("status") in _OVERLOADED_THERE
    return _OVERLOADED if there or isinstance(error, Overloaded) else error.http_status


def anthropic_error(error: DomainError) -> dict[str, Any]:
    """Return the body of an error. Its details include the changes that a failed answer made to memory, and fields that
    the SDKs of this API look for."""
    status = anthropic_status(error)
    body: dict[str, Any] = {
        "type": _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error"),
        "message": _message(error),
    }
    if details := {name: error.details[name] for name in _DETAILS if error.details.get(name)}:
        body["details"] = details
    return {"type": "error", "error": body, "request_id": request_id.get()}


def _message(error: DomainError) -> str:
    message = str(error)
    if isinstance(error, ModelNotFound):
        return f"{message} `model` names an agent of Daybook: GET /v1/models lists them."
    too_long = isinstance(error, RequestRefused) and error.upstream_code == _TOO_LONG_CODE
    return f"{_TOO_LONG}: {message}" if too_long and _TOO_LONG not in message.lower() else message

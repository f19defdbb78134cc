"""What every request carries: its id, in a context variable, so that log lines and rows can name it."""

import re
from contextvars import ContextVar

from django.http import HttpRequest

from memories.ids import uuid7

request_id: ContextVar[str] = ContextVar("request_id", default="")
_GIVEN = re.compile(r"^[A-Za-z0-9._:-]{1,64}$")
# Asked by machines under whatever name the host has for them.
OPERATIONS = ("/healthz", "/readyz", "/metrics")
API_PREFIXES = ("/v1/", "/api/", "/mcp", *OPERATIONS)


def is_api(path: str) -> bool:
    """Paths that answer JSON and pass by the middlewares of pages."""
    return path.startswith(API_PREFIXES) or path in {"/v1", "/api"}


def request_id_for(request: HttpRequest) -> str:
    """The client's x-request-id where it is a plain one, else a new one."""
    return request_id_of(request.headers.get("x-request-id", ""))


def request_id_of(given: str) -> str:
    """The same, of the header's value."""
    return given if _GIVEN.match(given) else uuid7().hex

"""What every request carries: its id, in a context variable, so that log lines and rows can name it."""

import re
from contextvars import ContextVar

from django.http import HttpRequest

from memories.ids import uuid7

request_id: ContextVar[str] = ContextVar("request_id", default="")
_GIVEN = re.compile(r"^[A-Za-z0-9._:-]{1,64}$")
API_PREFIXES = ("/v1/", "/api/", "/mcp", "/healthz", "/readyz", "/metrics")


def is_api(path: str) -> bool:
    """Paths that answer JSON and pass by the middlewares of pages."""
    return path.startswith(API_PREFIXES) or path in {"/v1", "/api"}


def request_id_for(request: HttpRequest) -> str:
    """The client's x-request-id where it is a plain one, else a new one."""
    given = request.headers.get("x-request-id", "")
    return given if _GIVEN.match(given) else uuid7().hex

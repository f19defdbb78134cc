"""What every request carries: its id, in a context variable, so that log lines and rows can name it."""

import re
from contextvars import ContextVar
from ipaddress import ip_address

from django.conf import settings
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


def client_address(request: HttpRequest) -> str | None:
    """Return the network address of the client. X-Forwarded-For counts only as far as trusted proxies wrote it
    (DAYBOOK_TRUSTED_PROXIES); text in it that is not an address is ignored."""
    address: str | None = request.META.get("REMOTE_ADDR")
    proxies = settings.DAYBOOK_TRUSTED_PROXIES
    named = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if part.strip()]
    if not proxies or not named:
        return address
    try:
        return str(ip_address(named[max(0, len(named) - proxies)]))
    except ValueError:
        return address


def request_id_for(request: HttpRequest) -> str:
    """Return the client's x-request-id where it is a plain one, else a new one."""
    return request_id_of(request.headers.get("x-request-id", ""))


def request_id_of(given: str) -> str:
    """Return the request id for the value of an x-request-id header."""
    return given if _GIVEN.match(given) else uuid7().hex

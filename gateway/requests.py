"""Per-request context variables, the request id and the client's trace context (W3C), and helpers on paths and
addresses."""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from ipaddress import IPv6Address, ip_address

from django.conf import settings
from django.http import HttpRequest

from gateway.web_addresses import url_parts
from memories.ids import uuid7

request_id: ContextVar[str] = ContextVar("request_id", default="")
_VALID_ID = re.compile(r"^[A-Za-z0-9._:-]{1,64}$")
_NO_TRACE: Mapping[str, str] = {}
trace_context: ContextVar[Mapping[str, str]] = ContextVar("trace_context", default=_NO_TRACE)
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_TRACESTATE = re.compile(r"[a-z0-9][a-z0-9_*/@-]{0,255}=[\x21-\x2b\x2d-\x3c\x3e-\x7e]{1,256}")
_MAX_TRACESTATE = 512
_MAX_MEMBERS = 32
_WITH_PORT = re.compile(r"([0-9.]+):[0-9]+|\[([^\]]+)\](?::[0-9]+)?")
# Requested by machines under any host name.
OPERATIONS = ("/healthz", "/readyz", "/metrics")
# Requested by apps before sign-in.
OPEN = ("/.well-known/", "/oauth/register", "/oauth/token", "/oauth/revoke")
API_PREFIXES = ("/v1/", "/api/", "/mcp", *OPERATIONS, *OPEN)


def content_policy(**changed: str) -> str:
    """Return the content security policy of our pages with the given directives replaced."""
    own = dict.fromkeys(("script_src", "style_src", "font_src", "connect_src", "form_action", "manifest_src"), "'self'")
    none = dict.fromkeys(("default_src", "base_uri", "frame_ancestors"), "'none'")
    policy = {**none, **own, "img_src": "'self' data:", **changed}
    return "; ".join(f"{name.replace('_', '-')} {value}" for name, value in policy.items())


def is_api(path: str) -> bool:
    """Return True for paths that answer with JSON and skip the middlewares of pages."""
    return path.startswith(API_PREFIXES) or path in {"/v1", "/api", "/.well-known"}


def header_text(value: str) -> str:
    """Return the text of a header that Django read as Latin-1, as browsers send it. Most other clients send UTF-8."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeDecodeError:
        return value


def client_address(request: HttpRequest) -> str | None:
    """Return the client's network address. Of X-Forwarded-For only the part written by trusted proxies
    (DAYBOOK_TRUSTED_PROXIES) is used, without a port; text that is not an address is ignored."""
    address: str | None = request.META.get("REMOTE_ADDR")
    proxies = settings.DAYBOOK_TRUSTED_PROXIES
    named = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if part.strip()]
    if not proxies or not named:
        return address
    forwarded = named[max(0, len(named) - proxies)]
    if match := _WITH_PORT.fullmatch(forwarded):
        forwarded = match[1] or match[2]
    try:
        return str(ip_address(forwarded))
    except ValueError:
        return address


def counted_address(request: HttpRequest) -> str:
    """Return the network by which a client's attempts are counted (`network_of`); "" without an address."""
    return network_of(client_address(request) or "")


def network_of(address: str) -> str:
    """Return the first address of an IPv6 address's /64, since one internet connection gets a whole /64 and counting
    single addresses would not limit it. Other texts are returned unchanged."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or IPv6Address(int(found) >> 64 << 64)
    return str(found)


def origin_allowed(origin: str, host: str) -> bool:
    """Return True if the page of a websocket or of an MCP client belongs to `host` or is a trusted origin. Both
    arguments are values of request headers."""
    parts = url_parts(origin)
    return origin in settings.TRUSTED_ORIGINS or (parts is not None and parts.netloc.lower() == host.lower())


def request_id_of(given: str) -> str:
    """Return the value of an x-request-id header if it is valid, otherwise a new id."""
    return given if _VALID_ID.match(given) else uuid7().hex


def trace_context_of(traceparent: str, tracestate: str) -> Mapping[str, str]:
    """Return the trace context in a request's headers, as headers; empty if it is missing or invalid."""
    if not _TRACEPARENT.fullmatch(traceparent):
        return _NO_TRACE
    members = [member.strip() for member in tracestate.split(",")] if len(tracestate) <= _MAX_TRACESTATE else []
    if not members or len(members) > _MAX_MEMBERS or not all(map(_TRACESTATE.fullmatch, members)):
        return {"traceparent": traceparent}
    return {"traceparent": traceparent, "tracestate": ",".join(members)}

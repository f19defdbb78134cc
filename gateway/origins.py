"""Checks the Origin header of websockets and /mcp, which accept pages of this host and of trusted origins."""

from urllib.parse import urlsplit

from django.conf import settings


def origin_allowed(origin: str, host: str) -> bool:
    """Return True if `origin` belongs to `host` (both as in request headers) or is a trusted origin."""
    if origin in settings.TRUSTED_ORIGINS:
        return True
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:  # such as http://[::1
        return False

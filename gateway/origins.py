"""The Origin of a request from a web page: websockets and /mcp accept pages of this host and of trusted origins."""

from urllib.parse import urlsplit

from django.conf import settings


def origin_allowed(origin: str, host: str) -> bool:
    """Return True if `origin` is a page of `host` (both in the form of request headers) or a trusted origin."""
    if origin in settings.TRUSTED_ORIGINS:
        return True
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:  # such as http://[::1
        return False

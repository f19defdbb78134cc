"""The Origin of a request that a web page made: websockets and /mcp take this host's own pages and trusted ones."""

from urllib.parse import urlsplit

from django.conf import settings


def origin_allowed(origin: str, host: str) -> bool:
    """Return True if `origin` is a page of `host` (both as the request's headers name them) or a trusted origin."""
    if origin in settings.TRUSTED_ORIGINS:
        return True
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:  # such as http://[::1
        return False

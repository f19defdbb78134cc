"""URLs that clients send and operators configure."""

import re
from urllib.parse import SplitResult, urlsplit


def url_parts(url: str) -> SplitResult | None:
    """Return the parts of a URL, or None if its host or port is not valid."""
    try:
        parts = urlsplit(url)
        return None if parts.port == 0 else parts
    except ValueError:  # such as http://[::1
        return None


def is_web_address(given: str, *, query: bool = False) -> bool:
    """Return True if this is an http(s) URL with a host and without white space or a fragment. `query` allows a query
    string."""
    parts = url_parts(given)
    complete = parts and parts.scheme in {"http", "https"} and parts.hostname
    return bool(complete) and not re.search(r"\s|#" if query else r"\s|[?#]", given)

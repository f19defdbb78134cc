"""URLs that clients send and operators configure."""

import re
from urllib.parse import SplitResult, urlsplit


def url_parts(url: str, *, port_zero: bool = False) -> SplitResult | None:
    """Return the parts of a URL, or None if its host or port is not valid. Port 0 is only valid with `port_zero`."""
    try:
        parts = urlsplit(url)
        return parts if parts.port != 0 or port_zero else None
    except ValueError:  # such as http://[::1
        return None


def is_web_address(given: str, *, query: bool = False) -> bool:
    """Return True if this is an http(s) URL with a host and without white space or a fragment. `query` allows a query
    string."""
    parts = url_parts(given)
    complete = parts and parts.scheme in {"http", "https"} and parts.hostname
    return bool(complete) and not re.search(r"\s|#" if query else r"\s|[?#]", given)

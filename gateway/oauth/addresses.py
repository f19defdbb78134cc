"""The public URLs of the OAuth endpoints, and the challenge of 401 and 403 responses.

The origin is that of the request, whose host must be in DAYBOOK_ALLOWED_HOSTS. If DAYBOOK_TRUSTED_ORIGINS has a web
origin with that host, its scheme is used instead, since a proxy may forward requests over http."""

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from gateway.oauth.tokens import SCOPES
from gateway.web_addresses import url_parts

RESOURCE_PATH = "/mcp"
AUTHORIZE_PATH = "/oauth/authorize"
RESOURCE_METADATA_PATH = f"/.well-known/oauth-protected-resource{RESOURCE_PATH}"


def public_origin(request: HttpRequest) -> str:
    """Return the origin at which people and apps reach this server. Raises DisallowedHost."""
    host = request.get_host().lower()
    own = [f"{scheme}://{host}" for scheme in ("https", "http")]
    return next((origin for origin in own if origin in settings.TRUSTED_ORIGINS), f"{request.scheme}://{host}")


def resource_of(request: HttpRequest) -> str:
    """Return the identifier of the only resource for which tokens are issued."""
    return f"{public_origin(request)}{RESOURCE_PATH}"


def same_resource(given: str, resource: str) -> bool:
    """Return True if `given` identifies the resource, with or without a trailing slash."""
    parts = url_parts(given)
    if parts is None or parts.query or parts.fragment:
        return False
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.removesuffix('/')}" == resource


def challenge(request: HttpRequest, error: str = "") -> str:
    """Return the value of WWW-Authenticate that tells a client where to sign in. Raises DisallowedHost."""
    metadata = f"{public_origin(request)}{RESOURCE_METADATA_PATH}"
    error_part = f', error="{error}"' if error else ""
    return f'Bearer resource_metadata="{metadata}", scope="{" ".join(SCOPES)}"{error_part}'


def keep_opener(response: HttpResponseBase, next_url: str = AUTHORIZE_PATH) -> None:
    """Let a page keep its opener if it leads to the consent page. Apps open that page in a window of its own and use
    the opener to learn when it is done. Frames stay forbidden."""
    if urlsplit(next_url).path == AUTHORIZE_PATH:
        response.headers["Cross-Origin-Opener-Policy"] = "unsafe-none"

"""The public addresses of the parts of OAuth, and the challenge of responses 401 and 403.

The address is that of the request, whose host must be in DAYBOOK_ALLOWED_HOSTS. If DAYBOOK_TRUSTED_ORIGINS has an
origin of that host, that one is used, since a proxy in front may use http."""

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from gateway.oauth.tokens import SCOPES

RESOURCE_PATH = "/mcp"
AUTHORIZE_PATH = "/oauth/authorize"
RESOURCE_METADATA_PATH = f"/.well-known/oauth-protected-resource{RESOURCE_PATH}"


def public_origin(request: HttpRequest) -> str:
    """Return the origin at which people and apps reach this server. Raises DisallowedHost."""
    host = request.get_host().lower()
    named = [origin for origin in settings.TRUSTED_ORIGINS if urlsplit(origin).netloc.lower() == host]
    return max(named) if named else f"{request.scheme}://{host}"  # https is greater than http


def resource_of(request: HttpRequest) -> str:
    """Return the identifier of the one resource that tokens are for."""
    return f"{public_origin(request)}{RESOURCE_PATH}"


def same_resource(given: str, resource: str) -> bool:
    """Return True if `given` names the resource, with or without a slash at its end."""
    try:
        parts = urlsplit(given)
    except ValueError:  # such as http://[::1
        return False
    if parts.query or parts.fragment:
        return False
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.removesuffix('/')}" == resource


def challenge(request: HttpRequest, error: str = "") -> str:
    """Return the value of WWW-Authenticate that tells a client where to sign in. Raises DisallowedHost."""
    named = f'error="{error}", ' if error else ""
    metadata = f"{public_origin(request)}{RESOURCE_METADATA_PATH}"
    return f'Bearer {named}resource_metadata="{metadata}", scope="{" ".join(SCOPES)}"'


def keep_opener(response: HttpResponseBase, leads_to: str = AUTHORIZE_PATH) -> None:
    """Allow a page that leads to the consent to keep its opener. Apps open the consent in a window of their own, and
    learn through the opener when it is done. Frames stay forbidden."""
    if urlsplit(leads_to).path == AUTHORIZE_PATH:
        response.headers["Cross-Origin-Opener-Policy"] = "unsafe-none"

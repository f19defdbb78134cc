"""`/oauth/authorize`: the consent page, on which a person connects an app to one of their books or declines.

The app's request is in the page's URL and is validated again when the form is submitted; the form contains only the
person's choices. An unknown app or a wrong redirect address gets an error page. All other errors are sent to the app;
before a person has decided anything, by a link on such a page, since anybody can register an app (RFC 9700, 4.11.2)."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from oauth2_provider.exceptions import FatalClientError, OAuthToolkitError
from oauth2_provider.http import OAuth2ResponseRedirect
from oauth2_provider.models import Application
from oauth2_provider.oauth2_backends import get_oauthlib_core
from oauthlib.oauth2.rfc6749 import errors

from gateway.oauth.addresses import keep_opener, public_origin, resource_of, same_resource
from gateway.oauth.connections import app_connect, live_connections
from gateway.oauth.tokens import WRITE, scopes_of
from gateway.requests import content_policy
from memories.audit.log import actor_of
from memories.caller import DEFAULT_BOOK
from memories.errors import Conflict
from memories.models import Book
from memories.viewers import Viewer, dialog_view

_MAX_QUERY_CHARS = 4000
_MAX_BOOKS = 500
_CHALLENGE = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_REFUSED = "The app that sent you here made an invalid request. Go back to it and connect it again."


@dataclass(frozen=True, slots=True)
class _ValidRequest:
    """A validated request. `writes`: the app asks for the right to write."""

    client: Application
    credentials: dict[str, Any]
    writes: bool

    @property
    def redirect(self) -> str:
        return str(self.credentials["redirect_uri"])


@dialog_view
def authorize(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """`/oauth/authorize`"""
    response = _answer(request, viewer)
    keep_opener(response)
    return response


def _answer(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    if len(request.META.get("QUERY_STRING", "")) > _MAX_QUERY_CHARS:
        return _refused(request)
    try:
        valid = _validated(request)
        if request.method == "GET":
            return _page(request, viewer, valid)
        if request.POST.get("decision") != "connect":
            raise _error_for_app(valid, errors.AccessDeniedError())
        return _connect(request, viewer, valid)
    except FatalClientError:
        return _refused(request)
    except OAuthToolkitError as error:
        oauth_error = error.oauthlib_error
        address = _with_issuer(request, oauth_error.in_uri(oauth_error.redirect_uri))
        if request.method == "GET" and not _is_connected(request, viewer):
            return _refused(request, back=address)
        return _redirect_to_app(address)


def _validated(request: HttpRequest) -> _ValidRequest:
    """Validate a request. Raises OAuthToolkitError for errors that are sent to the app, FatalClientError for others."""
    try:
        scopes, credentials = get_oauthlib_core().validate_authorization_request(request)
    except ValueError as error:  # a malformed address, which the library does not handle
        raise FatalClientError from error
    client = Application.objects.get(client_id=credentials["client_id"])
    valid = _ValidRequest(client, credentials, WRITE in scopes)
    if credentials.get("code_challenge_method") != "S256":
        raise _error_for_app(valid, errors.InvalidRequestError(description="code_challenge_method must be S256."))
    if not _CHALLENGE.fullmatch(credentials.get("code_challenge") or ""):
        form = "code_challenge must have 43 to 128 letters, digits, or -._~ (RFC 7636)."
        raise _error_for_app(valid, errors.InvalidRequestError(description=form))
    resource = resource_of(request)
    if not all(same_resource(given, resource) for given in request.GET.getlist("resource")):
        wrong = errors.CustomOAuth2Error(error="invalid_target", description=f"The resource must be {resource}.")
        raise _error_for_app(valid, wrong)
    credentials["resource"] = [resource]
    return valid


def _error_for_app(valid: _ValidRequest, error: errors.OAuth2Error) -> OAuthToolkitError:
    error.state = valid.credentials.get("state")
    return OAuthToolkitError(error, valid.redirect)


def _connect(request: HttpRequest, viewer: Viewer, valid: _ValidRequest) -> HttpResponse:
    book, rights = request.POST.get("book", ""), request.POST.get("rights", "")
    if book not in _books(viewer):
        return _page(request, viewer, valid, problem="Choose one of your books.", status=400)
    if rights not in ({"read", "write"} if valid.writes else {"read"}):
        return _page(request, viewer, valid, problem="Choose what the app may do.", status=400)
    try:
        with transaction.atomic():
            app_connect(viewer.owner, valid.client, book=book, read_only=rights == "read", by=actor_of(request.user))
            uri, *_ = get_oauthlib_core().create_authorization_response(
                request, " ".join(scopes_of(read_only=rights == "read")), valid.credentials, allow=True
            )
    except Conflict as conflict:
        return _page(request, viewer, valid, problem=str(conflict), status=409)
    return _redirect_to_app(_with_issuer(request, uri))


def _is_connected(request: HttpRequest, viewer: Viewer) -> bool:
    """Return True if the person has connected the app of a request."""
    client_id = request.GET.get("client_id", "")
    return live_connections().filter(owner=viewer.owner, client__client_id=client_id).exists()


def _page(
    request: HttpRequest, viewer: Viewer, valid: _ValidRequest, *, problem: str = "", status: int = 200
) -> HttpResponse:
    context = {
        "name": valid.client.name or "An app without a name",
        "place": redirect_words(valid.redirect),
        "books": _books(viewer),
        "book": request.POST.get("book", DEFAULT_BOOK),
        "rights": request.POST.get("rights", "write" if valid.writes else "read"),
        "writes": valid.writes,
        "problem": problem,
    }
    response = render(request, "gateway/connect.html", context, status=status)
    # Browsers also apply form-action to the redirect that follows the form.
    response.headers["Content-Security-Policy"] = content_policy(form_action=f"'self' {_source_of(valid.redirect)}")
    return response


def redirect_words(uri: str) -> str:
    """Return a description of an app's redirect address for people."""
    parts = urlsplit(uri)
    if parts.scheme == "https":
        return parts.netloc
    if parts.scheme == "http":
        return "an app on this computer"
    return f"the app that opens {parts.scheme}: addresses on this computer"


def _source_of(uri: str) -> str:
    parts = urlsplit(uri)
    # Only the scheme, since a policy cannot contain the IPv6 loopback address.
    return f"https://{parts.netloc}" if parts.scheme == "https" else f"{parts.scheme}:"


def _books(viewer: Viewer) -> list[str]:
    names = Book.objects.filter(owner=viewer.owner).order_by("name").values_list("name", flat=True)[:_MAX_BOOKS]
    return [DEFAULT_BOOK, *(name for name in names if name != DEFAULT_BOOK)]


def _refused(request: HttpRequest, *, back: str = "") -> HttpResponse:
    """Return the page for an invalid request; `back` is the address by which the app learns of the error."""
    context = {"refusal": _REFUSED, "back": back, "place": redirect_words(back)}
    return render(request, "gateway/connect_refused.html", context, status=400)


def _with_issuer(request: HttpRequest, uri: str) -> str:
    """Return the URL of an answer to the app, with the issuer (RFC 9207)."""
    parts = urlsplit(uri)
    query = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "iss"]
    query.append(("iss", public_origin(request)))
    return urlunsplit(parts._replace(query=urlencode(query)))


def _redirect_to_app(address: str) -> HttpResponse:
    response: HttpResponse = OAuth2ResponseRedirect(address, [urlsplit(address).scheme])
    return response

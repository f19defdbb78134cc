"""`/oauth/authorize`: the page on which a person connects an app with one of their books, or does not.

The whole request is in the page's address and is checked again when the form is sent: the form holds only what the
person chose. An unknown app, or an address that is not the app's own, is answered with a page. All other refusals are
sent to the app."""

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
from gateway.oauth.connections import app_connect
from gateway.oauth.tokens import WRITE, scopes_of
from gateway.requests import content_policy
from memories.audit.log import actor_of
from memories.caller import DEFAULT_BOOK
from memories.errors import Conflict
from memories.models import Book
from memories.viewers import Viewer, dialog_view

_LONGEST_QUERY = 4000
_MOST_BOOKS = 500
_REFUSED = "The app that sent you here made a request that cannot be answered. Go back to it and connect it again."


@dataclass(frozen=True, slots=True)
class _Checked:
    """A request that was checked: the app, where the answer goes, and whether the app asks to write."""

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
    if len(request.META.get("QUERY_STRING", "")) > _LONGEST_QUERY:
        return _refused(request)
    try:
        asked = _checked(request)
        if request.method == "GET":
            return _page(request, viewer, asked)
        if request.POST.get("decision") != "connect":
            raise OAuthToolkitError(errors.AccessDeniedError(state=asked.credentials.get("state")), asked.redirect)
        return _connect(request, viewer, asked)
    except FatalClientError:
        return _refused(request)
    except OAuthToolkitError as error:
        found = error.oauthlib_error
        return _redirect_to_app(request, found.in_uri(found.redirect_uri))


def _checked(request: HttpRequest) -> _Checked:
    """Check a request. Raises FatalClientError, and OAuthToolkitError for a refusal that the app is told."""
    try:
        scopes, credentials = get_oauthlib_core().validate_authorization_request(request)
    except ValueError as error:  # an address that cannot be read, which the library does not expect
        raise FatalClientError from error
    client = Application.objects.get(client_id=credentials["client_id"])
    asked = _Checked(client, credentials, WRITE in scopes)
    if credentials.get("code_challenge_method") != "S256":
        raise _refusal(asked, errors.InvalidRequestError(description="code_challenge_method is S256."))
    resource = resource_of(request)
    if not all(same_resource(given, resource) for given in request.GET.getlist("resource")):
        wrong = errors.CustomOAuth2Error(error="invalid_target", description=f"The resource here is {resource}.")
        raise _refusal(asked, wrong)
    credentials["resource"] = [resource]
    return asked


def _refusal(asked: _Checked, error: errors.OAuth2Error) -> OAuthToolkitError:
    error.state = asked.credentials.get("state")
    return OAuthToolkitError(error, asked.redirect)


def _connect(request: HttpRequest, viewer: Viewer, asked: _Checked) -> HttpResponse:
    book, rights = request.POST.get("book", ""), request.POST.get("rights", "")
    if book not in _books(viewer):
        return _page(request, viewer, asked, problem="Choose one of your books.", status=400)
    if rights not in ({"read", "write"} if asked.writes else {"read"}):
        return _page(request, viewer, asked, problem="Choose what the app may do.", status=400)
    try:
        with transaction.atomic():
            app_connect(viewer.owner, asked.client, book=book, read_only=rights == "read", by=actor_of(request.user))
            uri, *_ = get_oauthlib_core().create_authorization_response(
                request, " ".join(scopes_of(read_only=rights == "read")), asked.credentials, allow=True
            )
    except Conflict as full:
        return _page(request, viewer, asked, problem=str(full), status=409)
    return _redirect_to_app(request, uri)


def _page(
    request: HttpRequest, viewer: Viewer, asked: _Checked, *, problem: str = "", status: int = 200
) -> HttpResponse:
    context = {
        "name": asked.client.name or "An app without a name",
        "place": place_of(asked.redirect),
        "books": _books(viewer),
        "book": request.POST.get("book", DEFAULT_BOOK),
        "rights": request.POST.get("rights", "write" if asked.writes else "read"),
        "writes": asked.writes,
        "problem": problem,
    }
    response = render(request, "gateway/connect.html", context, status=status)
    # Browsers apply form-action to the redirect after the form, too.
    response.headers["Content-Security-Policy"] = content_policy(form_action=f"'self' {_source_of(asked.redirect)}")
    return response


def place_of(uri: str) -> str:
    """Return words for the address at which an app is called back."""
    parts = urlsplit(uri)
    if parts.scheme == "https":
        return parts.netloc
    if parts.scheme == "http":
        return "an app on this computer"
    return f"the app that opens {parts.scheme}: addresses on this computer"


def _source_of(uri: str) -> str:
    parts = urlsplit(uri)
    # A policy cannot name the loopback address of IPv6.
    return f"https://{parts.netloc}" if parts.scheme == "https" else f"{parts.scheme}:"


def _books(viewer: Viewer) -> list[str]:
    names = Book.objects.filter(owner=viewer.owner).order_by("name").values_list("name", flat=True)[:_MOST_BOOKS]
    return [DEFAULT_BOOK, *(name for name in names if name != DEFAULT_BOOK)]


def _refused(request: HttpRequest) -> HttpResponse:
    return render(request, "gateway/connect_refused.html", {"refusal": _REFUSED}, status=400)


def _redirect_to_app(request: HttpRequest, uri: str) -> HttpResponse:
    """Redirect to the app, with the issuer of the answer (RFC 9207)."""
    parts = urlsplit(uri)
    query = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "iss"]
    query.append(("iss", public_origin(request)))
    answer = urlunsplit(parts._replace(query=urlencode(query)))
    response: HttpResponse = OAuth2ResponseRedirect(answer, [parts.scheme])
    return response

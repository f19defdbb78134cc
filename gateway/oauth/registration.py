"""`/oauth/register` (RFC 7591): an app registers itself without a login. It gets a client id and nothing else; a person
decides later what it may do. The size of a request, the rate of an address and the number of unused registrations are
limited.

Every client is a public one, whatever it asked for: it uses PKCE and has no secret."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_POST
from oauth2_provider.generators import generate_client_id
from oauth2_provider.models import Application

from gateway.limits.rates import count_for_address
from gateway.models import ApiKey
from gateway.oauth.connections import MOST_SWEPT
from gateway.oauth.endpoints import MOST_BYTES, json_view, oauth_error
from gateway.requests import counted_address
from memories.database.access import in_thread
from memories.errors import InvalidRequest
from memories.json_input import read_json
from memories.services.erasing import deleting

PER_MINUTE = 10  # from one address
MOST_UNUSED = 500  # the oldest of them make room
UNUSED_KEPT = timedelta(days=1)
MOST_REDIRECTS = 10
MOST_REDIRECT_LENGTH = 500
MOST_NAME_LENGTH = 80
_GRANTS = {"authorization_code", "refresh_token"}
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
# Schemes of apps that are not a reversed domain name, which RFC 8252 asks for.
_APP_SCHEMES = {"cursor", "vscode", "vscode-insiders", "windsurf", "zed"}
_REVERSE_DOMAIN = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)+")
_HOST = re.compile(r"[A-Za-z0-9._~:\[\]-]*")  # no character that could end a source in a content policy
_VISIBLE = re.compile(r"[\x21-\x7e]+")


class BadRedirect(Exception):
    """A redirect address that is not allowed. The message says why."""


@require_POST
@json_view
async def register(request: HttpRequest) -> HttpResponse:
    """Register a client. Answers 429 if a network address registers too many."""
    await count_for_address("oauth-register", counted_address(request), PER_MINUTE)
    if len(request.body) > MOST_BYTES:
        return oauth_error("invalid_client_metadata", f"A request has at most {MOST_BYTES} bytes.", status=413)
    try:
        name, redirects = _read(request.body)
    except InvalidRequest as error:
        return oauth_error("invalid_client_metadata", str(error))
    except BadRedirect as error:
        return oauth_error("invalid_redirect_uri", str(error))
    return JsonResponse(_described(await in_thread(client_register, name, redirects)), status=201)


@transaction.atomic
def client_register(name: str, redirects: Sequence[str]) -> Application:
    """Store a client. If there are too many unused clients, the oldest of them are deleted."""
    unused = unused_clients()
    surplus = unused.count() - MOST_UNUSED + 1
    if surplus > 0:
        oldest = list(unused.order_by("pk").values_list("pk", flat=True)[:surplus])
        Application.objects.filter(pk__in=oldest).delete()
    client: Application = Application.objects.create(
        client_id=generate_client_id(),
        client_secret="",
        hash_client_secret=False,
        name=name,
        redirect_uris=" ".join(redirects),
        client_type=Application.CLIENT_PUBLIC,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        registration_source=Application.RegistrationSource.DCR,
    )
    return client


def unused_clients() -> "QuerySet[Application]":
    """Return the registered clients that nobody has connected."""
    rows: QuerySet[Application] = Application.objects.filter(
        ~Exists(ApiKey.objects.filter(client=OuterRef("pk"))), registration_source=Application.RegistrationSource.DCR
    )
    return rows


def registrations_sweep(now: datetime) -> None:
    """Delete some of the clients that were registered long ago and have no connection, or none any more."""
    deleting(unused_clients().filter(created__lt=now - UNUSED_KEPT))(MOST_SWEPT)


def redirect_allowed(uri: str) -> None:
    """Raises BadRedirect unless a client may be called back there: https, http on the person's own computer, or the
    scheme of an app."""
    if len(uri) > MOST_REDIRECT_LENGTH or not _VISIBLE.fullmatch(uri):
        raise BadRedirect(f"A redirect address has 1 to {MOST_REDIRECT_LENGTH} visible ASCII characters.")
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BadRedirect("A redirect address is not a valid one.") from None
    if not _HOST.fullmatch(parts.netloc):
        raise BadRedirect("The host of a redirect address has letters, digits, dots and hyphens only.")
    if "#" in uri or "\\" in uri:
        raise BadRedirect("A redirect address has no fragment and no backslash.")
    if parts.scheme in {"http", "https"}:
        if not host or (parts.scheme == "http" and host not in _LOOPBACK):
            raise BadRedirect("A redirect address is https, or http on 127.0.0.1, [::1] or localhost.")
    elif parts.scheme not in _APP_SCHEMES and not _REVERSE_DOMAIN.fullmatch(parts.scheme):
        raise BadRedirect("The scheme of a redirect address is not one of an app, such as com.example.app.")


def _read(body: bytes) -> tuple[str, list[str]]:
    """Return the name and the redirect addresses of a request. Raises InvalidRequest, BadRedirect."""
    data = read_json(body)
    if not isinstance(data, dict):
        raise InvalidRequest("The body is a JSON object.")
    grants = data.get("grant_types", ["authorization_code"])
    responses = data.get("response_types", ["code"])
    if not _texts(grants) or "authorization_code" not in grants:
        raise InvalidRequest("grant_types has authorization_code.")
    if not _texts(responses) or "code" not in responses:
        raise InvalidRequest("response_types has code.")
    redirects = data.get("redirect_uris")
    if not _texts(redirects) or not 1 <= len(redirects) <= MOST_REDIRECTS:
        raise BadRedirect(f"redirect_uris has 1 to {MOST_REDIRECTS} addresses.")
    for uri in redirects:
        redirect_allowed(uri)
    return _name(data.get("client_name", "")), list(dict.fromkeys(redirects))


def _texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _name(given: Any) -> str:
    """Return a client's name as one line of printable characters. Raises InvalidRequest."""
    if not isinstance(given, str):
        raise InvalidRequest("client_name is text.")
    seen = "".join(letter if letter.isprintable() else " " for letter in given)
    return " ".join(seen.split())[:MOST_NAME_LENGTH]


def _described(client: Application) -> dict[str, Any]:
    return {
        "client_id": client.client_id,
        "client_id_issued_at": int(client.created.timestamp()),
        "client_name": client.name,
        "redirect_uris": client.redirect_uris.split(),
        "grant_types": sorted(_GRANTS),
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }

"""`/oauth/register` (RFC 7591): an app registers itself without a login. It only gets a client id; a person decides
later what it may do. The size of a request, the rate per network address and the number of unused registrations are
limited.

Every client is a public one, whatever it requested: it uses PKCE and has no secret."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeGuard

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_POST
from oauth2_provider.generators import generate_client_id
from oauth2_provider.models import Application

from gateway.limits.rates import count_for_address
from gateway.models import ApiKey
from gateway.oauth.endpoints import MAX_BODY_BYTES, json_view, oauth_error
from gateway.requests import counted_address
from gateway.web_addresses import url_parts
from memories.database.access import in_thread
from memories.errors import InvalidRequest
from memories.json_input import read_json
from memories.services.erasing import deleting

PER_MINUTE = 10  # per network address
MAX_UNUSED = 500  # the oldest are deleted
UNUSED_LIFETIME = timedelta(days=1)
MAX_SWEPT = 500  # registrations that one sweep deletes, to keep locks short
MAX_REDIRECTS = 10
MAX_REDIRECT_CHARS = 500
MAX_NAME_CHARS = 80
_GRANTS = {"authorization_code", "refresh_token"}
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
# Schemes of known apps that are not reverse domain names, as RFC 8252 requires.
_APP_SCHEMES = {"cursor", "vscode", "vscode-insiders", "windsurf", "zed"}
_REVERSE_DOMAIN = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)+")
_HOST = re.compile(r"[A-Za-z0-9._~:\[\]-]*")  # without characters that end a source in a content security policy
_VISIBLE = re.compile(r"[\x21-\x7e]+")


class BadRedirect(Exception):
    """The redirect address is not allowed. The message says why."""


@require_POST
@json_view
async def register(request: HttpRequest) -> HttpResponse:
    """Register a client. Returns 429 if a network address registers too many."""
    await count_for_address("oauth-register", counted_address(request), PER_MINUTE)
    if len(request.body) > MAX_BODY_BYTES:
        return oauth_error("invalid_client_metadata", f"A request has at most {MAX_BODY_BYTES} bytes.", status=413)
    try:
        name, redirects = _read(request.body)
    except InvalidRequest as error:
        return oauth_error("invalid_client_metadata", str(error))
    except BadRedirect as error:
        return oauth_error("invalid_redirect_uri", str(error))
    return JsonResponse(_client_json(await in_thread(client_register, name, redirects)), status=201)


@transaction.atomic
def client_register(name: str, redirects: Sequence[str]) -> Application:
    """Store a client. If there are too many unused clients, delete the oldest of them."""
    unused = unused_clients()
    surplus = unused.count() - MAX_UNUSED + 1
    if surplus > 0:
        oldest = list(unused.order_by("pk").values_list("pk", flat=True)[:surplus])
        # Locked and looked at again: a person may be connecting one, and deleting it would delete the connection.
        locked = Application.objects.select_for_update().filter(pk__in=oldest).order_by("pk")
        unused.filter(pk__in=list(locked.values_list("pk", flat=True))).delete()
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
    """Return the registered clients that are not connected."""
    rows: QuerySet[Application] = Application.objects.filter(
        ~Exists(ApiKey.objects.filter(client=OuterRef("pk"))), registration_source=Application.RegistrationSource.DCR
    )
    return rows


@transaction.atomic
def registrations_sweep(now: datetime) -> None:
    """Delete clients that were registered longer ago than UNUSED_LIFETIME and are not connected."""
    deleting(unused_clients().filter(created__lt=now - UNUSED_LIFETIME))(MAX_SWEPT)


def check_redirect(uri: str) -> None:
    """Raise BadRedirect unless the address is allowed: https, http on the person's own computer, or the scheme of an
    app."""
    if len(uri) > MAX_REDIRECT_CHARS or not _VISIBLE.fullmatch(uri):
        raise BadRedirect(f"A redirect address must have 1 to {MAX_REDIRECT_CHARS} visible ASCII characters.")
    if (parts := url_parts(uri, port_zero=True)) is None:
        raise BadRedirect("A redirect address is not valid.")
    if not _HOST.fullmatch(parts.netloc):
        raise BadRedirect("The host of a redirect address may only have letters, digits, dots and hyphens.")
    if "#" in uri or "\\" in uri:
        raise BadRedirect("A redirect address must not have a fragment or a backslash.")
    if parts.scheme in {"http", "https"}:
        if not parts.hostname or (parts.scheme == "http" and parts.hostname not in _LOOPBACK):
            raise BadRedirect("A redirect address must be https, or http on 127.0.0.1, [::1] or localhost.")
    elif parts.scheme not in _APP_SCHEMES and not _REVERSE_DOMAIN.fullmatch(parts.scheme):
        raise BadRedirect("The scheme of a redirect address must be https or that of an app, such as com.example.app.")


def _read(body: bytes) -> tuple[str, list[str]]:
    """Return the name and the redirect addresses of a request. Raises InvalidRequest, BadRedirect."""
    data = read_json(body)
    if not isinstance(data, dict):
        raise InvalidRequest("The body must be a JSON object.")
    grants = data.get("grant_types", ["authorization_code"])
    responses = data.get("response_types", ["code"])
    if not _is_string_list(grants) or "authorization_code" not in grants:
        raise InvalidRequest("grant_types must include authorization_code.")
    if not _is_string_list(responses) or "code" not in responses:
        raise InvalidRequest("response_types must include code.")
    redirects = data.get("redirect_uris")
    if not _is_string_list(redirects) or not 1 <= len(redirects) <= MAX_REDIRECTS:
        raise BadRedirect(f"redirect_uris must have 1 to {MAX_REDIRECTS} addresses.")
    for uri in redirects:
        check_redirect(uri)
    return _name(data.get("client_name", "")), list(dict.fromkeys(redirects))


def _is_string_list(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _name(given: Any) -> str:
    """Return a client's name as one line of printable characters. Raises InvalidRequest."""
    if not isinstance(given, str):
        raise InvalidRequest("client_name must be text.")
    printable = "".join(character if character.isprintable() else " " for character in given)
    return " ".join(printable.split())[:MAX_NAME_CHARS]


def _client_json(client: Application) -> dict[str, Any]:
    return {
        "client_id": client.client_id,
        "client_id_issued_at": int(client.created.timestamp()),
        "client_name": client.name,
        "redirect_uris": client.redirect_uris.split(),
        "grant_types": sorted(_GRANTS),
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }

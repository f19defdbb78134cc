"""Connected apps: created by a person's consent, found by an access token, and ended by the person, an administrator or
the app.

A connection is a row of ApiKey with a client. Like any key it has an owner, a book, rights, a last use and a
revocation. Its tokens are the library's rows for the same client and user. Synchronous; uses the database."""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, Grant, RefreshToken

from gateway.keys import CONNECTION, api_key_revoke, key_hash, valid_keys
from gateway.models import ApiKey
from memories.audit.log import Action, Actor, audit_record
from memories.clocks import long_ago
from memories.errors import Conflict
from memories.models import Owner
from memories.services.erasing import ErasureStep, deleting

MAX_CONNECTIONS = 50  # per person
# How long a used refresh token still works. Apps with concurrent requests refresh once for each of them when the access
# token expires, and the official JavaScript SDK forgets all tokens if one of these refreshes fails.
GRACE_PERIOD = timedelta(seconds=10)
_TOKEN_MODELS: tuple[type[Any], ...] = (Grant, RefreshToken, AccessToken)


@dataclass(frozen=True, slots=True)
class FoundToken:
    """A valid access token: its connection, with the owner selected, its resources and its scopes."""

    key: ApiKey
    resources: list[str]
    scopes: frozenset[str]


def live_connections() -> QuerySet[ApiKey]:
    """Return the usable connections: not revoked, and of an active user."""
    return valid_keys().filter(client__isnull=False)


def connection_of(user_id: int, application: Application) -> ApiKey | None:
    """Return the live connection of a user with an app."""
    return live_connections().filter(owner__user_id=user_id, client=application).first()


@transaction.atomic
def app_connect(owner: Owner, application: Application, *, book: str, read_only: bool, by: Actor) -> ApiKey:
    """Connect an app to one of the owner's books, or change the book and the rights of a connected app. Raises Conflict
    if the person already has MAX_CONNECTIONS."""
    Owner.objects.select_for_update().get(pk=owner.pk)  # so that concurrent requests respect the limit
    rows = ApiKey.objects.filter(owner=owner, client__isnull=False, revoked_at=None)
    key = rows.select_for_update().filter(client=application).first()
    if key is None:
        if rows.count() >= MAX_CONNECTIONS:
            raise Conflict(f"You have {MAX_CONNECTIONS} connected apps. Disconnect one first.", limit=MAX_CONNECTIONS)
        key = ApiKey(owner=owner, client=application, prefix="oauth", sha256=key_hash(secrets.token_urlsafe(32)))
    key.name = (application.name or "An app without a name")[:80]
    key.books, key.read_only = [book], read_only
    key.save()
    note = "It may read." if read_only else "It may read and write."
    audit_record(Action.ALLOW, actor=by, kind=CONNECTION, object_id=key.pk, owner=owner, note=note)
    return key


@transaction.atomic
def app_disconnect(key: ApiKey, *, by: Actor) -> None:
    """End a connection and delete its tokens. After the commit no process accepts them."""
    api_key_revoke(key, by=by)
    tokens_delete(key.owner.user_id, key.client_id)


def tokens_delete(user_id: int | None, application_id: int | None, *, codes: bool = True) -> None:
    """Delete the tokens of a user's connection with an app, and with `codes` its authorization codes."""
    for model in _TOKEN_MODELS if codes else _TOKEN_MODELS[1:]:
        model.objects.filter(user_id=user_id, application_id=application_id).delete()


def token_find(plain: str) -> FoundToken | None:
    """Return the access token if it is valid, or None. One query."""
    row = (
        live_connections()
        .select_related("owner")
        .filter(
            client__accesstoken__token_checksum=key_hash(plain),
            client__accesstoken__expires__gt=timezone.now(),
            client__accesstoken__user=F("owner__user"),
        )
        .annotate(token_resource=F("client__accesstoken__resource"), token_scope=F("client__accesstoken__scope"))
        .first()
    )
    if row is None:
        return None
    return FoundToken(row, row.token_resource, frozenset(row.token_scope.split()))


def connection_of_token(plain: str, application: Application) -> ApiKey | None:
    """Return the live connection of an access or refresh token that works, or None for any other token, and for one of
    another app."""
    usable = Q(revoked=None) | ~long_ago("revoked", timezone.now(), age=GRACE_PERIOD)
    for tokens in (RefreshToken.objects.filter(usable), AccessToken.objects.all()):
        own = tokens.filter(token_checksum=key_hash(plain), application=application)
        user_id = own.values_list("user_id", flat=True).first()
        if user_id is not None:
            return connection_of(user_id, application)
    return None


def erase_tokens(owner_id: UUID, books: object) -> list[ErasureStep]:
    """Return the steps that erase the codes and tokens of a deleted owner. Connections are erased with the keys."""
    user = Owner.objects.filter(pk=owner_id).values("user_id")
    return [ErasureStep("", deleting(model.objects.filter(user_id__in=user))) for model in _TOKEN_MODELS]

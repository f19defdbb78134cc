"""Connected apps: listed and disconnected by their person or an administrator, swept, and deleted with the person"""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.admin import site
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, Grant, RefreshToken, set_token_value

from gateway.keys import own_key_create
from gateway.models import ApiKey
from gateway.oauth.connections import app_connect, token_find
from gateway.oauth.tokens import access_token_create, refresh_token_create
from gateway.sweep import accounts_sweep
from memories.audit.log import SYSTEM
from memories.database.batches import finish
from memories.forgetting import Scope, erasure_begin, erasure_slices
from memories.models import AuditEntry, Owner
from tests.admin_rows import staff_client
from tests.factories import app_make, key_make
from tests.pages import client_of, html_of, text_of
from tests.sweeps import reset_sweep_throttles
from tests.unsliced import forget_memories, forget_owner

pytestmark = pytest.mark.django_db
TABLES: tuple[Any, ...] = (Grant, AccessToken, RefreshToken)


def tokens_make(key: ApiKey, *, lifetime: timedelta = timedelta(hours=1)) -> str:
    """Create a code, an access token and a refresh token for a connection. Return the plain access token."""
    plain, shared = access_token_create(None), {"user_id": key.owner.user_id, "application": key.client}
    access = AccessToken(expires=timezone.now() + lifetime, scope="memory:read", resource=["r"], **shared)
    set_token_value(access, plain)
    access.save()
    refresh = RefreshToken(access_token=access, **shared)
    set_token_value(refresh, refresh_token_create(None))
    refresh.save()
    Grant.objects.create(code=plain[:20], expires=timezone.now() + timedelta(minutes=1), redirect_uri="x", **shared)
    return plain


def counts() -> list[int]:
    return [table.objects.count() for table in TABLES]


@pytest.mark.any_database
def test_the_account_page_shows_the_rights_and_last_use_of_an_app(alice: Owner) -> None:
    page = client_of(alice)
    assert "No apps yet." in html_of(page, "/account/")
    app_make(alice, book="code", read_only=True)
    shown = text_of(html_of(page, "/account/"))
    for words in ("Claude", "May read the book code", "claude.example", "connected", "never used", "testserver/mcp"):
        assert words in shown, words
    assert "No keys yet." in shown
    ApiKey.objects.update(last_used_at=timezone.now())
    assert "last used today" in text_of(html_of(page, "/account/"))


@pytest.mark.any_database
def test_a_person_disconnects_an_app(alice: Owner) -> None:
    key, page = app_make(alice), client_of(alice)
    plain = tokens_make(key)
    assert token_find(plain) is not None
    answer = page.post(f"/account/apps/{key.pk}/disconnect/")
    assert answer.headers["Location"] == "/account/?done=disconnected"
    assert token_find(plain) is None
    assert counts() == [0, 0, 0]
    assert "App disconnected." in html_of(page, answer.headers["Location"])
    assert "No apps yet." in html_of(page, "/account/")
    assert page.post(f"/account/apps/{key.pk}/disconnect/").status_code == 404


def test_nobody_else_sees_or_disconnects_an_app(alice: Owner, charlie: Owner) -> None:
    key, other = app_make(alice), client_of(charlie)
    assert "Claude" not in html_of(other, "/account/")
    assert other.post(f"/account/apps/{key.pk}/disconnect/").status_code == 404
    key.refresh_from_db()
    assert key.revoked_at is None


@pytest.mark.any_database
def test_a_connected_app_is_not_managed_as_a_key(alice: Owner) -> None:
    app, key = app_make(alice), key_make(alice)[0]
    page = client_of(alice)
    assert page.post(f"/account/keys/{app.pk}/revoke/").status_code == 404
    assert page.post(f"/account/apps/{key.pk}/disconnect/").status_code == 404
    for _ in range(45):
        app_make(alice)
    assert own_key_create(owner=alice, name="one more", by=SYSTEM)


def test_creating_a_key_or_connection_locks_the_owner_first(alice: Owner) -> None:
    client = app_make(alice).client
    assert client is not None
    ApiKey.objects.filter(client=client).delete()
    for create in (
        lambda: own_key_create(owner=alice, name="laptop", by=SYSTEM),
        lambda: app_connect(alice, client, book="main", read_only=True, by=SYSTEM),
    ):
        with CaptureQueriesContext(connection) as queries:
            create()
        first = next(query["sql"] for query in queries if query["sql"].startswith("SELECT"))
        assert first.startswith('SELECT "memories_owner"')
        assert first.endswith("FOR UPDATE") is connection.features.has_select_for_update


@pytest.mark.any_database
def test_an_administrator_sees_and_disconnects_an_app(alice: Owner) -> None:
    key, root = app_make(alice, book="code"), staff_client(superuser=True)
    plain = tokens_make(key)
    listed = root.get(reverse("admin:gateway_connectedapp_changelist")).content.decode()
    assert "Claude" in listed
    assert "code" in listed
    assert "Claude" not in root.get(reverse("admin:gateway_apikey_changelist")).content.decode()
    page = root.get(reverse("admin:gateway_connectedapp_change", args=[key.pk])).content.decode()
    assert "https://claude.example/api/mcp/auth_callback" in page
    root.post(reverse("admin:gateway_connectedapp_object_action", args=[key.pk]), {"verb": "disconnect"})
    assert token_find(plain) is None
    entry = AuditEntry.objects.get(action="key_revoke")
    assert (entry.kind, entry.object_id, entry.owner) == ("connected app", str(key.pk), "alice")


def test_the_admin_pages_of_the_oauth_library_are_hidden() -> None:
    assert not [model for model in site._registry if model._meta.app_label == "oauth2_provider"]
    assert staff_client(superuser=True).get("/admin/oauth2_provider/accesstoken/").status_code == 404


@pytest.mark.parametrize("scope", [Scope.ACCOUNT, Scope.OWNER])
def test_deleting_a_person_deletes_their_connections(alice: Owner, charlie: Owner, scope: Scope) -> None:
    tokens_make(app_make(alice))
    charlies_token = tokens_make(app_make(charlie))
    forget_owner(alice) if scope == Scope.ACCOUNT else forget_only_rows(alice)
    assert counts() == [1, 1, 1]
    assert token_find(charlies_token) is not None
    assert [key.owner_id for key in ApiKey.objects.all()] == [charlie.pk]


def forget_only_rows(owner: Owner) -> None:
    """Delete the data of an owner whose login stays."""
    finish(erasure_slices(erasure_begin(owner.pk, Scope.OWNER)))


def test_forgetting_memories_keeps_connections(alice: Owner) -> None:
    plain = tokens_make(app_make(alice))
    forget_memories(alice.pk)
    assert token_find(plain) is not None


def test_the_sweep_deletes_expired_rows(alice: Owner) -> None:
    plain = tokens_make(app_make(alice))
    accounts_sweep()
    assert counts() == [1, 1, 1]
    with time_machine.travel(timezone.now() + timedelta(days=29)):
        reset_sweep_throttles()
        accounts_sweep()
        assert counts() == [0, 1, 1]  # the token can still be refreshed
        assert token_find(plain) is None
    with time_machine.travel(timezone.now() + timedelta(days=32)):
        reset_sweep_throttles()
        accounts_sweep()
        assert counts() == [0, 0, 0]


def test_expired_rows_are_looked_for_once_an_hour(alice: Owner) -> None:
    accounts_sweep()
    with CaptureQueriesContext(connection) as sweeping:
        accounts_sweep()
    assert "oauth2_provider_grant" not in str(sweeping.captured_queries)


def test_a_used_refresh_token_is_kept_as_long_as_it_could_be_replayed(alice: Owner) -> None:
    tokens_make(app_make(alice))
    RefreshToken.objects.update(revoked=timezone.now())
    with time_machine.travel(timezone.now() + timedelta(days=29)):
        reset_sweep_throttles()
        accounts_sweep()
        assert RefreshToken.objects.exists()
    with time_machine.travel(timezone.now() + timedelta(days=31)):
        reset_sweep_throttles()
        accounts_sweep()
        assert not RefreshToken.objects.exists()


def test_an_app_that_was_disconnected_long_ago_is_deleted(alice: Owner, settings: Any) -> None:
    key = app_make(alice)
    ApiKey.objects.update(revoked_at=timezone.now())
    with time_machine.travel(timezone.now() + timedelta(days=settings.REVOKED_KEY_DAYS + 1)):
        accounts_sweep()
    assert not ApiKey.objects.filter(pk=key.pk).exists()
    assert not Application.objects.exists()


def test_reconnecting_after_a_disconnection_creates_a_new_connection(alice: Owner) -> None:
    first = app_make(alice)
    client = first.client
    assert client is not None
    client_of(alice).post(f"/account/apps/{first.pk}/disconnect/")
    second = app_connect(alice, client, book="main", read_only=True, by=SYSTEM)
    assert second.pk != first.pk
    assert ApiKey.objects.filter(revoked_at=None).get() == second

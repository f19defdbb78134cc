"""Logins: listed and ended on the account page, and ended when an account is deactivated"""

from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as LoginSession
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import DjangoCaptureOnCommitCallbacks

from gateway import sockets
from gateway.accounts import logins
from gateway.authentication import find_caller
from gateway.keys import key_hash
from gateway.models import ApiKey, Login
from memories.errors import Unauthorized
from memories.models import AuditEntry, Memory, Owner
from tests.factories import key_make, login_make, memory_make
from tests.pages import html_of, text_of

pytestmark = pytest.mark.django_db
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.5 Mobile/15E148 Safari/604.1"
)


def sign_in(name: str = "alice", agent: str = FIREFOX) -> Client:
    client = Client(HTTP_USER_AGENT=agent)
    assert client.post("/login/", {"username": name, "password": f"{name} knows it"}).status_code == 302
    return client


def listed(client: Client) -> str:
    page = text_of(html_of(client, "/account/"))
    return page.partition("Where you are signed in")[2].partition("API keys")[0]


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (FIREFOX, "Firefox on Linux"),
        (IPHONE, "Safari on iPhone"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/138.0 Safari/537.36", "Chrome on Windows"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/138.0 Safari/537.36 Edg/138.0", "Edge on Windows"),
        ("Mozilla/5.0 (Linux; Android 15) Chrome/138.0 Mobile Safari/537.36", "Chrome on Android"),
        ("curl/8.0", "A browser"),
        ("", "A browser"),
        ("<script>" * 1_000, "A browser"),
    ],
)
def test_the_device_is_named_from_its_user_agent(agent: str, words: str) -> None:
    assert logins.device_words(agent) == words


def test_the_account_page_lists_the_logins(alice: Owner, charlie: Owner) -> None:
    here, _, _ = sign_in(), sign_in(agent=IPHONE), sign_in("charlie")
    said = listed(here)
    assert "Firefox on Linux This browser · signed in" in said
    assert "Safari on iPhone Last seen" in said
    assert Login.objects.count() == 3


def test_the_last_use_of_a_login_is_stored_every_few_minutes(alice: Owner) -> None:
    client = sign_in()
    before = Login.objects.get().seen_at
    html_of(client, "/account/")
    assert Login.objects.get().seen_at == before
    logins._recent.clear()
    with time_machine.travel(timezone.now() + timedelta(minutes=6)):
        html_of(client, "/memories/")
    assert Login.objects.get().seen_at - before > timedelta(minutes=5)


def test_an_old_login_without_a_row_is_listed_when_it_is_used(alice: Owner) -> None:
    client = sign_in()
    Login.objects.all().delete()
    logins._recent.clear()
    html_of(client, "/memories/")
    assert Login.objects.get().device == "Firefox on Linux"


def test_the_migration_lists_existing_logins(alice: Owner) -> None:
    sign_in()
    Login.objects.all().delete()
    LoginSession.objects.create(session_key="x", session_data="nonsense", expire_date=timezone.now() + timedelta(1))
    import_module("gateway.migrations.0012_people").note_logins(apps, None)
    assert Login.objects.get().user == alice.user


def test_ending_a_login_signs_it_out_and_closes_its_sockets(
    alice: Owner, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    here, there = sign_in(), sign_in(agent=IPHONE)
    hints: list[tuple[str, str]] = []
    monkeypatch.setattr(sockets, "send_hint", lambda group, message: hints.append((group, message["type"])))
    row = Login.objects.get(device="Safari on iPhone")
    group = sockets.login_group(row.session_id)
    with django_capture_on_commit_callbacks(execute=True):
        answer = here.post(f"/account/logins/{row.pk}/end/")
    assert answer.headers["Location"] == "/account/?done=signed-out"
    assert (here.get("/account/").status_code, there.get("/account/").status_code) == (200, 302)
    assert (group, "session.closed") in hints
    entry = AuditEntry.objects.get(action="logins_end")
    assert (entry.actor, entry.owner, entry.note) == ("alice", "alice", "From 1 browser.")


@pytest.mark.any_database
def test_ending_all_other_logins_keeps_this_browser_and_other_people(alice: Owner, charlie: Owner) -> None:
    here, there, charlies = sign_in(), sign_in(agent=IPHONE), sign_in("charlie")
    login_make(alice)
    here.post("/account/logins/end/")
    assert [client.get("/account/").status_code for client in (here, there, charlies)] == [200, 302, 200]
    assert AuditEntry.objects.get(action="logins_end").note == "From 2 browsers."
    assert "You are not signed in anywhere else." in listed(here)


def test_the_login_of_somebody_else_is_not_found(alice: Owner, charlie: Owner) -> None:
    there, charlies = sign_in(), sign_in("charlie")
    row = Login.objects.get(user=alice.user)
    assert charlies.post(f"/account/logins/{row.pk}/end/").status_code == 404
    assert there.get("/account/").status_code == 200


def test_no_page_shows_a_session_key(alice: Owner) -> None:
    client = sign_in()
    sign_in(agent=IPHONE)
    page = html_of(client, "/account/")
    assert not [key for key in LoginSession.objects.values_list("pk", flat=True) if key in page]


def test_changing_the_password_ends_the_other_logins(alice: Owner) -> None:
    here, there = sign_in(), sign_in(agent=IPHONE)
    new = {"old_password": "alice knows it", "new_password1": "a much longer one", "new_password2": "a much longer one"}
    assert here.post("/account/password/", new).status_code == 302
    assert (here.get("/account/").status_code, there.get("/account/").status_code) == (200, 302)
    assert [row.device for row in Login.objects.all()] == ["Firefox on Linux"]


def test_signing_out_deletes_the_row(alice: Owner) -> None:
    sign_in().post("/logout/")
    assert not Login.objects.exists()


def form_of(client: Client, path: str, **changed: Any) -> dict[str, Any]:
    """Return the fields that a page's form would post, with changes. False leaves a box unticked."""
    form = client.get(path).context["adminform"].form
    values = {name: form[name].value() for name in form.fields}
    sent = {name: value for name, value in (values | changed).items() if value not in (None, False)}
    for name in ("last_login", "date_joined"):
        moment = sent.pop(name, None)
        if moment is not None:
            sent |= {f"{name}_0": f"{moment:%Y-%m-%d}", f"{name}_1": f"{moment:%H:%M:%S}"}
    return sent


def test_deactivating_an_account_ends_logins_and_keys_at_once_and_keeps_its_data(alice: Owner, root: Client) -> None:
    client, (_, plain) = sign_in(), key_make(alice)
    memory_make(alice)
    find_caller(key_hash(plain), "", "")
    path = f"/admin/auth/user/{alice.user_id}/change/"
    assert root.post(path, form_of(root, path, is_active=False)).status_code == 302
    assert not User.objects.get(pk=alice.user_id).is_active
    assert client.get("/account/").status_code == 302
    assert not LoginSession.objects.filter(login__user=alice.user).exists()
    with pytest.raises(Unauthorized):
        find_caller(key_hash(plain), "", "")
    assert client.get("/api/memories", headers={"authorization": f"Bearer {plain}"}).status_code == 401
    assert Memory.objects.filter(owner=alice).exists()
    assert ApiKey.objects.filter(owner=alice, revoked_at=None).exists(), (
        "keys work again when the account is reactivated"
    )
    actions = set(AuditEntry.objects.filter(owner="alice").values_list("action", flat=True))
    assert {"user_deactivate", "logins_end"} <= actions
    assert AuditEntry.objects.filter(action="sign_in", actor="alice").exists()


@pytest.mark.any_database
def test_other_changes_of_an_account_keep_it_signed_in(alice: Owner, root: Client) -> None:
    client = sign_in()
    path = f"/admin/auth/user/{alice.user_id}/change/"
    assert root.post(path, form_of(root, path, first_name="Alice")).status_code == 302
    assert client.get("/account/").status_code == 200


def test_a_password_set_by_an_administrator_ends_the_logins(alice: Owner, root: Client) -> None:
    client = sign_in()
    new = {"password1": "set by somebody else", "password2": "set by somebody else", "usable_password": "true"}
    assert root.post(f"/admin/auth/user/{alice.user_id}/password/", new).status_code == 302
    assert client.get("/account/").status_code == 302
    assert not Login.objects.filter(user=alice.user).exists()


def test_the_user_form_explains_the_roles(alice: Owner, root: Client) -> None:
    page = text_of(html_of(root, f"/admin/auth/user/{alice.user_id}/change/"))
    for words in (
        "Auditor (staff status, group “memory auditor”)",
        "Administrator (staff status and superuser status)",
    ):
        assert words in page
    assert "Untick this instead of deleting an account" in page


def test_the_admin_password_page_redirects_to_the_account_page(root: Client) -> None:
    assert root.get("/admin/password_change/").headers["Location"] == "/account/"

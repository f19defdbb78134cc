"""The account page: password, keys, time zone, and deletion of the account"""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gateway.accounts.sign_in import password_is_correct
from gateway.authentication import find_caller
from gateway.chat import account
from gateway.keys import key_hash
from gateway.models import Agent, ApiKey, Message, Session
from memories import forgetting
from memories.forgetting import erasure_begin
from memories.models import Erasure, Memory, Owner, Revision
from tests.factories import key_make, memory_make, session_make
from tests.pages import client_of, html_of, text_of
from tests.unsliced import forget_owner

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("whole_deletions")]


def password_form(**changed: str) -> dict[str, str]:
    new = "a much longer one"
    return {"old_password": "alice knows it", "new_password1": new, "new_password2": new, **changed}


def test_anonymous_visitors_are_sent_to_the_sign_in_page() -> None:
    assert Client().get("/account/").headers["Location"].startswith("/login/?next=")
    for path in ("password", "time-zone", "keys", f"keys/{uuid4()}/revoke", "delete"):
        response = Client().post(f"/account/{path}/")
        assert response.status_code == 302, path
        assert response.headers["Location"].startswith("/login/?next="), path


def test_a_form_from_another_site_is_refused(alice: Owner) -> None:
    client = Client(enforce_csrf_checks=True)
    assert alice.user is not None
    client.force_login(alice.user)
    for path in ("password", "time-zone", "keys", "delete"):
        assert client.post(f"/account/{path}/", {"line": "delete everything"}).status_code == 403
    assert User.objects.filter(username="alice").exists()


def test_an_account_that_is_deactivated_while_its_password_changes_stays_deactivated(
    page: Client, alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deactivated(*arguments: Any) -> None:
        """Let an administrator deactivate the account while the old password is checked."""
        password_is_correct(*arguments)
        User.objects.filter(pk=alice.user_id).update(is_active=False)

    monkeypatch.setattr("gateway.chat.account.password_is_correct", deactivated)
    page.post("/account/password/", password_form())
    user = User.objects.get(pk=alice.user_id)
    assert (user.is_active, user.check_password("a much longer one")) == (False, True)


def test_changing_the_password_ends_other_logins(page: Client, alice: Owner) -> None:
    elsewhere = client_of(alice)
    response = page.post("/account/password/", password_form())
    assert response.headers["Location"] == "/account/?done=password"
    assert "Password changed." in html_of(page, "/account/?done=password")
    assert elsewhere.get("/account/").status_code == 302
    assert alice.user is not None
    alice.user.refresh_from_db()
    assert alice.user.check_password("a much longer one")


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"old_password": "wrong"}, "The current password is not correct."),
        ({"new_password2": "another long one"}, "The two password fields didn’t match."),
        ({"new_password1": "short", "new_password2": "short"}, "too short"),
    ],
)
def test_an_invalid_new_password_changes_nothing(
    page: Client, alice: Owner, changed: dict[str, str], words: str
) -> None:
    response = page.post("/account/password/", password_form(**changed))
    assert response.status_code == 400
    text = text_of(response.content.decode())
    assert words in text
    assert "alice knows it" not in text
    assert alice.user is not None
    alice.user.refresh_from_db()
    assert alice.user.check_password("alice knows it")


def test_a_new_key_is_shown_once_and_works(page: Client, alice: Owner) -> None:
    html = page.post("/account/keys/", {"name": "Open WebUI"}).content.decode()
    plain = re.findall(r"dbk_[\w-]{40,}", html)[0]
    key = ApiKey.objects.get()
    assert (key.name, key.read_only, key.trusted) == ("Open WebUI", False, False)
    assert find_caller(key_hash(plain), "", "").owner_id == alice.pk
    assert plain not in html_of(page, "/account/")


def test_a_read_only_key_is_labelled(page: Client) -> None:
    page.post("/account/keys/", {"name": "Dashboard", "read_only": "on"})
    assert ApiKey.objects.get().read_only
    assert "May read ·" in text_of(html_of(page, "/account/"))


def test_an_htmx_request_gets_only_the_keys_section(page: Client) -> None:
    html = page.post("/account/keys/", {"name": "Shell"}, headers={"HX-Request": "true"}).content.decode()
    assert html.startswith('<section class="account__part" id="keys"')
    assert "it is shown once" in html
    assert "<html" not in html


@pytest.mark.any_database
@pytest.mark.parametrize("name", ["", "   ", "x" * 81])
def test_a_key_needs_a_name(page: Client, name: str) -> None:
    response = page.post("/account/keys/", {"name": name})
    assert response.status_code == 400
    assert "A key needs a name" in response.content.decode()
    assert not ApiKey.objects.exists()


def test_a_null_character_in_a_name_is_removed(page: Client) -> None:
    assert page.post("/account/keys/", {"name": "My\x00 app"}).status_code == 200
    assert ApiKey.objects.get().name == "My app"


def test_a_form_cannot_make_a_key_trusted(page: Client) -> None:
    page.post("/account/keys/", {"name": "App", "trusted": "on"})
    assert not ApiKey.objects.get().trusted


@pytest.mark.any_database
def test_the_number_of_keys_is_limited_to_fifty(page: Client, alice: Owner) -> None:
    for _ in range(50):
        key_make(alice)
    response = page.post("/account/keys/", {"name": "One more"})
    assert "You have 50 keys. Revoke one first." in response.content.decode()
    assert ApiKey.objects.count() == 50


def test_a_key_shows_its_last_use_and_can_be_revoked(page: Client, alice: Owner) -> None:
    key, _ = key_make(alice)
    ApiKey.objects.update(last_used_at=timezone.now() - timedelta(minutes=1))
    assert "last used" in text_of(html_of(page, "/account/"))
    response = page.post(f"/account/keys/{key.pk}/revoke/")
    assert response.headers["Location"] == "/account/?done=revoked"
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert "No keys yet." in html_of(page, "/account/")


def test_charlie_neither_sees_nor_revokes_alices_key(alice: Owner, charlie: Owner) -> None:
    key, _ = key_make(alice)
    client = client_of(charlie)
    assert key.prefix not in html_of(client, "/account/")
    assert client.post(f"/account/keys/{key.pk}/revoke/").status_code == 404
    key.refresh_from_db()
    assert key.revoked_at is None


@pytest.mark.parametrize("name", ["Europe/Stockholm", "Etc/GMT-3"])  # a browser's may be one that is not listed
def test_the_time_zone_can_be_chosen(page: Client, alice: Owner, name: str) -> None:
    response = page.post("/account/time-zone/", {"time_zone": name})
    assert response.headers["Location"] == "/account/?done=zone"
    alice.refresh_from_db()
    assert alice.time_zone == name
    assert f"<option selected>{name}</option>" in html_of(page, "/account/")


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/passwd", "/etc/localtime"])
def test_an_unknown_time_zone_is_refused(page: Client, alice: Owner, name: str) -> None:
    response = page.post("/account/time-zone/", {"time_zone": name})
    assert response.status_code == 400
    assert "There is no such time zone." in response.content.decode()
    alice.refresh_from_db()
    assert alice.time_zone == ""


def delete_form(**changed: str) -> dict[str, str]:
    return {"line": "delete everything", "password": "alice knows it", **changed}


@pytest.mark.parametrize("changed", [{"line": "delete"}, {"line": ""}, {"password": "wrong"}, {"password": ""}])
def test_deletion_needs_the_line_and_the_password(page: Client, alice: Owner, changed: dict[str, str]) -> None:
    memory_make(alice)
    assert page.post("/account/delete/", delete_form(**changed)).status_code == 400
    assert Memory.objects.count() == 1
    assert User.objects.filter(username="alice").exists()


def test_a_deletion_that_is_confirmed_twice_says_that_it_is_done(
    page: Client, alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin_after_another(owner_id: UUID, *given: Any, **options: Any) -> Erasure:
        forget_owner(alice)
        return erasure_begin(owner_id, *given, **options)

    monkeypatch.setattr(account, "erasure_begin", begin_after_another)
    page.raise_request_exception = False
    response = page.post("/account/delete/", delete_form())
    assert (response.status_code, "This was deleted in the meantime" in response.content.decode()) == (404, True)


def test_a_deletion_that_meets_a_row_stored_at_the_same_moment_goes_on_later(
    page: Client, alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(owner: Owner) -> dict[str, int]:
        raise IntegrityError("an answer that ended just now refers to this owner")

    with monkeypatch.context() as patch:
        patch.setattr(forgetting, "owner_delete", refuse)
        assert "Everything is being deleted." in page.post("/account/delete/", delete_form()).content.decode()
    Erasure.objects.update(leased_until=timezone.now())
    forgetting.forgetting_sweep()
    assert not User.objects.filter(username="alice").exists()


def test_deletion_removes_everything_and_shows_a_receipt(
    page: Client, alice: Owner, charlie: Owner, bob: Owner, agent: Agent
) -> None:
    memory_make(alice, "Alice keeps bees.")
    memory_make(charlie, "Charlie keeps goats.")
    session = session_make(alice, agent)
    Message.objects.create(owner=alice, session=session, seq=1, role="user", text="I keep bees.")
    key_make(alice)
    response = page.post("/account/delete/", delete_form())
    assert response.status_code == 200
    text = text_of(response.content.decode())
    assert "Everything is deleted." in text
    for words in ("memories 1", "sessions 1", "messages 1", "API keys 1"):
        assert words in text
    assert "bees" not in text
    assert not User.objects.filter(username="alice").exists()
    assert list(Owner.objects.order_by("user__username")) == [bob, charlie]
    for rows in (Session, Message, ApiKey):
        assert not rows.objects.exists()
    assert Memory.objects.get().content == "Charlie keeps goats."
    assert Revision.objects.count() == 1
    assert page.get("/account/").status_code == 302


@pytest.mark.any_database
def test_the_only_administrator_keeps_an_empty_login(bob: Owner) -> None:
    memory_make(bob, "Bob keeps ducks.")
    client = client_of(bob)
    assert "you are the only administrator here" in html_of(client, "/account/")
    response = client.post("/account/delete/", {"line": "delete everything", "password": "bob knows it"})
    assert "Your login stays" in response.content.decode()
    assert User.objects.filter(username="bob").exists()
    assert not Memory.objects.exists()
    assert not Owner.objects.exists()


def test_one_of_two_administrators_is_deleted_completely(bob: Owner) -> None:
    User.objects.create_user("dora", is_superuser=True)
    client_of(bob).post("/account/delete/", {"line": "delete everything", "password": "bob knows it"})
    assert not User.objects.filter(username="bob").exists()


@pytest.mark.any_database
def test_the_number_of_queries_does_not_grow_with_the_keys(page: Client, alice: Owner) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            html_of(page, "/account/")
        return len(captured)

    for _ in range(3):
        key_make(alice)
    few = queries()
    for _ in range(27):
        key_make(alice)
    assert queries() == few


def test_key_names_are_escaped(page: Client) -> None:
    html = page.post("/account/keys/", {"name": "<b>bold</b>"}).content.decode()
    assert "<b>bold</b>" not in html


@pytest.mark.parametrize(
    ("referer", "page"),
    [
        ("http://testserver/account/?done=zone", "/account/"),
        ("http://elsewhere.example/account/", "/"),
        ("", "/"),
    ],
)
def test_a_form_sent_after_the_login_ended_returns_to_its_page(referer: str, page: str) -> None:
    answer = Client().post("/account/time-zone/", {"time_zone": "UTC"}, headers={"Referer": referer})
    assert (answer.status_code, answer["Location"]) == (302, f"/login/?next={page}")


def test_an_htmx_request_without_login_gets_an_empty_401() -> None:
    answer = Client().post("/account/keys/", {"name": "laptop"}, headers={"HX-Request": "true"})
    assert (answer.status_code, answer.content) == (401, b"")

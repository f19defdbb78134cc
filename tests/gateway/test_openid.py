"""/login/sso/: sign-in with an OpenID provider, which is a real server on loopback here"""

import logging
from collections.abc import Generator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session as LoginSession
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from gateway.accounts.openid import PENDING_SECONDS
from gateway.keys import valid_keys
from gateway.models import Identity, Login
from memories.audit.auditors import AUDITORS
from memories.models import AuditEntry, Owner
from tests.factories import app_make, key_make, owner_make
from tests.openid_server import ALICE, OpenIDServer
from tests.pages import client_of, html_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def provider(settings: Any) -> Generator[OpenIDServer]:
    server = OpenIDServer()
    settings.OIDC = server.configured()
    yield server
    server.close()


def sign_in(provider: OpenIDServer, client: Client | None = None, after: str = "") -> Any:
    """Go the whole way; the answer to what the provider led back to."""
    client = client or Client()
    begun = client.get(reverse("openid-begin"), {"next": after} if after else {})
    assert begun.status_code == 302, begun.content
    assert begun.headers["Location"].startswith(f"{provider.issuer}/authorize?")
    back = provider.authorized(begun.headers["Location"])
    return client.get(back.removeprefix("http://testserver"))


def signed_in_as(client: Client) -> str:
    """The name of the account that a client is signed in as, or ""."""
    key = client.session.get("_auth_user_id")
    return User.objects.get(pk=key).username if key else ""


def test_without_a_provider_there_is_no_way_in() -> None:
    client = Client()
    assert client.get(reverse("openid-begin")).status_code == 404
    assert client.get(reverse("openid-callback")).status_code == 404
    assert "Sign in with" not in html_of(client, "/login/")


def test_the_page_offers_it_and_says_where_to_go_on(provider: OpenIDServer) -> None:
    page = html_of(Client(), "/login/?next=/memories/")
    assert "Sign in with Example" in page
    assert 'href="/login/sso/?next=%2Fmemories%2F"' in page


def test_the_first_sign_in_makes_a_user_and_an_owner(provider: OpenIDServer) -> None:
    client = Client()
    answer = sign_in(provider, client, "/memories/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/memories/")
    user = User.objects.get()
    assert (user.username, user.email, user.first_name) == ("alice.w", "alice@example.org", "Alice")
    assert not user.has_usable_password()
    assert (user.is_staff, user.is_superuser) == (False, False)
    assert Owner.objects.filter(user=user).exists()
    assert signed_in_as(client) == "alice.w"
    assert Login.objects.get().user == user
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True)) == ["identity_link", "sign_in"]


def test_the_next_sign_in_finds_the_same_user_whatever_they_are_called(provider: OpenIDServer) -> None:
    sign_in(provider)
    provider.person = {"sub": ALICE["sub"], "preferred_username": "bob", "email": "new@example.org"}
    assert sign_in(provider).status_code == 302
    assert User.objects.get().username == "alice.w"


def test_a_verified_address_links_to_the_account_that_has_it(provider: OpenIDServer) -> None:
    alice = owner_make("alice", email="Alice@Example.org")
    client = Client()
    sign_in(provider, client)
    assert signed_in_as(client) == "alice"
    assert Identity.objects.get().user == alice.user
    assert AuditEntry.objects.get(action="identity_link").owner == "alice"


@pytest.mark.parametrize("verified", [False, None, "true", 1])
def test_an_unverified_address_links_to_nobody_and_is_not_kept(provider: OpenIDServer, verified: object) -> None:
    owner_make("alice", email="alice@example.org", is_staff=True)
    provider.person = {**ALICE, "email_verified": verified}
    client = Client()
    sign_in(provider, client)
    assert signed_in_as(client) == "alice.w"
    assert User.objects.get(username="alice.w").email == ""


def test_an_address_that_no_database_stores_is_not_kept(provider: OpenIDServer) -> None:
    provider.person = {**ALICE, "email": "a NUL \0@example.org"}
    assert sign_in(provider).status_code == 302
    assert User.objects.get().email == ""


def test_an_address_that_was_given_on_does_not_open_the_account_of_who_had_it(provider: OpenIDServer) -> None:
    sign_in(provider)
    provider.person = {**ALICE, "sub": "somebody else", "preferred_username": "eve"}
    client = Client()
    sign_in(provider, client)
    assert signed_in_as(client) == "eve"
    assert User.objects.get(username="eve").email == ""


def test_an_address_of_two_accounts_opens_neither(provider: OpenIDServer) -> None:
    for name in ("alice", "bob"):
        owner_make(name, email="alice@example.org")
    client = Client()
    sign_in(provider, client)
    assert signed_in_as(client) == "alice.w"


def test_a_name_that_is_taken_gets_a_number(provider: OpenIDServer) -> None:
    owner_make("Alice.W")
    client = Client()
    sign_in(provider, client)
    assert signed_in_as(client) == "alice.w-2"


def test_a_name_of_other_signs_becomes_one_that_accounts_may_have(provider: OpenIDServer) -> None:
    provider.person = {**ALICE, "preferred_username": "a/b\\<c> " + "x" * 300}
    client = Client()
    sign_in(provider, client)
    assert signed_in_as(client).startswith("a-b-c-xxx")
    assert len(signed_in_as(client)) <= 150


def test_an_account_that_is_linked_by_its_address_loses_the_password_that_others_may_know(
    provider: OpenIDServer, settings: Any
) -> None:
    """Somebody of the staff may have prepared the account, and single sign-on may give it a role."""
    alice = owner_make("alice", email="alice@example.org")
    prepared = client_of(alice)
    settings.OIDC = provider.configured(roles={"admins": "administrator"})
    provider.person = {**ALICE, "groups": ["admins"]}
    client = Client()
    sign_in(provider, client)
    assert User.objects.get().is_superuser
    assert not User.objects.get().has_usable_password()
    assert client.get("/account/").status_code == 200
    assert prepared.get("/account/").status_code == 302
    assert list(Login.objects.values_list("session_id", flat=True)) == [client.session.session_key]


@pytest.mark.parametrize("password", [True, False])
def test_an_account_that_is_linked_by_its_address_loses_the_keys_and_apps_that_others_may_hold(
    provider: OpenIDServer, password: bool
) -> None:
    alice = owner_make("alice", email="alice@example.org")
    if not password:
        assert alice.user is not None
        alice.user.set_unusable_password()
        alice.user.save()
    key, plain = key_make(alice)
    app, others = app_make(alice), key_make(owner_make("bob"))[0]
    sign_in(provider)
    assert not valid_keys().filter(pk__in=[key.pk, app.pk]).exists()
    assert Client().get("/v1/models", headers={"authorization": f"Bearer {plain}"}).status_code == 401
    assert valid_keys().get() == others
    assert AuditEntry.objects.filter(action="key_revoke", owner="alice").count() == 2
    mine, _ = key_make(alice)
    sign_in(provider)
    assert valid_keys().filter(pk=mine.pk).exists(), "what was made after it stays"


def test_a_password_that_was_set_before_groups_gave_a_role_ends_with_the_role(
    provider: OpenIDServer, settings: Any
) -> None:
    sign_in(provider)
    user = User.objects.get()
    user.set_password("somebody of the staff knows it")
    user.save()
    prepared = client_of(Owner.objects.get(user=user))
    key_make(Owner.objects.get(user=user))
    settings.OIDC = provider.configured(roles={"auditors": "auditor"})
    provider.person = {**ALICE, "groups": ["auditors"]}
    client = Client()
    sign_in(provider, client)
    assert not User.objects.get().has_usable_password()
    assert client.get("/account/").status_code == 200
    assert prepared.get("/account/").status_code == 302
    assert not valid_keys().exists(), "a key of an auditor reads the audit log"


def test_an_administrator_keeps_the_password_for_when_the_provider_is_away(provider: OpenIDServer) -> None:
    key_make(owner_make("alice", email="alice@example.org", is_staff=True, is_superuser=True))
    sign_in(provider)
    assert valid_keys().exists()
    assert User.objects.get().has_usable_password()


def test_an_address_that_only_looks_alike_opens_nothing(provider: OpenIDServer) -> None:
    """PostgreSQL takes a dotless i for an i where it compares without regard to case."""
    owner_make("alice", email="alice@example.org")
    provider.person = {**ALICE, "email": "al\u0131ce@example.org"}
    client = Client()
    sign_in(provider, client)
    assert signed_in_as(client) == "alice.w"


@pytest.mark.parametrize("linked", [True, False], ids=["linked", "known by address"])
def test_an_account_that_is_switched_off_stays_so(provider: OpenIDServer, linked: bool) -> None:
    if linked:
        sign_in(provider)
    else:
        owner_make("alice", email="alice@example.org")
    User.objects.update(is_active=False)
    client = Client()
    answer = sign_in(provider, client)
    assert (answer.status_code, signed_in_as(client)) == (403, "")
    assert "This account is deactivated." in answer.content.decode()
    assert User.objects.count() == 1


@pytest.mark.parametrize(
    ("groups", "staff", "superuser", "auditor"),
    [
        (["people"], False, False, False),
        (["people", "auditors"], True, False, True),
        ("admins", True, True, False),
        (["people", "auditors", "admins"], True, True, False),
        (["helpers"], True, False, False),
    ],
)
def test_groups_give_the_highest_of_their_roles(
    provider: OpenIDServer, settings: Any, groups: object, staff: bool, superuser: bool, auditor: bool
) -> None:
    roles = {"people": "user", "auditors": "auditor", "admins": "administrator", "helpers": "staff"}
    settings.OIDC = provider.configured(roles=roles, groups_claim="memberOf")
    provider.person = {**ALICE, "memberOf": groups}
    sign_in(provider)
    user = User.objects.get()
    assert (user.is_staff, user.is_superuser) == (staff, superuser)
    assert user.groups.filter(name=AUDITORS).exists() == auditor


def test_groups_are_looked_at_with_each_sign_in(provider: OpenIDServer, settings: Any) -> None:
    settings.OIDC = provider.configured(roles={"auditors": "auditor"})
    provider.person = {**ALICE, "groups": ["auditors"]}
    sign_in(provider)
    user = User.objects.get()
    user.groups.add(Group.objects.create(name="more"))
    provider.person = dict(ALICE)
    sign_in(provider)
    user = User.objects.get()
    assert (user.is_staff, user.groups.count()) == (False, 0)
    notes = AuditEntry.objects.filter(action="role_change").order_by("pk").values_list("note", flat=True)
    assert list(notes) == ["To auditor, as single sign-on says.", "To user, as single sign-on says."]


def test_without_a_map_roles_stay_as_the_administration_gave_them(provider: OpenIDServer) -> None:
    owner_make("alice", email="alice@example.org", is_staff=True)
    provider.person = {**ALICE, "groups": ["whatever"]}
    sign_in(provider)
    assert User.objects.get().is_staff


def test_where_a_group_is_named_for_users_nobody_else_gets_in(provider: OpenIDServer, settings: Any) -> None:
    settings.OIDC = provider.configured(roles={"people": "user"})
    answer = sign_in(provider)
    assert answer.status_code == 403
    assert "not in a group that may use Daybook" in answer.content.decode()
    assert not User.objects.exists()


def test_the_only_administrator_stays_one(provider: OpenIDServer, settings: Any) -> None:
    owner_make("alice", email="alice@example.org", is_staff=True, is_superuser=True)
    settings.OIDC = provider.configured(roles={"people": "auditor"})
    sign_in(provider)
    assert User.objects.get().is_superuser


@pytest.mark.parametrize("sign", ["none", "HS256", "stranger"])
def test_a_token_that_the_provider_did_not_sign_is_refused(provider: OpenIDServer, sign: str) -> None:
    provider.sign = sign
    client = Client()
    answer = sign_in(provider, client)
    assert (answer.status_code, signed_in_as(client)) == (502, "")
    assert not User.objects.exists()


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"aud": "another app"},
        {"nonce": "of another sign-in"},
        {"nonce": None},
        {"exp": 1_000_000_000},
        {"exp": None},
        {"sub": None},
        {"sub": "x" * 256},
        {"sub": "a NUL \0"},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_this_sign_in_is_refused(provider: OpenIDServer, claims: dict[str, Any]) -> None:
    provider.claims = claims
    client = Client()
    answer = sign_in(provider, client)
    assert answer.status_code in {400, 502}
    assert (signed_in_as(client), User.objects.count()) == ("", 0)


def test_a_callback_that_nobody_began_here_is_refused(provider: OpenIDServer) -> None:
    begun = Client().get(reverse("openid-begin"))
    back = provider.authorized(begun.headers["Location"]).removeprefix("http://testserver")
    elsewhere = Client()
    assert elsewhere.get(back).status_code == 400
    assert signed_in_as(elsewhere) == ""
    assert "/token" not in provider.asked


def test_a_sign_in_that_was_only_begun_is_soon_forgotten(provider: OpenIDServer) -> None:
    client = Client()
    begun = client.get(reverse("openid-begin"))
    assert LoginSession.objects.get().expire_date <= timezone.now() + timedelta(seconds=PENDING_SECONDS)
    client.get(provider.authorized(begun.headers["Location"]).removeprefix("http://testserver"))
    assert LoginSession.objects.get().expire_date > timezone.now() + timedelta(days=10)
    client.get(reverse("openid-begin"))
    assert LoginSession.objects.get().expire_date > timezone.now() + timedelta(days=10)


def test_a_code_is_good_for_one_callback(provider: OpenIDServer) -> None:
    client = Client()
    begun = client.get(reverse("openid-begin"))
    back = provider.authorized(begun.headers["Location"]).removeprefix("http://testserver")
    assert [client.get(back).status_code, client.get(back).status_code] == [302, 400]


def test_a_person_who_is_refused_there_is_told(provider: OpenIDServer) -> None:
    provider.refuses = "access_denied"
    answer = sign_in(provider)
    assert answer.status_code == 400
    assert "You are not signed in" in answer.content.decode()


def test_a_provider_that_calls_itself_otherwise_is_not_used(provider: OpenIDServer) -> None:
    provider.issuer_said = "https://evil.example"
    assert Client().get(reverse("openid-begin")).status_code == 502


def test_a_provider_that_is_away_is_said_and_found_again(provider: OpenIDServer, settings: Any) -> None:
    settings.OIDC = provider.configured(issuer="http://127.0.0.1:9")
    assert Client().get(reverse("openid-begin")).status_code == 502
    settings.OIDC = provider.configured()
    assert sign_in(provider).status_code == 302


def test_keys_that_were_renewed_are_read_again(provider: OpenIDServer) -> None:
    sign_in(provider)
    provider.renew_key()
    assert sign_in(provider).status_code == 302


def test_what_the_token_leaves_out_comes_from_userinfo_of_the_same_person(provider: OpenIDServer) -> None:
    provider.userinfo = {"sub": ALICE["sub"], "email": "alice@example.org", "email_verified": True}
    provider.person = {"sub": ALICE["sub"]}
    sign_in(provider)
    assert User.objects.get().email == "alice@example.org"


@pytest.mark.parametrize(("told", "linked"), [("alice@example.org", "alice"), ("else@example.org", "alice.w")])
def test_an_address_is_verified_by_who_says_it_of_that_address(provider: OpenIDServer, told: str, linked: str) -> None:
    owner_make("alice", email="alice@example.org")
    provider.userinfo = {"sub": ALICE["sub"], "email": told, "email_verified": True}
    provider.person = {name: value for name, value in ALICE.items() if name != "email_verified"}
    client = Client()
    sign_in(provider, client)
    assert signed_in_as(client) == linked


def test_userinfo_of_somebody_else_is_passed_over(provider: OpenIDServer) -> None:
    owner_make("bob", email="bob@example.org")
    provider.userinfo = {"sub": "bob", "email": "bob@example.org", "email_verified": True}
    provider.person = {"sub": ALICE["sub"], "preferred_username": "alice.w"}
    client = Client()
    sign_in(provider, client)
    assert signed_in_as(client) == "alice.w"


@pytest.mark.parametrize("after", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_nobody_is_led_elsewhere_after_it(provider: OpenIDServer, after: str) -> None:
    assert sign_in(provider, after=after).headers["Location"] == "/"


def test_an_app_that_waits_for_the_end_of_the_sign_in_keeps_its_window(provider: OpenIDServer) -> None:
    policy = "Cross-Origin-Opener-Policy"
    assert sign_in(provider, after="/oauth/authorize?client_id=x").headers[policy] == "unsafe-none"
    assert sign_in(provider, after="/memories/").headers[policy] == "same-origin"


def test_no_token_code_or_address_is_logged(provider: OpenIDServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sign_in(provider)
    provider.sign = "stranger"
    sign_in(provider)
    said = " ".join(record.getMessage() for record in caplog.records if record.name.startswith("daybook"))
    assert "single sign-on failed" in said
    assert "alice" not in said
    assert "eyJ" not in said


def test_a_stranger_fills_no_log(provider: OpenIDServer, caplog: pytest.LogCaptureFixture) -> None:
    assert Client().get(reverse("openid-callback"), {"error": "x" * 5_000, "state": "s"}).status_code == 400
    (line,) = [record.getMessage() for record in caplog.records if record.name == "daybook.sign_in"]
    assert len(line) < 300


def test_passwords_can_be_switched_off(provider: OpenIDServer, settings: Any, alice: Owner) -> None:
    settings.PASSWORDS = False
    client = Client()
    page = html_of(client, "/login/")
    assert 'name="password"' not in page
    assert "Forgot your password?" not in page
    answer = client.post("/login/", {"username": "alice", "password": "alice knows it"})
    assert (answer.status_code, signed_in_as(client)) == (403, "")
    assert "Passwords are not used here." in html_of(client, "/password/forgotten/")
    signed_in = client_of(alice)
    assert "Change password" not in html_of(signed_in, "/account/")
    assert signed_in.post("/account/password/", {"old_password": "alice knows it"}).status_code == 404
    assert sign_in(provider).status_code == 302


def test_who_has_no_password_deletes_everything_soon_after_signing_in(provider: OpenIDServer) -> None:
    client = Client()
    sign_in(provider, client)
    User.objects.update(last_login="2020-01-01T00:00:00Z")
    line = {"line": "delete everything"}
    refused = client.post("/account/delete/", line)
    assert (refused.status_code, "sign in again" in refused.content.decode()) == (400, True)
    sign_in(provider, client)
    assert client.post("/account/delete/", line).status_code == 200
    assert not User.objects.exists()
    assert not Identity.objects.exists()

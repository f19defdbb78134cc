"""/login/sso/: single sign-on with an OpenID provider, here a real server on loopback"""

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

from gateway.accounts import identities, openid_http
from gateway.accounts.openid import MAX_PENDING, PENDING_SECONDS
from gateway.accounts.openid_http import ANSWER_BYTES
from gateway.keys import valid_keys
from gateway.models import Identity, Login, Webhook
from memories.audit.auditors import AUDITORS
from memories.models import AuditEntry, Owner
from tests.factories import app_make, key_make, owner_make
from tests.gateway.receivers import webhook_make
from tests.openid_server import ALICE, OpenIDServer
from tests.pages import client_of, html_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def provider(settings: Any) -> Generator[OpenIDServer]:
    server = OpenIDServer()
    settings.OIDC = server.openid_settings()
    yield server
    server.close()


def begin(provider: OpenIDServer, client: Client, after: str = "") -> str:
    """Begin to sign in. Return the path to which the provider redirects the browser."""
    start = client.get(reverse("openid-begin"), {"next": after} if after else {})
    assert start.status_code == 302, start.content
    assert start.headers["Location"].startswith(f"{provider.issuer}/authorize?")
    return provider.redirect_of(start.headers["Location"]).removeprefix("http://testserver")


def sign_in(provider: OpenIDServer, client: Client | None = None, after: str = "") -> Any:
    """Go through the whole sign-in. Return the response to the provider's callback."""
    client = client or Client()
    return client.get(begin(provider, client, after))


def signed_in_as(client: Client) -> str:
    """Return the name of the account that a client is signed in as, or ""."""
    key = client.session.get("_auth_user_id")
    return User.objects.get(pk=key).username if key else ""


def account_of(provider: OpenIDServer) -> str:
    """Sign in with a new browser. Return the name of the account that it is signed in as."""
    client = Client()
    sign_in(provider, client)
    return signed_in_as(client)


def test_single_sign_on_is_off_without_a_provider() -> None:
    client = Client()
    assert client.get(reverse("openid-begin")).status_code == 404
    assert client.get(reverse("openid-callback")).status_code == 404
    assert "Sign in with" not in html_of(client, "/login/")


def test_the_sign_in_page_links_to_the_provider_and_keeps_the_next_page(provider: OpenIDServer) -> None:
    page = html_of(Client(), "/login/?next=/memories/")
    assert "Sign in with Example" in page
    assert 'href="/login/sso/?next=%2Fmemories%2F"' in page


def test_the_first_sign_in_creates_a_user_and_an_owner(provider: OpenIDServer) -> None:
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


def test_later_sign_ins_find_the_user_by_subject(provider: OpenIDServer) -> None:
    sign_in(provider)
    provider.person = {"sub": ALICE["sub"], "preferred_username": "bob", "email": "new@example.org"}
    assert sign_in(provider).status_code == 302
    assert User.objects.get().username == "alice.w"


def test_a_verified_address_links_to_the_account_with_that_address(provider: OpenIDServer) -> None:
    alice = owner_make("alice", email="Alice@Example.org")
    assert account_of(provider) == "alice"
    assert Identity.objects.get().user == alice.user
    assert AuditEntry.objects.get(action="identity_link").owner == "alice"


@pytest.mark.parametrize("verified", [False, None, "true", 1])
def test_an_unverified_address_links_to_nobody_and_is_not_stored(provider: OpenIDServer, verified: object) -> None:
    owner_make("alice", email="alice@example.org", is_staff=True)
    provider.person = {**ALICE, "email_verified": verified}
    assert account_of(provider) == "alice.w"
    assert User.objects.get(username="alice.w").email == ""


def test_an_address_with_a_null_character_is_not_stored(provider: OpenIDServer) -> None:
    provider.person = {**ALICE, "email": "a NUL \0@example.org"}
    assert sign_in(provider).status_code == 302
    assert User.objects.get().email == ""


def test_an_address_reassigned_to_another_person_does_not_open_the_old_account(provider: OpenIDServer) -> None:
    sign_in(provider)
    provider.person = {**ALICE, "sub": "somebody else", "preferred_username": "eve"}
    assert account_of(provider) == "eve"
    assert User.objects.get(username="eve").email == ""


def test_an_address_shared_by_two_accounts_opens_neither(provider: OpenIDServer) -> None:
    for name in ("alice", "bob"):
        owner_make(name, email="alice@example.org")
    assert account_of(provider) == "alice.w"


@pytest.mark.parametrize(("taken", "preferred"), [("Alice.W", "alice.w"), ("alice.w", "ａｌｉｃｅ．ｗ")])
def test_a_user_name_that_is_taken_or_only_looks_like_another_gets_a_number(
    provider: OpenIDServer, taken: str, preferred: str
) -> None:
    owner_make(taken)
    provider.person = {**ALICE, "preferred_username": preferred}
    assert account_of(provider) == "alice.w-2"


def test_a_user_name_that_others_take_at_the_same_time_is_tried_again(
    provider: OpenIDServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    User.objects.create_user("alice.w")
    found = ["alice.w-2", "alice.w", "alice.w", "alice.w"]
    monkeypatch.setattr(identities, "_free_name", lambda person: found.pop())
    assert account_of(provider) == "alice.w-2"


def test_a_user_name_with_invalid_characters_is_cleaned(provider: OpenIDServer) -> None:
    provider.person = {**ALICE, "preferred_username": "a/b\\<c> " + "x" * 300}
    client = Client()
    sign_in(provider, client)
    assert signed_in_as(client).startswith("a-b-c-xxx")
    assert len(signed_in_as(client)) <= 150


def test_linking_an_account_by_address_removes_its_password(provider: OpenIDServer, settings: Any) -> None:
    """A staff member may have created the account and know its password, and single sign-on may give it a role."""
    alice = owner_make("alice", email="alice@example.org")
    prepared = client_of(alice)
    settings.OIDC = provider.openid_settings(roles={"admins": "administrator"})
    provider.person = {**ALICE, "groups": ["admins"]}
    client = Client()
    sign_in(provider, client)
    assert User.objects.get().is_superuser
    assert not User.objects.get().has_usable_password()
    assert client.get("/account/").status_code == 200
    assert prepared.get("/account/").status_code == 302
    assert list(Login.objects.values_list("session_id", flat=True)) == [client.session.session_key]


@pytest.mark.parametrize("password", [True, False])
def test_linking_an_account_by_address_revokes_its_keys_apps_and_webhooks(
    provider: OpenIDServer, password: bool
) -> None:
    alice = owner_make("alice", email="alice@example.org")
    if not password:
        assert alice.user is not None
        alice.user.set_unusable_password()
        alice.user.save()
    key, plain = key_make(alice)
    app, others = app_make(alice), key_make(owner_make("bob"))[0]
    kept, _ = webhook_make(others.owner, "https://example.org/bob")
    webhook_make(alice, "https://example.org/somebody")
    sign_in(provider)
    assert Webhook.objects.get() == kept
    assert not valid_keys().filter(pk__in=[key.pk, app.pk]).exists()
    assert Client().get("/v1/models", headers={"authorization": f"Bearer {plain}"}).status_code == 401
    assert valid_keys().get() == others
    assert AuditEntry.objects.filter(action="key_revoke", owner="alice").count() == 2
    new_key, _ = key_make(alice)
    sign_in(provider)
    assert valid_keys().filter(pk=new_key.pk).exists(), "a key created afterwards stays valid"


@pytest.mark.any_database
@pytest.mark.parametrize("password", [True, False])
def test_gaining_a_role_from_groups_removes_an_earlier_password_and_keys(
    provider: OpenIDServer, settings: Any, password: bool
) -> None:
    sign_in(provider)
    user = User.objects.get()
    if password:
        user.set_password("somebody of the staff knows it")
        user.save()
    prepared = client_of(Owner.objects.get(user=user))
    key_make(Owner.objects.get(user=user))
    settings.OIDC = provider.openid_settings(roles={"auditors": "auditor"})
    provider.person = {**ALICE, "groups": ["auditors"]}
    client = Client()
    sign_in(provider, client)
    assert not User.objects.get().has_usable_password()
    assert client.get("/account/").status_code == 200
    assert not password or prepared.get("/account/").status_code == 302
    assert not valid_keys().exists(), "a key of an auditor could read the audit log"
    key_make(Owner.objects.get(user=user))
    sign_in(provider)
    assert valid_keys().exists(), "without a higher role, keys stay"


def test_an_administrator_keeps_the_password_for_provider_outages(provider: OpenIDServer) -> None:
    key_make(owner_make("alice", email="alice@example.org", is_staff=True, is_superuser=True))
    sign_in(provider)
    assert valid_keys().exists()
    assert User.objects.get().has_usable_password()


def test_a_lookalike_address_opens_nothing(provider: OpenIDServer) -> None:
    """PostgreSQL treats a dotless i as an i in case-insensitive comparisons."""
    owner_make("alice", email="alice@example.org")
    provider.person = {**ALICE, "email": "al\u0131ce@example.org"}
    assert account_of(provider) == "alice.w"


@pytest.mark.parametrize("linked", [True, False], ids=["linked", "known by address"])
def test_a_deactivated_account_cannot_sign_in(provider: OpenIDServer, linked: bool) -> None:
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
    settings.OIDC = provider.openid_settings(roles=roles, groups_claim="memberOf")
    provider.person = {**ALICE, "memberOf": groups}
    sign_in(provider)
    user = User.objects.get()
    assert (user.is_staff, user.is_superuser) == (staff, superuser)
    assert user.groups.filter(name=AUDITORS).exists() == auditor


def test_groups_are_evaluated_at_each_sign_in(provider: OpenIDServer, settings: Any) -> None:
    settings.OIDC = provider.openid_settings(roles={"auditors": "auditor"})
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


def test_without_role_mapping_roles_are_unchanged(provider: OpenIDServer) -> None:
    owner_make("alice", email="alice@example.org", is_staff=True)
    provider.person = {**ALICE, "groups": ["whatever"]}
    sign_in(provider)
    assert User.objects.get().is_staff


def test_with_a_group_for_users_everybody_else_is_refused(provider: OpenIDServer, settings: Any) -> None:
    settings.OIDC = provider.openid_settings(roles={"people": "user"})
    answer = sign_in(provider)
    assert answer.status_code == 403
    assert "not in a group that may use Daybook" in answer.content.decode()
    assert not User.objects.exists()


def test_the_only_administrator_keeps_the_role(provider: OpenIDServer, settings: Any) -> None:
    owner_make("alice", email="alice@example.org", is_staff=True, is_superuser=True)
    settings.OIDC = provider.openid_settings(roles={"people": "auditor"})
    sign_in(provider)
    assert User.objects.get().is_superuser


@pytest.mark.parametrize("sign", ["none", "HS256", "stranger"])
def test_a_token_not_signed_by_the_provider_is_refused(provider: OpenIDServer, sign: str) -> None:
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
def test_a_token_for_another_sign_in_is_refused(provider: OpenIDServer, claims: dict[str, Any]) -> None:
    provider.claims = claims
    client = Client()
    answer = sign_in(provider, client)
    assert answer.status_code in {400, 502}
    assert (signed_in_as(client), User.objects.count()) == ("", 0)


def test_a_callback_without_a_started_sign_in_is_refused(provider: OpenIDServer) -> None:
    elsewhere = Client()
    assert elsewhere.get(begin(provider, Client())).status_code == 400
    assert signed_in_as(elsewhere) == ""
    assert "/token" not in provider.requested_paths


def test_an_unfinished_sign_in_expires_soon(provider: OpenIDServer) -> None:
    client = Client()
    callback = begin(provider, client)
    assert LoginSession.objects.get().expire_date <= timezone.now() + timedelta(seconds=PENDING_SECONDS)
    client.get(callback)
    assert LoginSession.objects.get().expire_date > timezone.now() + timedelta(days=10)
    client.get(reverse("openid-begin"))
    assert LoginSession.objects.get().expire_date > timezone.now() + timedelta(days=10)


def test_unfinished_sign_ins_of_one_browser_are_limited(provider: OpenIDServer) -> None:
    client = Client()
    callbacks = [begin(provider, client, "/" + "n" * 10_000) for _ in range(8)]
    stored = client.session
    assert sum(key.startswith("_state_") for key in stored.keys()) == MAX_PENDING  # noqa: SIM118 - not a dictionary
    assert len(str(dict(stored.items()))) < 5_000
    oldest, *_, newest = callbacks
    assert [client.get(callback).status_code for callback in (oldest, newest)] == [400, 302]


def test_a_code_is_accepted_in_one_callback_only(provider: OpenIDServer) -> None:
    client = Client()
    callback = begin(provider, client)
    assert [client.get(callback).status_code, client.get(callback).status_code] == [302, 400]


def test_a_refusal_by_the_provider_is_reported(provider: OpenIDServer) -> None:
    provider.authorization_error = "access_denied"
    answer = sign_in(provider)
    assert answer.status_code == 400
    assert "You are not signed in" in answer.content.decode()


def test_a_provider_with_a_different_issuer_is_not_used(provider: OpenIDServer) -> None:
    provider.metadata_issuer = "https://evil.example"
    assert Client().get(reverse("openid-begin")).status_code == 502


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys", "/userinfo"])
def test_a_redirect_of_the_provider_is_not_followed(provider: OpenIDServer, path: str) -> None:
    provider.redirected_path, provider.userinfo = path, {"sub": ALICE["sub"]}
    if path == "/.well-known/openid-configuration":
        assert Client().get(reverse("openid-begin")).status_code == 502
    else:
        assert "You are not signed in" in sign_in(provider).content.decode()
    assert path in provider.requested_paths
    assert "/elsewhere" not in provider.requested_paths


def test_an_unreachable_provider_is_reported_and_retried(provider: OpenIDServer, settings: Any) -> None:
    settings.OIDC = provider.openid_settings(issuer="http://127.0.0.1:9")
    assert Client().get(reverse("openid-begin")).status_code == 502
    settings.OIDC = provider.openid_settings()
    assert sign_in(provider).status_code == 302


def test_a_large_answer_of_the_provider_is_not_read(provider: OpenIDServer) -> None:
    provider.padding = ANSWER_BYTES
    assert Client().get(reverse("openid-begin")).status_code == 502
    provider.padding = 0
    assert sign_in(provider).status_code == 302


@pytest.mark.parametrize("by_proxy", [False, True])
@pytest.mark.parametrize("slow", ["pause", "head_pause"])
def test_a_provider_that_keeps_answering_slowly_is_given_up(
    provider: OpenIDServer, monkeypatch: pytest.MonkeyPatch, slow: str, by_proxy: bool
) -> None:
    monkeypatch.setenv("no_proxy", "" if by_proxy else "*")
    monkeypatch.setenv("http_proxy", provider.issuer)  # a proxy is sent the same request with the whole address
    monkeypatch.setattr(openid_http, "SECONDS", 0.1)
    setattr(provider, slow, 0.01)  # for each of hundreds of bytes
    assert Client().get(reverse("openid-begin")).status_code == 502


def test_renewed_provider_keys_are_fetched_again(provider: OpenIDServer) -> None:
    sign_in(provider)
    provider.renew_key()
    assert sign_in(provider).status_code == 302


def test_missing_claims_are_read_from_userinfo(provider: OpenIDServer) -> None:
    provider.userinfo = {"sub": ALICE["sub"], "email": "alice@example.org", "email_verified": True}
    provider.person = {"sub": ALICE["sub"]}
    sign_in(provider)
    assert User.objects.get().email == "alice@example.org"


@pytest.mark.parametrize(
    ("userinfo_email", "linked"), [("alice@example.org", "alice"), ("else@example.org", "alice.w")]
)
def test_email_verified_counts_only_for_the_address_of_its_source(
    provider: OpenIDServer, userinfo_email: str, linked: str
) -> None:
    owner_make("alice", email="alice@example.org")
    provider.userinfo = {"sub": ALICE["sub"], "email": userinfo_email, "email_verified": True}
    provider.person = {name: value for name, value in ALICE.items() if name != "email_verified"}
    assert account_of(provider) == linked


def test_userinfo_of_another_subject_is_ignored(provider: OpenIDServer) -> None:
    owner_make("bob", email="bob@example.org")
    provider.userinfo = {"sub": "bob", "email": "bob@example.org", "email_verified": True}
    provider.person = {"sub": ALICE["sub"], "preferred_username": "alice.w"}
    assert account_of(provider) == "alice.w"


@pytest.mark.parametrize("after", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_sign_in_never_redirects_to_another_site(provider: OpenIDServer, after: str) -> None:
    assert sign_in(provider, after=after).headers["Location"] == "/"


def test_the_opener_window_is_kept_for_a_waiting_app(provider: OpenIDServer) -> None:
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


def test_a_forged_callback_logs_a_short_line(provider: OpenIDServer, caplog: pytest.LogCaptureFixture) -> None:
    assert Client().get(reverse("openid-callback"), {"error": "x" * 5_000, "state": "s"}).status_code == 400
    (line,) = [record.getMessage() for record in caplog.records if record.name == "daybook.sign_in"]
    assert len(line) < 300


@pytest.mark.any_database
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


@pytest.mark.usefixtures("whole_deletions")
def test_without_a_password_everything_can_be_deleted_soon_after_signing_in(provider: OpenIDServer) -> None:
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

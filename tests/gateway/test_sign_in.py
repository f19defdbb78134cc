"""/login/: limits on password guessing, audit log entries, and the admin's use of the page"""

import logging
import threading
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from axes.models import AccessAttempt
from django.contrib.auth.hashers import check_password, make_password
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django.fixtures import Settings

from gateway.accounts import passwords
from gateway.accounts import sign_in as accounts_sign_in
from gateway.accounts.passwords import BoundedPasswordHasher, hashing_slot
from gateway.accounts.sign_in import attempts_purge
from gateway.requests import client_address, network_of
from memories.errors import Overloaded
from memories.models import AuditEntry, Owner

pytestmark = pytest.mark.django_db
LIMIT, ADDRESS_LIMIT = 10, 12
TYPED = "hunter2-typed-by-mistake"


def sign_in(name: str = "alice", password: str = "wrong", **extra: Any) -> Any:  # noqa: S107 - a wrong password
    return Client(**extra).post("/login/", {"username": name, "password": password})


def lock(name: str = "alice", **extra: Any) -> Any:
    """Send wrong passwords until the account is locked. Return the last response."""
    return [sign_in(name, **extra) for _ in range(LIMIT)][-1]


@pytest.fixture
def bounded_hasher(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.PASSWORD_HASHERS = ["gateway.accounts.passwords.BoundedPasswordHasher"]
    monkeypatch.setattr(passwords, "WAIT_SECONDS", 0.01)


@pytest.fixture
def low_address_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts_sign_in, "LIMIT_PER_ADDRESS", ADDRESS_LIMIT)


def test_after_ten_wrong_passwords_the_page_says_how_long_to_wait(alice: Owner) -> None:
    assert [sign_in().status_code for _ in range(LIMIT)] == [200] * (LIMIT - 1) + [429]
    answer = sign_in(password="alice knows it")
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "900")
    assert "Too many failed attempts. Wait 15 minutes, then try again." in answer.content.decode()


@pytest.mark.any_database
def test_the_wait_ends_and_is_not_extended_by_further_attempts(alice: Owner) -> None:
    lock()
    with time_machine.travel(timezone.now() + timedelta(minutes=10)):
        assert "Wait 5 minutes" in sign_in().content.decode()
    with time_machine.travel(timezone.now() + timedelta(minutes=16)):
        assert sign_in(password="alice knows it").status_code == 302


def test_other_accounts_and_addresses_are_not_locked(alice: Owner, charlie: Owner) -> None:
    lock()
    assert sign_in("charlie", "charlie knows it").status_code == 302
    assert sign_in("alice", "alice knows it", REMOTE_ADDR="192.0.2.7").status_code == 302


@pytest.mark.any_database
def test_a_forged_forwarded_header_does_not_help(alice: Owner) -> None:
    for number in range(LIMIT):
        answer = sign_in(HTTP_X_FORWARDED_FOR=f"192.0.2.{number}")
    assert answer.status_code == 429


@pytest.mark.any_database
def test_addresses_of_one_ipv6_network_count_as_one(alice: Owner) -> None:
    for number in range(LIMIT):
        answer = sign_in(REMOTE_ADDR=f"2001:db8:1:2:{number}::7")
    assert answer.status_code == 429
    assert sign_in(password="alice knows it", REMOTE_ADDR="2001:db8:1:2::8").status_code == 429
    assert sign_in(password="alice knows it", REMOTE_ADDR="2001:db8:1:3::8").status_code == 302


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_attempts_are_counted_by_network(address: str, counted: str) -> None:
    assert network_of(address) == counted


@pytest.mark.any_database
def test_behind_a_trusted_proxy_the_forwarded_address_counts(alice: Owner, settings: Settings) -> None:
    settings.DAYBOOK_TRUSTED_PROXIES = 1
    for number in range(LIMIT):
        answer = sign_in(HTTP_X_FORWARDED_FOR=f"192.0.2.{number}, 198.51.100.1")
    assert answer.status_code == 429
    assert sign_in(password="alice knows it", HTTP_X_FORWARDED_FOR="198.51.100.2").status_code == 302


@pytest.mark.parametrize(
    ("named", "address"),
    [
        ("198.51.100.1", "198.51.100.1"),
        ("198.51.100.1:4711", "198.51.100.1"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("2001:db8::1:4711", "2001:db8::1:4711"),
        ("unknown", "127.0.0.1"),
        ("198.51.100.1:4711:1", "127.0.0.1"),
    ],
)
def test_proxies_may_write_a_port_after_an_address(settings: Settings, named: str, address: str) -> None:
    settings.DAYBOOK_TRUSTED_PROXIES = 1
    assert client_address(RequestFactory().get("/", HTTP_X_FORWARDED_FOR=named)) == address


@pytest.mark.any_database
@pytest.mark.usefixtures("low_address_limit")
def test_an_address_that_tries_many_accounts_is_locked(alice: Owner) -> None:
    answers = [sign_in(f"nobody{number}").status_code for number in range(ADDRESS_LIMIT)]
    assert (answers[-2:], sign_in(password="alice knows it").status_code) == ([200, 429], 429)


@pytest.mark.any_database
@pytest.mark.usefixtures("low_address_limit")
def test_a_successful_sign_in_does_not_reset_the_count_of_the_address(alice: Owner, charlie: Owner) -> None:
    for number in range(ADDRESS_LIMIT - 1):
        sign_in(f"nobody{number}")
    assert sign_in("charlie", "charlie knows it").status_code == 302
    assert sign_in().status_code == 429


def test_an_administrator_unlocks_an_account(alice: Owner, root: Client) -> None:
    lock()
    root.post("/admin/auth/user/", {"action": "unlock_sign_in", "_selected_action": [alice.user_id]})
    assert sign_in(password="alice knows it").status_code == 302
    assert AuditEntry.objects.get(action="sign_in_unlocked").object_id == str(alice.user_id)


def test_the_axes_reset_command_unlocks(alice: Owner) -> None:
    lock()
    call_command("axes_reset")
    assert sign_in(password="alice knows it").status_code == 302


@pytest.mark.any_database
def test_nothing_typed_is_logged_or_stored(alice: Owner, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name, password in (("alice", TYPED), (TYPED, "x"), (TYPED, TYPED)):
        for _ in range(LIMIT + 1):
            sign_in(name, password)
    assert [r.getMessage() for r in caplog.records if r.name == "daybook.sign_in"][:1] == [
        f"a sign-in failed: user {alice.user_id}, from 127.0.0.1"
    ]
    stored = [*AccessAttempt.objects.values(), *AuditEntry.objects.values()]
    assert TYPED not in caplog.text + str(stored)


def test_sign_ins_failures_and_sign_outs_are_audited(alice: Owner) -> None:
    lock()
    sign_in("nobody")
    client = Client(REMOTE_ADDR="192.0.2.7")
    client.post("/login/", {"username": "alice", "password": "alice knows it"})
    client.post("/logout/")
    entries = list(AuditEntry.objects.order_by("pk").values_list("action", "actor", "owner", "address"))
    assert entries == [
        *[("sign_in_failed", "", "alice", "127.0.0.1")] * LIMIT,
        ("sign_in_refused", "", "alice", "127.0.0.1"),
        ("sign_in_failed", "", "", "127.0.0.1"),
        ("sign_in", "alice", "", "192.0.2.7"),
        ("sign_out", "alice", "", "192.0.2.7"),
    ]


@pytest.mark.parametrize(
    ("stored", "named", "saved"),
    [
        ("", "Europe/Lisbon", "Europe/Lisbon"),
        ("Asia/Tokyo", "Europe/Lisbon", "Asia/Tokyo"),
        ("", "Etc/Unknown", ""),
        ("", "../" * 100, ""),
    ],
)
def test_the_first_sign_in_saves_the_time_zone_of_the_browser(
    alice: Owner, stored: str, named: str, saved: str
) -> None:
    Owner.objects.update(time_zone=stored)
    browser = Client()
    browser.cookies["daybook_zone"] = named
    assert browser.post("/login/", {"username": "alice", "password": "alice knows it"}).status_code == 302
    assert Owner.objects.get().time_zone == saved


def test_a_refused_attempt_adds_no_audit_entry(alice: Owner) -> None:
    lock()
    before = AuditEntry.objects.count()
    sign_in()
    assert AuditEntry.objects.count() == before


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/account/password/", {"old_password": "wrong", "new_password1": "a" * 20, "new_password2": "a" * 20}),
        ("/account/delete/", {"line": "delete everything", "password": "wrong"}),
    ],
)
def test_the_account_page_counts_towards_the_limit(page: Client, path: str, form: dict[str, str]) -> None:
    answers = [page.post(path, form) for _ in range(LIMIT)]
    assert [answer.status_code for answer in answers] == [400] * (LIMIT - 1) + [429]
    assert "Too many failed attempts. Wait 15 minutes, then try again." in answers[-1].content.decode()


def test_the_admin_uses_the_same_sign_in_page(page: Client) -> None:
    answer = Client().get("/admin/", follow=True)
    assert answer.redirect_chain[-1][0] == "/login/?next=%2Fadmin%2F"
    answer = page.get("/admin/", follow=True)
    assert answer.status_code == 403
    assert "You do not have access to the administration." in answer.content.decode()


def test_a_connection_to_the_database_is_released_before_hashing(transactional_db: None) -> None:
    """Otherwise a few people who sign in at once would hold the connections of all pages while they wait."""
    connection.ensure_connection()
    connection.close_at = 0.0  # as those of pages with PostgreSQL, which last for a request
    with transaction.atomic(), hashing_slot():
        assert connection.connection is not None
    with hashing_slot():
        assert connection.connection is None
    assert User.objects.count() == 0


@pytest.mark.any_database
@pytest.mark.usefixtures("bounded_hasher")
def test_passwords_are_hashed_one_at_a_time(alice: Owner) -> None:
    with hashing_slot():
        answer = sign_in()
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        with pytest.raises(Overloaded):
            make_password("another one")
    assert sign_in().status_code == 200


@pytest.mark.any_database
@pytest.mark.usefixtures("bounded_hasher")
def test_the_page_of_a_new_user_says_that_too_many_people_sign_in(root: Client) -> None:
    root.raise_request_exception = False
    form = {"username": "dora", "password1": "a long one, twice", "password2": "a long one, twice"}
    with hashing_slot():
        answer = root.post("/admin/auth/user/add/", form)
    assert (answer.status_code, "Too many people are signing in" in answer.content.decode()) == (503, True)


@pytest.mark.any_database
def test_hashing_waits_for_a_free_slot(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["gateway.accounts.passwords.BoundedPasswordHasher"]
    acquired, done = threading.Event(), threading.Event()

    def hold() -> None:
        with hashing_slot():
            acquired.set()
            done.wait(5)

    holder = threading.Thread(target=hold)
    holder.start()
    acquired.wait(5)
    releasing = threading.Timer(0.05, done.set)
    releasing.start()
    assert make_password("a long one").startswith("pbkdf2_sha256$")
    holder.join()
    releasing.join()


@pytest.mark.any_database
def test_existing_password_hashes_stay_valid(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    stored = make_password("a long one")
    settings.PASSWORD_HASHERS = ["gateway.accounts.passwords.BoundedPasswordHasher"]
    assert check_password("a long one", stored)
    assert BoundedPasswordHasher.algorithm == "pbkdf2_sha256"


def test_old_failed_attempts_are_purged(alice: Owner) -> None:
    sign_in()
    with time_machine.travel(timezone.now() + timedelta(minutes=16)):
        attempts_purge()
    assert not AccessAttempt.objects.exists()

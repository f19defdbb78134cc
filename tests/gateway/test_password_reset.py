"""/password/forgotten/: a link by mail, and the new password"""

import re
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import time_machine
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client, RequestFactory
from django.utils import timezone
from uuid_utils import compat

from gateway.accounts import password_reset
from gateway.accounts.mails import mail_origin
from gateway.accounts.password_reset import MAX_PER_ACCOUNT, MAX_PER_ADDRESS, NewPassword, password_mail
from memories import ids
from memories.models import AuditEntry, Owner
from tests.factories import owner_make
from tests.overlapping import only_postgresql, overlap
from tests.pages import client_of, html_of, text_of

pytestmark = pytest.mark.django_db
SERVER = {"EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": 9, "DEFAULT_FROM_EMAIL": "daybook@example.org"}
NEW = "an entirely new one"
_queued: list[tuple[str, ...]] = []


@pytest.fixture(autouse=True)
def configured(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MAIL = SERVER
    _queued.clear()
    monkeypatch.setattr(password_reset, "enqueue_kept", lambda task, *given: _queued.append(given))


@pytest.fixture
def anna(db: None) -> Owner:
    return owner_make("anna", email="anna@example.org")


def ask(email: str = "anna@example.org", **extra: Any) -> Any:
    return Client(**extra).post("/password/forgotten/", {"email": email})


def jobs() -> list[tuple[str, ...]]:
    """Return and clear the arguments of the queued jobs."""
    found = list(_queued)
    _queued.clear()
    return found


def link() -> str:
    """Do the queued jobs and return the path of the link in the only mail."""
    for job in jobs():
        password_mail(*job)
    [message] = mail.outbox
    found = re.search(r"http://testserver(/password/forgotten/\S+)", message.body)
    assert found
    return found[1]


def choose(client: Client, path: str, password: str = NEW) -> Any:
    """Open a link and post the form behind it."""
    answer = client.get(path)
    if answer.status_code != 302:
        return answer
    return client.post(answer.headers["Location"], {"new_password1": password, "new_password2": password})


def test_the_sign_in_page_links_to_the_form(anna: Owner) -> None:
    assert 'href="/password/forgotten/"' in html_of(Client(), "/login/")


def test_a_reset_sets_the_new_password_and_ends_every_login(anna: Owner) -> None:
    elsewhere = client_of(anna)
    html_of(elsewhere, "/account/")
    assert ask("Anna@Example.org").status_code == 200
    browser = Client()
    answer = choose(browser, link())
    assert (answer.status_code, answer.headers["Location"]) == (302, "/login/?done=password")
    assert "Password changed." in html_of(browser, "/login/?done=password")
    assert elsewhere.get("/account/").status_code == 302
    assert browser.post("/login/", {"username": "anna", "password": NEW}).status_code == 302
    actions = AuditEntry.objects.order_by("pk").values_list("action", "actor", "owner", "object_id")
    assert [entry for entry in actions if entry[0].startswith("password")] == [
        ("password_forgotten", "", "anna", str(anna.user_id)),
        ("password_change", "anna", "anna", str(anna.user_id)),
    ]


def test_a_link_works_once_and_for_an_hour(anna: Owner) -> None:
    ask()
    path = link()
    with time_machine.travel(timezone.now() + timedelta(minutes=61)):
        assert "no longer works" in text_of(choose(Client(), path).content.decode())
    assert choose(Client(), path).status_code == 302
    assert "no longer works" in text_of(choose(Client(), path).content.decode())


def test_of_two_simultaneous_uses_of_a_link_one_sets_the_password(anna: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    ask()
    path, browser, stored = link(), Client(), NewPassword.form_valid

    def stored_after_another(view: NewPassword, form: Any) -> Any:
        monkeypatch.setattr(NewPassword, "form_valid", stored)
        assert choose(Client(), path).status_code == 302
        return stored(view, form)

    monkeypatch.setattr(NewPassword, "form_valid", stored_after_another)
    assert "no longer works" in text_of(choose(browser, path, "another long one").content.decode())
    assert browser.post("/login/", {"username": "anna", "password": NEW}).status_code == 302


def test_a_weak_password_is_refused_with_the_reason(anna: Owner) -> None:
    ask()
    answer = choose(Client(), link(), "short")
    assert "at least 10 characters" in answer.content.decode()
    assert User.objects.get(pk=anna.user_id).check_password("anna knows it")


def test_the_answer_does_not_reveal_whether_an_account_exists(anna: Owner) -> None:
    answers = [ask(address) for address in ("anna@example.org", "nobody@example.org")]
    assert answers[0].content == answers[1].content
    assert [len(job) for job in jobs()] == [2, 2]


def test_the_typed_address_is_neither_stored_nor_logged(anna: Owner, caplog: pytest.LogCaptureFixture) -> None:
    ask("typed@example.org")
    stored = str([*AuditEntry.objects.values(), *jobs()])
    assert "typed" not in stored + caplog.text
    assert AuditEntry.objects.get().action == "password_forgotten"


def test_the_queue_contains_no_link(anna: Owner) -> None:
    ask()
    assert jobs() == [(str(anna.user_id), "http://testserver")]


@pytest.mark.parametrize("state", [{"is_active": False}, {"password": "!"}], ids=["switched off", "no password"])
def test_accounts_without_password_sign_in_get_no_mail(anna: Owner, state: dict[str, Any]) -> None:
    User.objects.filter(pk=anna.user_id).update(**state)
    assert ask().status_code == 200
    for job in jobs():
        password_mail(*job)
    assert mail.outbox == []


def test_mails_per_account_are_limited_without_revealing_it(anna: Owner) -> None:
    answers = [ask(REMOTE_ADDR=f"192.0.2.{number}").status_code for number in range(MAX_PER_ACCOUNT + 2)]
    assert set(answers) == {200}
    assert len([job for job in jobs() if job[0]]) == MAX_PER_ACCOUNT
    with time_machine.travel(timezone.now() + timedelta(minutes=61)):
        ask()
        assert jobs()[0][0]


@only_postgresql
def test_simultaneous_requests_send_no_more_mails_to_an_account(
    transactional_db: None, anna: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(password_reset, "MAX_PER_ACCOUNT", 1)
    answers = overlap(ask, ask, pause_after="SELECT COUNT memories_auditentry object_id")
    assert [answer.status_code for answer in answers] == [200, 200]
    assert sorted(users for users, *_ in jobs()) == ["", str(anna.user_id)]


@pytest.mark.any_database
def test_requests_per_network_address_are_limited(anna: Owner) -> None:
    answers = [ask(f"nobody{number}@example.org") for number in range(MAX_PER_ADDRESS + 1)]
    assert [answer.status_code for answer in answers] == [200] * MAX_PER_ADDRESS + [429]
    assert answers[-1].headers["Retry-After"] == "3600"
    assert ask(REMOTE_ADDR="192.0.2.7").status_code == 200
    answers = [ask(REMOTE_ADDR=f"2001:db8::{number}").status_code for number in range(MAX_PER_ADDRESS + 1)]
    assert answers == [200] * MAX_PER_ADDRESS + [429]


def test_the_requests_that_are_counted_are_limited(anna: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_reset, "_MAX_COUNTED", MAX_PER_ADDRESS)
    assert [ask().status_code for _ in range(MAX_PER_ADDRESS + 1)] == [200] * MAX_PER_ADDRESS + [429]
    assert ask(REMOTE_ADDR="192.0.2.7").status_code == 200
    assert ask().status_code == 200


def test_without_a_mail_server_the_page_refers_to_an_administrator(anna: Owner, settings: Any) -> None:
    settings.MAIL = None
    page = html_of(Client(), "/password/forgotten/")
    assert "Ask an administrator" in page
    assert "manage.py changepassword" in page
    assert "Ask an administrator" in ask().content.decode()
    assert jobs() == []


def test_a_link_uses_a_trusted_origin_only(anna: Owner, settings: Any) -> None:
    settings.TRUSTED_ORIGINS = ["http://zoo.example.org", "https://chat.example.org", "https://old.example.org"]
    settings.ALLOWED_HOSTS = ["*"]
    ask(HTTP_HOST="evil.example")
    assert jobs()[0][1] == "https://chat.example.org"


@pytest.mark.parametrize(
    ("host", "port", "origin"),
    [
        ("127.0.0.1:6666", "8000", "http://127.0.0.1:8000"),
        ("LOCALHOST:6666", "80", "http://localhost"),
        ("[::1]:6666", "8000", "http://[::1]:8000"),
        ("chat.example.org:8080", "8000", "http://chat.example.org:8080"),  # a container's port
    ],
)
def test_a_link_to_this_computer_has_the_port_of_this_daybook(settings: Any, host: str, port: str, origin: str) -> None:
    """Other ports may be those of other people's programs."""
    settings.TRUSTED_ORIGINS, settings.ALLOWED_HOSTS = [], ["localhost", "127.0.0.1", "[::1]", "chat.example.org"]
    assert mail_origin(RequestFactory().get("/", HTTP_HOST=host, SERVER_PORT=port)) == origin


@pytest.mark.parametrize("own", ["https://chat.example.org", "http://chat.example.org"])
def test_a_link_leads_to_this_daybook_rather_than_to_a_trusted_site_or_app(
    anna: Owner, settings: Any, own: str
) -> None:
    settings.TRUSTED_ORIGINS = ["app://obsidian.md", "https://other.example", own]
    settings.OWN_ORIGINS = [own]
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    ask(HTTP_HOST="127.0.0.1")
    assert jobs()[0][1] == own


def test_an_unreachable_mail_server_is_logged_without_the_address(
    anna: Owner, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    assert password_mail(str(anna.user_id), "http://testserver") == 0
    assert "A mail (password) was not sent: ConnectionRefusedError." in caplog.text
    assert "anna" not in caplog.text


def test_requests_made_while_the_clock_was_ahead_do_not_count(anna: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = int(timedelta(days=1).total_seconds() * 1000) << 80
    with monkeypatch.context() as patched:
        patched.setattr(ids, "compat", SimpleNamespace(uuid7=lambda: UUID(int=compat.uuid7().int + ahead)))
        assert [ask().status_code for _ in range(MAX_PER_ADDRESS)] == [200] * MAX_PER_ADDRESS
    jobs()
    assert ask().status_code == 200
    assert jobs()[0][0] == str(anna.user_id)

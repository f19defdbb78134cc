"""`manage.py doctor`."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import storages
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from pytest_django import Settings

from config import doctor
from config.doctor import findings
from config.findings import Finding, Level
from config.model_checks import upstream_finding
from gateway import heartbeat
from gateway.models import Agent, Run, Session
from gateway.services import configuration_save
from gateway.upstream.dialects import DIALECTS
from gateway.webhooks.services import KINDS, webhook_create
from memories.audit.log import SYSTEM
from memories.ids import uuid7
from memories.recall.vectors import packed, vectors_store
from memories.services import owner_for_user
from tests.factories import memory_make

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _settings(settings: Settings, tmp_path: Path) -> None:
    settings.DAYBOOK_HOME = tmp_path
    settings.DAYBOOK_UPSTREAMS = {}
    settings.SWEEP_SECONDS = 5
    settings.UNKNOWN_VARIABLES = []
    settings.IGNORED_VARIABLES = []
    settings.SECRET_KEY = "pZ3-kQ9_vT7xWc2LmN8rYb5HsJ4dGf6A"


@pytest.fixture
def worker() -> None:
    heartbeat.beat(uuid7())


@pytest.fixture
def upstream() -> Iterator[Callable[[int], str]]:
    """Return a function that starts a server with a fixed status and returns its address."""
    servers: list[HTTPServer] = []

    def start(status: int) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(b'{"object": "list", "data": []}')

            def log_message(self, *args: object) -> None:
                """Log nothing."""

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/v1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def _found(check: str) -> list[Finding]:
    return [finding for finding in findings() if finding.check == check]


def _level(check: str) -> Level:
    (finding,) = _found(check)
    return finding.level


def _unfinished_run_make(*, expired: timedelta) -> None:
    owner = owner_for_user(User.objects.create_user("ada"))
    session = Session.objects.create(owner=owner, agent=Agent.objects.create(name="assistant"))
    Run.objects.create(owner=owner, session=session, turn=1, request_id="r", lease_expires_at=timezone.now() - expired)


def test_every_check_of_a_healthy_installation_is_ok(worker: None) -> None:
    out = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("doctor", stdout=out, no_color=True)
    assert end.value.code == 0
    checks = [line.split(":")[0] for line in out.getvalue().splitlines()]
    names = (
        "configuration, prompts, disk, attachments, database, migrations, worker, stuck runs, stuck reviews, queue, "
        "upstream"
    )
    folder = "warning  attachments" if connection.vendor == "postgresql" else "ok       attachments"
    assert checks == [folder if name == "attachments" else f"ok       {name}" for name in names.split(", ")]


@pytest.mark.parametrize("setting", [{"SECRET_KEY": "-5"}, {"SECRET_KEY_FALLBACKS": ["changeme" * 8]}])
def test_a_guessable_signing_key_is_reported(settings: Settings, setting: dict[str, object]) -> None:
    for name, value in setting.items():
        setattr(settings, name, value)
    (found,) = _found("configuration")
    assert found.level is Level.WARNING
    assert found.text.startswith("DAYBOOK_SECRET_KEY (or a fallback) can be guessed:")


def test_a_variable_that_means_nothing_is_named(settings: Settings) -> None:
    settings.UNKNOWN_VARIABLES = ["DAYBOOK_ALOWED_HOSTS"]
    text = "DAYBOOK_ALOWED_HOSTS: no such variable exists, so it is ignored"
    assert _found("configuration") == [Finding("configuration", Level.WARNING, text)]


def test_a_variable_that_is_ignored_without_another_one_is_named(settings: Settings) -> None:
    settings.IGNORED_VARIABLES = ["DAYBOOK_MAIL_FROM: ignored, since DAYBOOK_MAIL_URL is not set"]
    assert _found("configuration") == [Finding("configuration", Level.WARNING, *settings.IGNORED_VARIABLES)]


def test_an_attachment_storage_that_cannot_store_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storages["attachments"], "save", full)
    text = "cannot be stored (in a folder of the home): OSError: [Errno 28] No space left on device"
    assert _found("attachments") == [Finding("attachments", Level.FAILED, text)]


def test_postgresql_with_local_attachments_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "vendor", "postgresql")
    found = doctor._attachments()
    assert (found.level, "DAYBOOK_ATTACHMENTS" in found.text) == (Level.WARNING, True)


def test_without_a_worker_doctor_fails_and_says_how_to_start_one() -> None:
    out = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("doctor", stdout=out, no_color=True)
    assert end.value.code == 1
    assert "failed   worker: no heartbeat for 20 s; `up` or `worker` starts one" in out.getvalue()


@pytest.mark.parametrize(("expired", "level"), [(timedelta(hours=1), Level.FAILED), (timedelta(seconds=1), Level.OK)])
def test_a_run_long_after_its_lease_is_stuck(worker: None, expired: timedelta, level: Level) -> None:
    _unfinished_run_make(expired=expired)
    assert _level("stuck runs") is level


def test_agents_without_a_model_are_named_with_the_default_one(worker: None, settings: Settings) -> None:
    settings.DAYBOOK_MODEL = "house-model"
    settings.DAYBOOK_UPSTREAMS = {"default": {"url": "http://127.0.0.1:9/v1", "key": ""}}
    Agent.objects.create(name="own", settings={"model": "its-own"})
    Agent.objects.create(name="plain", settings={"model": " "})
    text = "plain: no model is named, so DAYBOOK_MODEL (house-model) answers"
    assert _found("agents") == [Finding("agents", Level.OK, text)]


def test_the_default_model_is_not_said_to_answer_where_the_demo_model_does(worker: None) -> None:
    Agent.objects.create(name="plain", settings={})
    assert "demo model answers" in _found("upstream")[0].text
    assert _found("agents") == []


def test_pending_migrations_are_a_failure(worker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "pending_migrations", lambda: ["gateway.0002_more", "reviews.0002_more"])
    text = "2 pending, first gateway.0002_more: `up` or `migrate` applies them"
    assert _found("migrations") == [Finding("migrations", Level.FAILED, text)]


def test_a_database_of_a_newer_version_is_a_failure(worker: None) -> None:
    MigrationRecorder(connection).record_applied("gateway", "9999_of_tomorrow")
    (found,) = _found("migrations")
    assert (found.level, "newer version" in found.text) == (Level.FAILED, True)


def test_an_empty_database_is_one_failure_that_names_the_home(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection.introspection, "table_names", lambda: [])
    found = {finding.check: finding for finding in findings()}
    assert found["database"].level is Level.FAILED
    assert str(settings.DAYBOOK_HOME) in found["database"].text
    assert not found.keys() & {"migrations", "worker", "agents"}


def test_a_missing_home_is_a_failure(worker: None, settings: Settings, tmp_path: Path) -> None:
    settings.DAYBOOK_HOME = tmp_path / "gone"
    assert _level("disk") is Level.FAILED


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("secret", "text"), [("", "posted unsigned: DAYBOOK_ALERTS_SECRET is not set"), ("whsec_QUFB", "posted and signed")]
)
def test_doctor_says_whether_alerts_are_signed(worker: None, settings: Settings, secret: str, text: str) -> None:
    assert _found("alerts") == [], "no address is configured"
    settings.ALERTS_URL, settings.ALERTS_SECRET = "https://hidden.example.org", secret
    assert _found("alerts") == [Finding("alerts", Level.OK, text)]


def test_alerts_that_are_never_posted_are_a_failure(worker: None, settings: Settings) -> None:
    settings.ALERTS_URL = "http://127.0.0.1:9/alerts"
    (found,) = _found("alerts")
    assert (found.level, "DAYBOOK_WEBHOOKS_PRIVATE" in found.text) == (Level.FAILED, True)
    settings.WEBHOOKS_PRIVATE = True
    assert _level("alerts") is Level.OK


def test_an_embedding_upstream_that_is_not_configured_is_a_failure(worker: None, settings: Settings) -> None:
    settings.EMBEDDING_MODEL, settings.EMBEDDING_UPSTREAM = "letters", "elsewhere"
    text = "No upstream is called elsewhere. Set DAYBOOK_UPSTREAM_ELSEWHERE_URL."
    assert _found("vectors") == [Finding("vectors", Level.FAILED, text)]


@pytest.mark.parametrize(
    ("status", "level"),
    [(200, Level.OK), (401, Level.FAILED), (403, Level.FAILED), (404, Level.WARNING), (500, Level.WARNING)],
)
def test_an_upstream_is_checked_by_listing_its_models(
    upstream: Callable[[int], str], status: int, level: Level
) -> None:
    found = upstream_finding("upstream", url=upstream(status), key="sk-secret", dialect=DIALECTS["openai"])
    assert found.level is level
    assert "sk-secret" not in found.text


@pytest.mark.parametrize("credentials", ["", "ann:p%2Fss@word@"])
def test_an_unreachable_upstream_is_a_failure(credentials: str) -> None:
    url = f"http://{credentials}127.0.0.1:1/v1"
    found = upstream_finding("upstream", url=url, key="", dialect=DIALECTS["openai"])
    assert (found.level, found.text) == (Level.FAILED, "http://127.0.0.1:1/v1 does not answer")


def test_every_configured_upstream_has_a_line(worker: None, settings: Settings) -> None:
    away = {"url": "http://127.0.0.1:1/v1", "key": ""}
    settings.DAYBOOK_UPSTREAMS = {"default": away, "local": away}
    assert (_level("upstream"), _level("upstream local")) == (Level.FAILED, Level.FAILED)


def test_doctor_counts_the_memories_with_a_vector(settings: Settings) -> None:
    settings.EMBEDDING_MODEL = ""
    assert _found("vectors") == []
    settings.EMBEDDING_MODEL = "letters"
    owner = owner_for_user(User.objects.create_user("ann"))
    memory = memory_make(owner, "Plays the cello.")
    memory_make(owner, "Plays the viola.")
    vectors_store(memory.book, {memory.pk: packed([1.0, 2.0])}, {memory.pk: memory.content_key})
    text = "1 of 2 memories have one of letters; left: 1, about 4 tokens"
    assert _found("vectors") == [Finding("vectors", Level.OK, text)]
    configuration_save("prices", {"letters": {"input": 0.02, "output": 0}})
    assert _found("vectors") == [Finding("vectors", Level.OK, f"{text}, under $0.01")]


def test_webhooks_disabled_by_a_new_signing_key_are_counted(settings: Settings) -> None:
    alice = owner_for_user(User.objects.create_user("alice"))
    settings.WEBHOOKS_PRIVATE = True
    for _ in range(2):
        webhook_create(alice.pk, url="https://127.0.0.1/hook", kinds=KINDS, by=SYSTEM)
    assert _found("webhooks") == []
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "a-new-key-0123456789-0123456789-abcdef"
    (found,) = _found("webhooks")
    assert found.level is Level.WARNING
    assert found.text.startswith("2 webhooks were created with an older signing key")

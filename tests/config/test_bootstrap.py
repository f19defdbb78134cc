"""config.processes.bootstrap: the first administrator, the first API key, and the copy before a migration."""

import fcntl
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from config.environment import ConfigurationError
from config.processes import bootstrap
from config.processes.bootstrap import MAX_BACKUPS, back_up, first_credentials
from gateway.keys import key_hash
from gateway.models import ApiKey

pytestmark = [pytest.mark.any_database, pytest.mark.django_db]

GIVEN_KEY = "dbk_given_at_the_first_start_0123456789"


@pytest.fixture(autouse=True)
def _no_credentials_given(settings: Settings) -> None:
    settings.DAYBOOK_ADMIN_USER, settings.DAYBOOK_ADMIN_PASSWORD, settings.DAYBOOK_API_KEY = "admin", "", ""


def test_the_first_start_creates_an_administrator_and_a_key() -> None:
    name, password, key = first_credentials()
    admin = User.objects.get()
    assert (admin.username, admin.is_superuser, admin.is_staff) == (name, True, True) == ("admin", True, True)
    assert admin.check_password(password)
    stored = ApiKey.objects.get()
    assert (stored.owner.user_id, stored.sha256) == (admin.pk, key_hash(key))


def test_later_starts_create_nothing() -> None:
    first_credentials()
    assert first_credentials() == ("", "", "")
    assert (User.objects.count(), ApiKey.objects.count()) == (1, 1)


def test_given_credentials_are_used_and_not_returned(settings: Settings) -> None:
    settings.DAYBOOK_ADMIN_USER, settings.DAYBOOK_ADMIN_PASSWORD = "ada", "correct horse"
    settings.DAYBOOK_API_KEY = GIVEN_KEY
    assert first_credentials() == ("ada", "", "")
    assert User.objects.get(username="ada").check_password("correct horse")
    assert ApiKey.objects.get().sha256 == key_hash(GIVEN_KEY)


@pytest.mark.parametrize("password", ["x", "password123", "administrator-1"])
def test_a_weak_password_is_used_and_reported(
    settings: Settings, password: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings.DAYBOOK_ADMIN_USER, settings.DAYBOOK_ADMIN_PASSWORD = "administrator", password
    first_credentials()
    assert User.objects.get().check_password(password)
    [line] = [record.getMessage() for record in caplog.records if record.name == "daybook.prepare"]
    assert line.startswith("DAYBOOK_ADMIN_PASSWORD is weak: ")
    assert password not in line.split()


@pytest.mark.parametrize(("key", "warned"), [("short", True), ("pZ3-kQ9_vT7xWc2LmN8rYb5HsJ4dGf6A", False)])
def test_a_start_with_a_guessable_signing_key_warns(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture, key: str, warned: bool
) -> None:
    settings.DAYBOOK_HOME, settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = tmp_path, key, []
    bootstrap.prepare()
    assert any(message.startswith("DAYBOOK_SECRET_KEY (or ") for message in caplog.messages) == warned


def test_a_password_in_quotation_marks_is_refused_and_nothing_is_created(settings: Settings) -> None:
    settings.DAYBOOK_ADMIN_USER, settings.DAYBOOK_ADMIN_PASSWORD = "administrator", '"correct horse"'
    with pytest.raises(ConfigurationError, match=r"^DAYBOOK_ADMIN_PASSWORD is a value that is not shown; [^\n]+$"):
        first_credentials()
    assert (User.objects.count(), ApiKey.objects.count()) == (0, 0)


@pytest.mark.parametrize("name", ["a b", "<ada>", "ada,bob"])
def test_a_name_that_the_admin_would_refuse_is_refused_and_nothing_is_created(settings: Settings, name: str) -> None:
    settings.DAYBOOK_ADMIN_USER = name
    with pytest.raises(ConfigurationError, match=rf"^DAYBOOK_ADMIN_USER is '{name}'; allowed are [^\n]+$"):
        first_credentials()
    assert (User.objects.count(), ApiKey.objects.count()) == (0, 0)


def test_an_existing_administrator_keeps_any_name(settings: Settings) -> None:
    settings.DAYBOOK_ADMIN_USER = "a b"
    User.objects.create_superuser("a b", password="kept")
    assert first_credentials()[0] == ""
    assert User.objects.get().username == "a b"


def test_a_weak_password_given_for_an_existing_administrator_is_ignored(settings: Settings) -> None:
    User.objects.create_superuser("admin", password="x")
    settings.DAYBOOK_ADMIN_PASSWORD, settings.DAYBOOK_API_KEY = "x", GIVEN_KEY
    assert first_credentials() == ("", "", "")
    assert User.objects.get().check_password("x")


def test_a_missing_key_is_created_for_the_existing_administrator() -> None:
    admin = User.objects.create_superuser("boss", password="kept")
    name, password, key = first_credentials()
    assert (name, password, key != "") == ("", "", True)
    assert ApiKey.objects.get().owner.user_id == admin.pk
    assert User.objects.get().check_password("kept")


def test_an_ordinary_user_of_that_name_is_not_promoted() -> None:
    User.objects.create_user("admin", password="mine")
    assert first_credentials() == ("", "", "")
    assert not User.objects.get().is_superuser
    assert not ApiKey.objects.exists()


def test_without_an_active_administrator_prepare_says_how_to_create_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = User.objects.create_superuser("admin", password="kept")
    User.objects.filter(pk=admin.pk).update(is_active=False)
    call_command("prepare")
    printed = capsys.readouterr()
    assert "no active administrator" in printed.out + printed.err
    assert "manage.py createsuperuser" in printed.out + printed.err
    admin.refresh_from_db()
    assert not admin.is_active


def test_an_invalid_given_key_is_refused_and_nothing_is_created(settings: Settings) -> None:
    settings.DAYBOOK_API_KEY = "hello"
    with pytest.raises(
        ConfigurationError, match=r"^DAYBOOK_API_KEY is a value that is not shown\. A key starts with "
    ) as caught:
        first_credentials()
    assert "hello" not in str(caught.value)
    assert (User.objects.count(), ApiKey.objects.count()) == (0, 0)


def test_a_copy_contains_commits_that_are_not_checkpointed_yet(tmp_path: Path) -> None:
    database = tmp_path / "daybook.sqlite3"
    with closing(sqlite3.connect(database)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        with writer:
            writer.execute("CREATE TABLE t (n)")
            writer.execute("INSERT INTO t VALUES (42)")
        copy = back_up(database, tmp_path / "backups")
    assert (copy.parent, copy.stat().st_mode & 0o077) == (tmp_path / "backups", 0)
    with closing(sqlite3.connect(copy)) as read:
        assert read.execute("SELECT n FROM t").fetchall() == [(42,)]


@pytest.fixture
def upgrading(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose database has a pending migration that does nothing."""
    settings.DAYBOOK_HOME = tmp_path
    sqlite3.connect(tmp_path / "daybook.sqlite3").close()
    monkeypatch.setattr(bootstrap, "pending_migrations", lambda: ["memories.9999_of_tomorrow"])
    monkeypatch.setattr(bootstrap, "call_command", lambda *arguments, **options: None)
    return tmp_path


def test_a_database_of_a_newer_version_is_refused() -> None:
    MigrationRecorder(connection).record_applied("gateway", "9999_of_tomorrow")
    with pytest.raises(ConfigurationError, match=r"newer version, which has the migration gateway\.9999_of_tomorrow"):
        call_command("prepare")
    assert not User.objects.exists()


def test_only_the_newest_copies_are_kept(upgrading: Path) -> None:
    copies = [bootstrap._migrate(upgrading / "daybook.sqlite3") for _ in range(MAX_BACKUPS + 2)]
    assert sorted((upgrading / "backups").iterdir()) == copies[-MAX_BACKUPS:]


def test_the_first_copy_of_an_upgrade_is_kept_however_often_it_is_interrupted(
    upgrading: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: str, **options: object) -> None:
        raise KeyboardInterrupt

    backups, oldest = upgrading / "backups", []
    with monkeypatch.context() as patched:
        patched.setattr(bootstrap, "call_command", killed)
        for _ in range(MAX_BACKUPS + 2):
            with pytest.raises(KeyboardInterrupt):
                bootstrap._migrate(upgrading / "daybook.sqlite3")
            oldest.append(min(backups.glob("before-*.sqlite3")))
            (backups / "before-20260101T000000000000Z.part").touch()  # an interrupted copy
    assert set(oldest) == {oldest[0]}
    bootstrap._migrate(upgrading / "daybook.sqlite3")
    assert len(list(backups.glob("before-*"))) == MAX_BACKUPS + 1, "interrupted copies are deleted"
    last = [bootstrap._migrate(upgrading / "daybook.sqlite3") for _ in range(MAX_BACKUPS)]
    assert sorted(backups.iterdir()) == last


def test_a_damaged_database_is_not_migrated(upgrading: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database, migrated = upgrading / "daybook.sqlite3", []
    monkeypatch.setattr(bootstrap, "call_command", lambda *arguments, **options: migrated.append(arguments))
    with closing(sqlite3.connect(database)) as writer, writer:
        writer.execute("CREATE TABLE t (words)")
        writer.executemany("INSERT INTO t VALUES (?)", [("said" * 200,)] * 100)
    with database.open("r+b") as file:
        file.seek(5 * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(ConfigurationError, match="is damaged: ") as refused:
        bootstrap._migrate(database)
    assert "\n" not in str(refused.value)
    assert (migrated, list((upgrading / "backups").glob("*.sqlite3"))) == ([], [])


def test_a_start_completes_one_that_was_killed_after_its_last_migration() -> None:
    Permission.objects.filter(content_type__app_label="reviews").delete()
    if connection.vendor == "sqlite":
        connection.cursor().execute("DROP TRIGGER gateway_message_added")
    call_command("prepare")
    assert Permission.objects.filter(content_type__app_label="reviews", codename="view_reviewrun").exists()
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT count(*) FROM sqlite_master WHERE name = 'gateway_message_added'")
            assert cursor.fetchone() == (1,)


def test_a_start_that_waits_for_another_one_says_so(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    other = _lock_of_another_start(settings.DAYBOOK_HOME)
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        other.close()

    monkeypatch.setattr(bootstrap.logger, "warning", say)
    for _ in range(2):
        with bootstrap._exclusive():
            pass
    assert said == ["Another start prepares this database; this one waits until it has finished."]


def _lock_of_another_start(home: Path) -> Any:
    """Return what holds the lock until it is closed."""
    if connection.vendor == "sqlite":
        file = (home / "up.lock").open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
        return file
    postgres: Any = connection
    other = postgres.Database.connect(**postgres.get_connection_params())
    other.execute("SELECT pg_advisory_lock(%s)", [bootstrap._LOCK_NUMBER])
    return other

"""Steps of `manage.py restore`: cheap checks come first, and a failure leaves everything unchanged."""

import hashlib
import json
import resource
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings as configured
from django.core.files.storage import storages
from django.core.management.base import CommandError
from django.db import connection
from pytest_django import Settings

from config.backups import backup, files, postgres_tools, sqlite_tools
from config.doctor import findings
from gateway.attachments.files import file_name, file_store
from memories.ids import uuid7

MANIFEST: dict[str, Any] = {
    "format": 1,
    "made_at": "2026-01-01T00:00:00+00:00",
    "engine": connection.vendor,
    "files": {backup._DATABASE[connection.vendor]: "0" * 64},
    "migrations": [["memories", "0001_initial"]],
    "attachments": 0,
}


@contextmanager
def limited_file_size(size: int) -> Iterator[None]:
    """Limit the size of files to this many bytes, as on a full disk, until the block ends."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)


def database_make(path: Path, words: str, rows: int) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE told (words)")
        database.executemany("INSERT INTO told VALUES (?)", [(words,)] * rows)
    return path


@pytest.mark.django_db
def test_an_installation_with_data_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def must_not_read(*arguments: object) -> str:
        raise AssertionError("It was read.")

    monkeypatch.setattr(backup, "_sha256", must_not_read)
    monkeypatch.setattr(sqlite_tools, "_integrity", must_not_read)
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    replaced = "the whole schema public, with any other tables in it" if connection.vendor == "postgresql" else "it"
    with pytest.raises(CommandError, match=f"not empty. --force replaces {replaced}, after a backup"):
        backup.restore(tmp_path)
    monkeypatch.setattr("gateway.heartbeat.alive", lambda: True)
    with pytest.raises(CommandError, match="Daybook is running"):
        backup.restore(tmp_path)


INVALID: list[dict[str, Any]] = [
    {"files": []},
    {"files": [backup._DATABASE[connection.vendor]]},
    {"engine": ["sqlite"]},
    {"migrations": None},
    {"migrations": [1]},
    {"migrations": [["memories", 1]]},
    {"format": "1"},
]


@pytest.mark.parametrize("invalid", INVALID)
def test_an_unknown_manifest_is_refused(tmp_path: Path, invalid: dict[str, Any]) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST | invalid))
    with pytest.raises(CommandError, match="has a format that this version does not know"):
        backup.restore(tmp_path)


def test_a_file_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "daybook.sqlite3").mkdir()
    with pytest.raises(CommandError, match="cannot be read: unable to open database file"):
        sqlite_tools.refuse_damaged(tmp_path / "daybook.sqlite3")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_stopped_deletes_its_incomplete_files(tmp_path: Path, number: signal.Signals) -> None:
    def copy() -> None:
        with sqlite_tools.temporary_folder(tmp_path) as part:
            (part / "daybook.sqlite3").write_text("what people remember")
            signal.raise_signal(number)

    before = signal.signal(number, signal.SIG_DFL)  # `nohup` ignores SIGHUP, also for its children
    with pytest.raises(SystemExit) as ended:
        copy()
    assert (ended.value.code, list(tmp_path.iterdir())) == (128 + number, [])
    assert signal.signal(number, before) == signal.SIG_DFL


def test_sqlite_copies_and_checks_in_a_thread_so_that_the_command_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = database_make(tmp_path / "there", "present", 10)
    threads: list[threading.Thread] = []
    connect = sqlite3.connect

    def noting(*args: Any, **options: Any) -> sqlite3.Connection:
        threads.append(threading.current_thread())
        return connect(*args, **options)

    monkeypatch.setattr(sqlite3, "connect", noting)
    sqlite_tools.copy(source, tmp_path / "copy.sqlite3")
    assert len(threads) == 3  # the database, its copy, and the copy again to check it
    assert threading.main_thread() not in threads


def test_a_full_disk_leaves_the_database_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    existing, copy = (
        database_make(tmp_path / "there", "present", 10),
        database_make(tmp_path / "copy", "restored" * 100, 1000),
    )
    monkeypatch.setattr(configured, "DATABASES", {"default": {"NAME": str(existing)}})
    with limited_file_size(200_000), pytest.raises(CommandError, match="The database was not replaced"):
        sqlite_tools.load(copy, into=True)
    assert sqlite_tools._integrity(existing.as_uri()) == "ok"
    with closing(sqlite3.connect(existing)) as database:
        assert database.execute("SELECT DISTINCT words FROM told").fetchall() == [("present",)]


def test_leftovers_of_a_moved_database_are_not_applied_to_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, copy = tmp_path / "home", database_make(tmp_path / "copy", "restored", 10)
    home.mkdir()
    for suffix in ("-wal", "-shm", "-journal"):
        (home / f"daybook.sqlite3{suffix}").write_bytes(b"of the former database")
    monkeypatch.setattr(configured, "DATABASES", {"default": {"NAME": str(home / "daybook.sqlite3")}})
    sqlite_tools.load(copy, into=False)
    assert [path.name for path in home.iterdir()] == ["daybook.sqlite3"]


def test_a_signing_key_missing_from_the_manifest_is_not_restored(tmp_path: Path, settings: Settings) -> None:
    settings.DAYBOOK_HOME, settings.SECRET_KEY_GIVEN = tmp_path / "home", False
    (tmp_path / "secret_key").write_text("put there by somebody")
    assert backup._restore_key(tmp_path, backup.Manifest(**MANIFEST)) == "missing"


def test_an_attachment_that_cannot_be_read_is_not_left_out_of_a_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A restore with --force deletes the files of the database that it replaces, which this backup should have."""
    key = (uuid7(), hashlib.sha256(b"photo").hexdigest())
    monkeypatch.setattr(files, "_known_in", lambda database: {key: 5})
    path = Path(storages["attachments"].path(file_name(*key)))
    path.mkdir(parents=True)  # it can be neither read nor called missing
    unreadable = rf"^attachments/{file_name(*key)} cannot be read\. Repair or delete it\. Nothing was backed up\.$"
    with pytest.raises(CommandError, match=unreadable):
        files.attachments_copy(tmp_path, tmp_path / "database")
    assert caplog.text.splitlines()[1:] == [], "no traceback before the error"
    path.rmdir()
    assert files.attachments_copy(tmp_path, tmp_path / "database") == 0


def test_attachments_without_enough_space_leave_existing_ones_unchanged(tmp_path: Path) -> None:
    owner_id, existing, new = uuid7(), b"is there", b"is new"
    files_by_owner = [(owner_id, hashlib.sha256(data).hexdigest()) for data in (existing, new)]
    names = [file_name(*each) for each in files_by_owner]
    for name, data in ((names[0], existing), (names[1], new), ("another/fo/lder", b"is no attachment")):
        path = tmp_path / "attachments" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    file_store(*files_by_owner[0], existing)
    adding = files.attachments_added(tmp_path)
    assert adding.__enter__() == {files_by_owner[1]}
    disk_full = OSError("No space left on device")
    assert not adding.__exit__(OSError, disk_full, None)
    assert [storages["attachments"].exists(name) for name in names] == [True, False]


@pytest.mark.django_db
def test_an_interrupted_restore_puts_the_schema_back(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")

    def interrupted(*arguments: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(postgres_tools, "_run", interrupted)
    tables = connection.introspection.table_names()
    with pytest.raises(KeyboardInterrupt):
        postgres_tools.load(Path("a.dump"))
    assert connection.introspection.table_names() == tables


@pytest.mark.django_db
def test_a_server_that_pg_dump_cannot_reach_is_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    monkeypatch.setitem(connection.settings_dict, "PORT", "1")
    with pytest.raises(CommandError, match=r"^pg_dump failed: connection to server .* failed: Connection refused$"):
        postgres_tools.dump(tmp_path / "a.dump")


@pytest.mark.django_db
def test_pg_dump_does_not_wait_for_a_locked_table_without_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    monkeypatch.setattr(postgres_tools, "_LOCK_SECONDS", 0.1)
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("LOCK TABLE memories_book IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(CommandError, match="another connection has locked a table"):
            postgres_tools.dump(tmp_path / "a.dump")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("service", "nowhere", 'definition of service "nowhere" not found'),
        ("options", "-c role=nobody", 'connection to server .* role "nobody" does not exist'),
    ],
)
def test_pg_dump_connects_as_the_options_of_the_address_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str, reason: str
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {name: value})
    with pytest.raises(CommandError, match=f"^pg_dump failed: {reason}"):
        postgres_tools.dump(tmp_path / "a.dump")


@pytest.mark.django_db
def test_tables_in_two_schemas_are_refused_since_a_backup_has_one() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA other; ALTER TABLE auth_user SET SCHEMA other")
        cursor.execute("SET LOCAL search_path = other, public")
    with pytest.raises(CommandError, match=r"^Some tables are in other, others in public: move them with ALTER TABLE"):
        postgres_tools.schema()


@pytest.mark.django_db
def test_doctor_reports_leftovers_of_a_killed_restore() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    assert [found for found in findings() if found.check == "restores"] == []
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA replaced_20260101000000000000")
    (found,) = [found for found in findings() if found.check == "restores"]
    assert 'DROP SCHEMA "replaced_20260101000000000000" CASCADE' in found.text

"""Steps of `manage.py restore`: cheap refusals come first, and what fails on the way leaves everything as it was."""

import hashlib
import json
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
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
def files_of_at_most(size: int) -> Iterator[None]:
    """A disk that has so many bytes of room for each file, until the block ends."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)


def made_of(path: Path, words: str, rows: int) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE told (words)")
        database.executemany("INSERT INTO told VALUES (?)", [(words,)] * rows)
    return path


@pytest.mark.django_db
def test_an_installation_with_data_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*arguments: object) -> str:
        raise AssertionError("It was read.")

    monkeypatch.setattr(backup, "_sha256", read)
    monkeypatch.setattr(sqlite_tools, "_integrity", read)
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    with pytest.raises(CommandError, match="not empty"):
        backup.restore(tmp_path)
    monkeypatch.setattr("config.heartbeat.alive", lambda: True)
    with pytest.raises(CommandError, match="Daybook is running"):
        backup.restore(tmp_path)


ODD: list[dict[str, Any]] = [
    {"files": []},
    {"files": [backup._DATABASE[connection.vendor]]},
    {"engine": ["sqlite"]},
    {"migrations": None},
    {"migrations": [1]},
    {"migrations": [["memories", 1]]},
    {"format": "1"},
]


@pytest.mark.parametrize("odd", ODD)
def test_a_manifest_of_another_form_is_refused(tmp_path: Path, odd: dict[str, Any]) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST | odd))
    with pytest.raises(CommandError, match="has a format that this version does not know"):
        backup.restore(tmp_path)


def test_a_file_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "daybook.sqlite3").mkdir()
    with pytest.raises(CommandError, match="cannot be read: unable to open database file"):
        sqlite_tools.refuse_damaged(tmp_path / "daybook.sqlite3")


def test_a_disk_that_gets_full_leaves_the_database_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, copy = made_of(tmp_path / "there", "present", 10), made_of(tmp_path / "copy", "restored" * 100, 1000)
    monkeypatch.setattr(sqlite_tools.settings, "DATABASES", {"default": {"NAME": str(there)}})
    with files_of_at_most(200_000), pytest.raises(CommandError, match="The database was not replaced"):
        sqlite_tools.load(copy, into=True)
    assert sqlite_tools._integrity(there.as_uri()) == "ok"
    with closing(sqlite3.connect(there)) as database:
        assert database.execute("SELECT DISTINCT words FROM told").fetchall() == [("present",)]


def test_what_a_database_that_was_moved_away_left_is_not_applied_to_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, copy = tmp_path / "home", made_of(tmp_path / "copy", "restored", 10)
    home.mkdir()
    for left in ("-wal", "-shm", "-journal"):
        (home / f"daybook.sqlite3{left}").write_bytes(b"of the former database")
    monkeypatch.setattr(sqlite_tools.settings, "DATABASES", {"default": {"NAME": str(home / "daybook.sqlite3")}})
    sqlite_tools.load(copy, into=False)
    assert [path.name for path in home.iterdir()] == ["daybook.sqlite3"]


def test_a_signing_key_that_no_manifest_names_is_not_taken(tmp_path: Path, settings: Settings) -> None:
    settings.DAYBOOK_HOME, settings.SECRET_KEY_GIVEN = tmp_path / "home", False
    (tmp_path / "secret_key").write_text("put there by somebody")
    assert backup._restore_key(tmp_path, backup.Manifest(**MANIFEST)) == "missing"


def test_attachments_that_have_no_room_leave_those_that_are_there(tmp_path: Path) -> None:
    owner_id, there, new = uuid7(), b"is there", b"is new"
    named = [(owner_id, hashlib.sha256(data).hexdigest()) for data in (there, new)]
    for (_, sha256), data in zip(named, (there, new), strict=True):
        files._write(tmp_path / "attachments" / file_name(owner_id, sha256), data)
    files._write(tmp_path / "attachments" / "another" / "fo" / "lder", b"is no attachment")
    file_store(*named[0], there)
    adding = files.attachments_added(tmp_path)
    assert adding.__enter__() == {named[1]}
    full = OSError("No space left on device")
    assert not adding.__exit__(OSError, full, None)
    assert [storages["attachments"].exists(file_name(*each)) for each in named] == [True, False]


@pytest.mark.django_db
def test_a_restore_that_is_broken_off_puts_the_schema_back(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")

    def broken_off(*arguments: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(postgres_tools, "_run", broken_off)
    tables = connection.introspection.table_names()
    with pytest.raises(KeyboardInterrupt):
        postgres_tools.load(Path("a.dump"))
    assert connection.introspection.table_names() == tables


@pytest.mark.django_db
def test_doctor_names_what_a_killed_restore_left_behind() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    assert [found for found in findings() if found.check == "restores"] == []
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA replaced_20260101000000000000")
    (found,) = [found for found in findings() if found.check == "restores"]
    assert 'DROP SCHEMA "replaced_20260101000000000000" CASCADE' in found.text

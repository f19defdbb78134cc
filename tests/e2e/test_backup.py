"""`manage.py backup` during writes, and `restore`: the copy is consistent, and nothing is replaced by accident."""

import json
import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from django.core.management.base import CommandError

import config.backups.backup
from tests.config.test_upgrade import STORED
from tests.data.stored import load_stored
from tests.e2e.conftest import StartDaybook, new_storage
from tests.e2e.http_user import KeyUser
from tests.e2e.running import manage, running_daybook
from tests.upstream_server import UpstreamServer
from tests.waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture
def filled(home: Path) -> Path:
    """A home with rows in every table, in the first version's schema."""
    load_stored(STORED, home)
    return home


@contextmanager
def writing_in_pairs(database: Path) -> Iterator[None]:
    """Write pairs of rows, each in one transaction, until the block ends."""
    stop, started = threading.Event(), threading.Event()

    def write() -> None:
        number = 0
        with closing(sqlite3.connect(database, timeout=30)) as connection:
            while not stop.is_set():
                number += 1
                with connection:
                    for side in ("left", "right"):
                        row = ("2026-01-01", f"{side}-{number}", "secret", number)
                        connection.execute(
                            "INSERT INTO memories_scanday (day, rule, kind, number) VALUES (?, ?, ?, ?)", row
                        )
                started.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert started.wait(30)
        yield
    finally:
        stop.set()
        thread.join()


def rows(home: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(home / "daybook.sqlite3")) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.usefixtures("sqlite_only")
def test_a_backup_during_writes_is_consistent_and_can_be_restored(filled: Path, tmp_path: Path) -> None:
    backup, second = tmp_path / "backup", tmp_path / "second"
    (filled / "secret_key").write_text("the-signing-key-of-the-first-installation")
    with writing_in_pairs(filled / "daybook.sqlite3"):
        done = manage(filled, "backup", str(backup))
    assert done.returncode == 0, done.stderr
    assert str(backup) in done.stdout
    assert sorted(path.name for path in backup.iterdir()) == ["daybook.sqlite3", "manifest.json", "secret_key"]
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in [backup, *backup.iterdir()])
    done = manage(second, "restore", str(backup))
    assert done.returncode == 0, done.stderr
    assert "Restored the database" in done.stdout
    assert rows(second, "PRAGMA integrity_check") == [("ok",)]
    halves = "SELECT number FROM memories_scanday WHERE rule LIKE '{}-%' ORDER BY number"
    left, right = rows(second, halves.format("left")), rows(second, halves.format("right"))
    assert left == right != []
    contents = "SELECT content FROM memories_memory ORDER BY id"
    assert rows(second, contents) == rows(filled, contents) != []
    assert (second / "secret_key").read_text() == "the-signing-key-of-the-first-installation"


@pytest.mark.usefixtures("sqlite_only")
def test_existing_data_is_replaced_only_with_force_and_kept_aside(filled: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    assert manage(filled, "backup", str(backup)).returncode == 0
    with closing(sqlite3.connect(filled / "daybook.sqlite3")) as connection, connection:
        connection.execute("UPDATE memories_memory SET content = 'Written after the backup.'")
    refused = manage(filled, "restore", str(backup))
    assert refused.returncode == 1
    assert "not empty" in refused.stderr
    assert rows(filled, "SELECT DISTINCT content FROM memories_memory") == [("Written after the backup.",)]
    done = manage(filled, "restore", str(backup), "--force")
    assert done.returncode == 0, done.stderr
    assert ("Written after the backup.",) not in rows(filled, "SELECT content FROM memories_memory")
    (aside,) = (filled / "backups").glob("replaced-*")
    assert rows(aside, "SELECT DISTINCT content FROM memories_memory") == [("Written after the backup.",)]
    with pytest.raises(CommandError, match="is not empty"):
        config.backups.backup.backup(backup)


@pytest.mark.usefixtures("sqlite_only")
def test_restoring_an_incomplete_backup_changes_nothing(filled: Path, tmp_path: Path) -> None:
    backup, second = tmp_path / "backup", tmp_path / "second"
    assert manage(filled, "backup", str(backup)).returncode == 0
    manifest = json.loads((backup / "manifest.json").read_text())
    complete = (backup / "daybook.sqlite3").read_bytes()
    (backup / "daybook.sqlite3").write_bytes(complete[: len(complete) // 2])
    assert "is not the file that was backed up" in manage(second, "restore", str(backup)).stderr
    assert [path.name for path in second.iterdir()] == ["secret_key"]  # which every command creates
    (backup / "daybook.sqlite3").write_bytes(complete)
    newer = manifest | {"migrations": [*manifest["migrations"], ["memories", "9999_of_tomorrow"]]}
    (backup / "manifest.json").write_text(json.dumps(newer))
    assert "newer version" in manage(second, "restore", str(backup)).stderr
    (backup / "manifest.json").unlink()
    with pytest.raises(CommandError, match="an incomplete one"):
        config.backups.backup.restore(backup)


@pytest.mark.usefixtures("sqlite_only")
def test_a_database_that_cannot_be_copied_is_a_one_line_error_and_leaves_no_files(filled: Path, tmp_path: Path) -> None:
    (filled / "daybook.sqlite3").write_bytes(b"no database" * 1000)
    result = manage(filled, "backup", str(tmp_path / "backups" / "today"))
    assert (result.returncode, result.stdout) == (1, "")
    message = "The database was not copied: file is not a database. Nothing was backed up."
    assert result.stderr == f"CommandError: {message}\n"
    assert list((tmp_path / "backups").iterdir()) == []


@pytest.mark.any_database
def test_processes_that_run_keep_nothing_of_what_a_restore_replaced(
    home: Path, storage: dict[str, str], upstream: UpstreamServer, start_daybook: StartDaybook, tmp_path: Path
) -> None:
    """Generations begin again with the backup, and two writes later are those that the processes have seen before."""
    agents, backup = tmp_path / "agents.yaml", str(tmp_path / "backup")
    agents.write_text("agents: {assistant: {inject_memories: true}}")
    env = {"OPENAI_BASE_URL": upstream.url, "OPENAI_API_KEY": "x", "DAYBOOK_AGENTS": str(agents)}
    user = KeyUser((daybook := start_daybook(env, "--web", "2")).address, daybook.api_key)
    _, tea = user.call("POST", "/api/memories", {"content": "Drinks tea."})
    assert manage(home, "backup", backup, env=storage).returncode == 0
    user.call("PATCH", f"/api/memories/{tea['id']}", {"content": "Drinks coffee."})
    user.call("POST", "/api/memories", {"content": "Has a secret."})
    assert given_in_both(user, upstream) == {("coffee", "secret")}
    done = manage(home, "restore", backup, "--force", env=storage)
    assert done.returncode == 0, done.stderr
    eventually(lambda: given_in_both(user, upstream) == {("tea",)}, within=20, description="What the backup holds")
    user.call("PATCH", f"/api/memories/{tea['id']}", {"content": "Drinks water."})
    user.call("POST", "/api/memories", {"content": "Sleeps well."})
    assert given_in_both(user, upstream) == {("water", "Sleeps")}


def given_in_both(user: KeyUser, upstream: UpstreamServer) -> set[tuple[str, ...]]:
    """Which of the memories' words several turns were given; the kernel hands connections to either process."""
    given = set()
    for number in range(8):
        body = {"model": "assistant", "messages": [{"role": "user", "content": f"Question {number}"}]}
        assert user.call("POST", "/v1/chat/completions", body)[0] == 200
        sent = str(upstream.requests()[-1]["body"])
        given.add(tuple(word for word in ("tea", "coffee", "water", "secret", "Sleeps") if word in sent))
    return given


@pytest.mark.any_database
def test_an_empty_database_is_not_backed_up(home: Path, unmigrated: dict[str, str], tmp_path: Path) -> None:
    result = manage(home, "backup", str(tmp_path / "today"), env=unmigrated)
    if unmigrated:
        assert result.stderr == "CommandError: The database is empty: there is nothing to back up.\n"
    else:
        assert f"There is no database {home / 'daybook.sqlite3'} yet." in result.stderr
        (home / "daybook.sqlite3").touch()
        result = manage(home, "backup", str(tmp_path / "today"))
        assert result.stderr == "CommandError: The database is empty: there is nothing to back up.\n"
    assert result.returncode == 1
    assert not (tmp_path / "today").exists()


@pytest.mark.usefixtures("sqlite_only")
@pytest.mark.parametrize("damaged_from", [0, 40 * 4096])
def test_a_damaged_existing_database_is_reported_with_a_remedy(filled: Path, tmp_path: Path, damaged_from: int) -> None:
    backup, database = tmp_path / "backup", filled / "daybook.sqlite3"
    assert manage(filled, "backup", str(backup)).returncode == 0
    rows(filled, "PRAGMA wal_checkpoint(TRUNCATE)")  # pages that are still in the WAL would hide the damage
    with database.open("r+b") as file:
        file.seek(damaged_from)
        file.write(b"\xff" * 10 * 4096)
    refused = manage(filled, "restore", str(backup), "--force")
    assert refused.returncode == 1
    assert f"The existing database {database} is damaged" in refused.stderr
    assert "move this file away" in refused.stderr
    database.rename(tmp_path / "damaged")
    for suffix in ("-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    done = manage(filled, "restore", str(backup))
    assert done.returncode == 0, done.stderr
    assert rows(filled, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.usefixtures("sqlite_only", "storage")
def test_a_running_daybook_can_be_backed_up_but_not_replaced(home: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    with running_daybook(home) as daybook:
        done = manage(home, "backup", str(backup))
        assert done.returncode == 0, done.stderr
        refused = manage(home, "restore", str(backup))
        assert refused.returncode == 1
        assert "Daybook is running" in refused.stderr
        assert daybook.get("/readyz")[0] == 200
    assert rows(backup, "SELECT count(*) FROM auth_user") == [(1,)]


def test_postgresql_is_dumped_and_restored(home: Path, storage: dict[str, str], tmp_path: Path) -> None:
    if "DATABASE_URL" not in storage:
        pytest.skip("needs PostgreSQL")
    backup = tmp_path / "backup"
    assert manage(home, "prepare", env=storage).returncode == 0
    with psycopg.connect(storage["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("CREATE SCHEMA replaced_20250101000000000000")
        connection.execute("CREATE TABLE replaced_20250101000000000000.told (words text)")
    done = manage(home, "backup", str(backup), env=storage)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in backup.iterdir()) == ["daybook.dump", "manifest.json"]
    assert b"replaced_20250101" not in (backup / "daybook.dump").read_bytes(), (
        "a killed restore's leftovers are not dumped"
    )
    with psycopg.connect(storage["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("DROP SCHEMA replaced_20250101000000000000 CASCADE")
    assert "not empty" in manage(home, "restore", str(backup), env=storage).stderr
    with new_storage() as second:
        done = manage(home, "restore", str(backup), env=second)
        assert done.returncode == 0, done.stderr
        assert users(second) == users(storage) == 1
    with psycopg.connect(storage["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("UPDATE auth_user SET username = 'changed'")
    done = manage(home, "restore", str(backup), "--force", env=storage)
    assert done.returncode == 0, done.stderr
    with psycopg.connect(storage["DATABASE_URL"]) as connection:
        assert connection.execute("SELECT username FROM auth_user").fetchall() == [("admin",)]
        schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'replaced%'"
        assert connection.execute(schemas).fetchone() == (0,)
    # The state after a kill between the two renames.
    with psycopg.connect(storage["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("ALTER SCHEMA public RENAME TO replaced_20260101000000000000")
        connection.execute("CREATE SCHEMA public")
    refused = manage(home, "prepare", env=storage)
    assert refused.returncode == 1
    assert "A restore was interrupted: the data from before it is in the schema replaced_2026" in refused.stderr


def test_tables_in_another_schema_than_public_are_dumped_and_restored(
    home: Path, storage: dict[str, str], tmp_path: Path
) -> None:
    if "DATABASE_URL" not in storage:
        pytest.skip("needs PostgreSQL")
    backup, url = tmp_path / "backup", storage["DATABASE_URL"]
    other = {**storage, "DATABASE_URL": f"{url}?options=-csearch_path%3Dother"}
    assert manage(home, "prepare", env=storage).returncode == 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SCHEMA public RENAME TO other")
        connection.execute("CREATE SCHEMA public")
    assert manage(home, "backup", str(backup), env=other).returncode == 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE other.auth_user SET username = 'changed'")
    done = manage(home, "restore", str(backup), "--force", env=other)
    assert done.returncode == 0, done.stderr
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT username FROM other.auth_user").fetchall() == [("admin",)]
    refused = manage(home, "restore", str(backup), env=storage)
    assert refused.returncode == 1
    assert "The backup is of the schema other, and this database uses public" in refused.stderr


def test_a_replaced_schema_that_is_still_being_read_is_kept_and_reported(
    home: Path, storage: dict[str, str], tmp_path: Path
) -> None:
    if "DATABASE_URL" not in storage:
        pytest.skip("needs PostgreSQL")
    backup = tmp_path / "backup"
    assert manage(home, "prepare", env=storage).returncode == 0
    assert manage(home, "backup", str(backup), env=storage).returncode == 0
    with psycopg.connect(storage["DATABASE_URL"]) as reader:
        reader.execute("SELECT username FROM auth_user")  # an open transaction
        done = manage(home, "restore", str(backup), "--force", env=storage)
    assert done.returncode == 0, done.stderr
    with psycopg.connect(storage["DATABASE_URL"]) as connection:
        assert connection.execute("SELECT username FROM public.auth_user").fetchall() == [("admin",)]
        (left,) = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'replaced%'").fetchall()
    assert "Restored the database" in done.stdout
    assert f'DROP SCHEMA "{left[0]}" CASCADE' in done.stdout


_ATTACH = """
from gateway.attachments.files import file_store, sha256_of
from gateway.attachments.uses import uses_reserve
from memories.ids import uuid7

owner_id, data = uuid7(), b"{words}"
uses_reserve(owner_id, {{sha256_of(data): (len(data), "text/plain")}})
file_store(owner_id, sha256_of(data), data)
"""


def attachments(home: Path) -> set[bytes]:
    return {path.read_bytes() for path in (home / "attachments").rglob("*") if path.is_file()}


def test_attachments_in_local_storage_are_backed_up_and_restored(
    home: Path, storage: dict[str, str], tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    assert manage(home, "shell", "-c", _ATTACH.format(words="before"), env=storage).returncode == 0
    (home / "attachments" / "stray").write_bytes(b"named by no row")
    done = manage(home, "backup", str(backup), env=storage)
    assert (done.returncode, "Backed up 1 attachment." in done.stdout) == (0, True), done.stderr
    assert manage(home, "shell", "-c", _ATTACH.format(words="after"), env=storage).returncode == 0
    for path in (home / "attachments").rglob("*"):
        if path.is_file() and path.read_bytes() == b"before":
            path.unlink()
    done = manage(home, "restore", str(backup), "--force", env=storage)
    assert (done.returncode, "Restored 1 attachment." in done.stdout) == (0, True), done.stderr
    assert attachments(home) == {b"before", b"named by no row"}, "a replaced attachment is only in the copy"
    (replaced,) = (home / "backups").glob("replaced-*")
    assert attachments(replaced) == {b"after"}
    (copied,) = [path for path in (backup / "attachments").rglob("*") if path.is_file()]
    copied.write_bytes(b"another")
    refused = manage(home, "restore", str(backup), "--force", env=storage)
    assert "is not the file that was backed up" in refused.stderr
    elsewhere = {
        "DAYBOOK_ATTACHMENTS": json.dumps({"BACKEND": "django.core.files.storage.InMemoryStorage"}),
        **storage,
    }
    done = manage(home, "backup", env=elsewhere)
    assert "It does not include attachments, which are in DAYBOOK_ATTACHMENTS" in done.stdout


def users(storage: dict[str, str]) -> int:
    with psycopg.connect(storage["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT count(*) FROM auth_user").fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def sqlite_only() -> None:
    if os.environ.get("DATABASE_URL"):
        pytest.skip("copies SQLite files")

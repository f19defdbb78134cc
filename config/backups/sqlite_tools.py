"""Copying, checking and restoring a SQLite database for backups, as postgres_tools does for PostgreSQL."""

import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from django.conf import settings
from django.core.management.base import CommandError

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_STOPS = (signal.SIGTERM, signal.SIGHUP)
_PRIMARY = 0xFF  # the bits of an extended result code that are the primary one
T = TypeVar("T")


def copy(source: Path, target: Path) -> None:
    """Copy a database, which may be in use, in a consistent state to a single file without a write-ahead log."""
    if not source.exists():
        raise CommandError(f"There is no database {source} yet.")

    def work() -> None:
        with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(target)) as copied:
            original.backup(copied)
            copied.execute("PRAGMA journal_mode=DELETE")

    try:
        _interruptible(work)
    except sqlite3.Error as error:  # the disk is full, or the file is damaged
        raise CommandError(f"The database was not copied: {error}. Nothing was backed up.") from None
    check(target)


def check(database: Path) -> None:
    """Raise CommandError for a damaged copy."""
    if (answer := _integrity(_immutable_uri(database))) != "ok":
        raise CommandError(f"{database} is damaged: {answer}. Nothing was changed.")


def rows_of(database: Path, table: str, columns: str) -> list[tuple[Any, ...]]:
    """Return the columns of all rows of a table in a copy; nothing if it has no such table."""
    with closing(sqlite3.connect(database)) as copied:
        if copied.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [table]).fetchone() is None:
            return []
        return copied.execute(f"SELECT {columns} FROM {table}").fetchall()  # noqa: S608 - names of ours


def refuse_damaged(database: Path) -> None:
    """Raise CommandError if the existing database is damaged, since it could not be backed up before it is
    replaced."""
    if database.exists() and (answer := _integrity(database.absolute().as_uri())) != "ok":
        raise CommandError(
            f"The existing database {database} is damaged: {answer}. Stop Daybook, move this file "
            f"away together with {database.name}-wal and {database.name}-shm, and restore again. Nothing was changed."
        )


def _immutable_uri(database: Path) -> str:
    """Return SQLite's URI for a file that nobody writes to."""
    return f"{database.absolute().as_uri()}?mode=ro&immutable=1"


def _integrity(uri: str) -> str:
    """Return the result of SQLite's integrity check: "ok", or the error. Raises CommandError if the file cannot be read
    now, for example because it is locked or belongs to another user."""

    def work() -> str:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            return str(database.execute("PRAGMA integrity_check").fetchone()[0])

    try:
        return _interruptible(work)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & _PRIMARY not in _DAMAGED:
            path = uri.partition("?")[0].removeprefix("file://")
            raise CommandError(f"{path} cannot be read: {error}. Nothing was changed.") from None
        return str(error)


def load(source: Path, *, into: bool) -> None:
    """Restore a copy. With `into`, write it into the existing database with SQLite's backup, in one transaction that
    processes with the file open see, too. Otherwise rename a copy of it into place."""
    target = Path(settings.DATABASES["default"]["NAME"])
    if not into:
        with temporary_folder(target.parent) as part:
            shutil.copyfile(source, part / target.name)
            sync(part / target.name)
            for suffix in ("-wal", "-shm", "-journal"):  # SQLite would apply their contents to the copy
                target.with_name(target.name + suffix).unlink(missing_ok=True)
            (part / target.name).replace(target)
        return
    try:
        with (
            closing(sqlite3.connect(_immutable_uri(source), uri=True)) as copy,
            closing(sqlite3.connect(target, timeout=30)) as live,
        ):
            copy.backup(live)
    except sqlite3.Error as error:  # the disk is full, or another process holds a transaction
        raise CommandError(f"The database was not replaced: {error}. It is as it was.") from None
    if (answer := _integrity(target.as_uri())) != "ok":
        raise CommandError(f"{target} is damaged after the restore: {answer}.")


def _interruptible(work: Callable[[], T]) -> T:
    """Run in a thread what SQLite does in one call, so that the main thread can be told to stop meanwhile."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised by `result`
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result.result()


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Yield a temporary folder in `parent`, whose contents can be renamed into place. It is deleted at the end if it
    still exists, and if this process is told to stop, since it contains personal data. Main threads only."""
    parent.mkdir(parents=True, exist_ok=True)
    default = [number for number in _STOPS if signal.getsignal(number) == signal.SIG_DFL]
    for number in default:
        signal.signal(number, _exit)
    part = Path(tempfile.mkdtemp(prefix=".daybook-part-", dir=parent))
    try:
        yield part
    finally:
        interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in default:
            signal.signal(number, signal.SIG_IGN)  # a second one would leave the folder half deleted
        shutil.rmtree(part, ignore_errors=True)
        signal.signal(signal.SIGINT, interrupted)
        for number in default:
            signal.signal(number, signal.SIG_DFL)


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


def sync(path: Path) -> None:
    """Flush a file to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())

"""A SQLite database in backups: copied while it is in use, checked, and put in place. For config.backups.backup, as
postgres_tools is for PostgreSQL."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_PRIMARY = 0xFF  # the bits of SQLite's codes of errors that say the kind


def copy(source: Path, target: Path) -> None:
    """Copy a database, which may be in use, as one consistent state into one file without a write-ahead log."""
    if not source.exists():
        raise CommandError(f"There is no database {source} yet.")
    try:
        with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(target)) as copied:
            original.backup(copied)
            copied.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:  # the disk is full, or the file is damaged
        raise CommandError(f"The database was not copied: {error}. Nothing was backed up.") from None
    check(target)


def check(database: Path) -> None:
    """Raise CommandError for a damaged copy."""
    if (answer := _integrity(_at_rest(database))) != "ok":
        raise CommandError(f"{database} is damaged: {answer}. Nothing was changed.")


def refuse_damaged(database: Path) -> None:
    """Raise CommandError for a damaged database in place: what it holds cannot be copied before it is replaced."""
    if database.exists() and (answer := _integrity(database.absolute().as_uri())) != "ok":
        raise CommandError(
            f"{database}, which is there now, is damaged: {answer}. Stop Daybook, move this file "
            f"away together with {database.name}-wal and {database.name}-shm, and restore again. Nothing was changed."
        )


def _at_rest(database: Path) -> str:
    """Return SQLite's URI of a file that nobody writes to."""
    return f"{database.absolute().as_uri()}?mode=ro&immutable=1"


def _integrity(address: str) -> str:
    """Return SQLite's result of an integrity check: "ok", or what is wrong. Raises CommandError if the file cannot be
    read at the moment: it is locked, or belongs to somebody else."""
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            return str(database.execute("PRAGMA integrity_check").fetchone()[0])
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & _PRIMARY not in _DAMAGED:
            path = address.partition("?")[0].removeprefix("file://")
            raise CommandError(f"{path} cannot be read: {error}. Nothing was changed.") from None
        return str(error)


def load(source: Path, *, into: bool) -> None:
    """Put a copy in place by a rename if there is no database. Write it into an existing database with SQLite's backup:
    one transaction, which a process that has the file open sees as well."""
    target = Path(settings.DATABASES["default"]["NAME"])
    if not into:
        with temporary_folder(target.parent) as part:
            shutil.copyfile(source, part / target.name)
            sync(part / target.name)
            for left in ("-wal", "-shm", "-journal"):  # SQLite would write what they hold into the copy
                target.with_name(target.name + left).unlink(missing_ok=True)
            (part / target.name).replace(target)
        return
    try:
        with (
            closing(sqlite3.connect(_at_rest(source), uri=True)) as copy,
            closing(sqlite3.connect(target, timeout=30)) as live,
        ):
            copy.backup(live)
    except sqlite3.Error as error:  # the disk is full, or somebody else holds a transaction
        raise CommandError(f"The database was not replaced: {error}. It is as it was.") from None
    if (answer := _integrity(target.as_uri())) != "ok":
        raise CommandError(f"{target} is damaged after the restore: {answer}.")


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Yield a folder beside the target, so that it can be renamed. It is deleted in the end if it still exists."""
    parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".daybook-part-", dir=parent))
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def sync(path: Path) -> None:
    """Have a file's bytes written to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())

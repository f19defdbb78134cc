"""The attachments of a backup: the files that the database refers to, if they are in a local folder. Other storages
need a backup of their own. A restore keeps only files with a restored row, since a file without a row would never be
deleted."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import UUID

from django.core.management.base import CommandError
from django.db import connection

from config.backups.sqlite_tools import rows_of, sync
from gateway.attachments.files import (
    ReadFailure,
    file_delete,
    file_is_gone,
    file_load,
    file_name,
    file_store,
    is_local,
    sha256_of,
)
from gateway.models import Attachment

FOLDER = "attachments"
_TABLE = Attachment._meta.db_table
FileKey = tuple[UUID, str]  # owner id and SHA-256


def attachments_known() -> dict[FileKey, int]:
    """Return the sizes of the files in the database; none if it is empty or of a version without attachments."""
    if _TABLE not in connection.introspection.table_names():
        return {}
    rows = Attachment.objects.values_list("owner_id", "sha256", "size")
    return {(owner_id, sha256): size for owner_id, sha256, size in rows}


def attachments_copy(folder: Path, database: Path) -> int | None:
    """Copy attachments into a backup, after the database was copied. Returns their number, or None if they are in
    another storage. Raises CommandError if one cannot be read."""
    if not is_local():
        return None
    count = 0
    for (owner_id, sha256), size in sorted(_known_in(database).items()):
        data, name = file_load(owner_id, sha256, size), file_name(owner_id, sha256)
        if data is ReadFailure.UNAVAILABLE:
            raise CommandError(f"{FOLDER}/{name} cannot be read. Nothing was backed up.")
        if isinstance(data, bytes):  # it may have been deleted in the meantime
            path = folder / FOLDER / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            sync(path)
            count += 1
    return count


def _known_in(database: Path) -> dict[FileKey, int]:
    """Return the files in a copy of the database if it can be queried, or else those in the current database."""
    if connection.vendor != "sqlite":
        return attachments_known()
    rows = rows_of(database, _TABLE, "owner_id, sha256, size")
    return {(UUID(owner_id), sha256): size for owner_id, sha256, size in rows}


def attachments_check(folder: Path, count: int | None) -> None:
    """Raise CommandError if the files of a backup are not those that were backed up."""
    files = [path for path in (folder / FOLDER).rglob("*") if path.is_file()]
    for path in files:
        if sha256_of(path.read_bytes()) != path.name:
            raise CommandError(f"{path} is not the file that was backed up. Nothing was changed.")
    if len(files) != (count or 0):
        raise CommandError(f"{folder / FOLDER} has {len(files)} files, not {count or 0}. Nothing was changed.")


@contextmanager
def attachments_added(folder: Path) -> Iterator[set[FileKey]]:
    """Store the files of a backup, before the block restores its database, since the disk may be full. Yields the new
    files; if storing or the block fails, they are deleted again."""
    added: set[FileKey] = set()
    try:
        for owner_id, sha256 in _in_backup(folder):
            if file_is_gone(owner_id, sha256):
                added.add((owner_id, sha256))
            file_store(owner_id, sha256, (folder / FOLDER / file_name(owner_id, sha256)).read_bytes())
        yield added
    except BaseException:  # Ctrl-C, too
        for owner_id, sha256 in added:
            file_delete(owner_id, sha256)
        raise


def attachments_settle(folder: Path, *, added: Iterable[FileKey], replaced: Iterable[FileKey]) -> int:
    """Delete the files that are not in the restored database: those that were `added` from the backup and, in a local
    folder, those of the `replaced` database, whose backup has a copy. Returns how many files of the backup are in the
    database."""
    known = attachments_known()
    former = set(replaced) if is_local() else set()
    for owner_id, sha256 in (set(added) | former) - known.keys():
        file_delete(owner_id, sha256)
    return sum(key in known for key in _in_backup(folder))


def _in_backup(folder: Path) -> Iterator[FileKey]:
    """Yield the files of a backup whose paths are those of attachments."""
    for path in sorted((folder / FOLDER).glob("*/*/*")):
        with suppress(ValueError):  # the folder's name is not an owner id
            key = UUID(path.parts[-3]), path.name
            if path == folder / FOLDER / file_name(*key):
                yield key

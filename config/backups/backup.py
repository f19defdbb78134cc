"""Backups: a folder with a copy of the database, the attachments and signing key if they are stored in DAYBOOK_HOME,
and a manifest. Used by `manage.py backup` and `manage.py restore`.

A backup can be made while Daybook runs: SQLite's online backup and pg_dump copy a consistent state. It is written to a
temporary folder that is renamed at the end, so a folder with a manifest is always complete."""

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self
from uuid import UUID

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError, connection, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from config.backups import postgres_tools, sqlite_tools
from config.backups.files import (
    attachments_added,
    attachments_check,
    attachments_copy,
    attachments_known,
    attachments_settle,
)
from config.health import pending_migrations
from gateway import heartbeat
from memories.messaging.invalidation import newest_and_owners, publish_replaced

MANIFEST = "manifest.json"
KEY_FILE = "secret_key"
_DATABASE = {"sqlite": "daybook.sqlite3", "postgresql": "daybook.dump"}


class Manifest(BaseModel):
    """The description of a backup. `files` maps names to SHA-256 hashes, `migrations` lists the applied migrations, and
    `attachments` is the number of attachments, whose files are named by SHA-256; None if they are stored elsewhere."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    format: Literal[1]
    made_at: str
    engine: str
    files: dict[str, str]
    migrations: list[Annotated[list[str], Field(min_length=2, max_length=2)]]
    attachments: int | None = None

    @property
    def database(self) -> str:
        """The name of the database's file."""
        return _DATABASE[self.engine]

    @model_validator(mode="after")
    def names_its_database(self) -> Self:
        """Raises ValueError for an unknown engine, or files without the database."""
        if _DATABASE.get(self.engine) not in self.files:
            raise ValueError("files has no database")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The result of a restore. `replaced` is the folder with a backup of the replaced data, if there was any. `left` is
    the PostgreSQL schema that still has that data because it could not be dropped while in use, or ""."""

    manifest: Manifest
    secret_key: Literal["restored", "environment", "missing"]
    attachments: int
    replaced: Path | None
    left: str = ""


def backup(folder: Path | None = None) -> tuple[Path, Manifest]:
    """Write a backup to `folder`, which must be empty or not exist; the default is a new folder in
    DAYBOOK_HOME/backups. Raises CommandError."""
    target = (folder or _default_folder("daybook")).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise CommandError(f"{target} is not empty. Give a folder that does not exist yet.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with sqlite_tools.temporary_folder(target.parent) as part:
        manifest = _write(part)
        part.rename(target)
    return target, manifest


def restore(folder: Path, *, force: bool = False) -> Restored:
    """Restore a backup, after checking it. A restore that fails leaves everything as it was.

    Raises CommandError if the backup is incomplete or from another database engine and, without `force`, if there is
    already data or Daybook is running. With `force`, existing data is backed up first."""
    manifest = _read_manifest(folder)
    has_data = _has_data(refuse=not force)
    verify(folder, manifest)
    if has_data and manifest.engine == "sqlite":
        sqlite_tools.refuse_damaged(Path(connection.settings_dict["NAME"]))
    replaced, known = (backup(_default_folder("replaced"))[0], attachments_known()) if has_data else (None, {})
    newest, owners = _before_replacing() if has_data else (0, set())
    with attachments_added(folder) as added:
        connections.close_all()
        left = ""
        if manifest.engine == "sqlite":
            sqlite_tools.load(folder / manifest.database, into=has_data)
        else:
            left = postgres_tools.load(folder / manifest.database)
    if has_data and not pending_migrations():
        publish_replaced(newest, owners)
    return Restored(
        manifest=manifest,
        secret_key=_restore_key(folder, manifest),
        attachments=attachments_settle(folder, added=added, replaced=known),
        replaced=replaced,
        left=left,
    )


def _before_replacing() -> tuple[int, set[UUID]]:
    try:
        return newest_and_owners()
    except DatabaseError:  # the database has an older schema, so no process of this version uses it
        return 0, set()


def _has_data(*, refuse: bool) -> bool:
    """Return True if the database has tables. With `refuse`, raise CommandError instead."""
    if connection.vendor == "sqlite" and not Path(connection.settings_dict["NAME"]).exists():
        return False  # connecting would create the file
    try:
        has_data = bool(connection.introspection.table_names())
        if has_data and refuse and heartbeat.alive():
            raise CommandError("Daybook is running on this database. Stop it first, or use --force.")
    except DatabaseError:
        if connection.vendor == "sqlite":
            sqlite_tools.refuse_damaged(Path(connection.settings_dict["NAME"]))
        raise
    if has_data and refuse:
        schema = connection.vendor == "postgresql" and postgres_tools.schema()
        replaced = f"the whole schema {schema}, with any other tables in it" if schema else "it"
        raise CommandError(
            f"The database is not empty. --force replaces {replaced}, after a backup of the existing data."
        )
    return has_data


def verify(folder: Path, manifest: Manifest) -> None:
    """Check that a backup is complete and can be restored here. Raises CommandError."""
    for name, expected in manifest.files.items():
        path = folder / name
        if Path(name).name != name or not path.is_file() or _sha256(path) != expected:
            raise CommandError(f"{path} is missing or is not the file that was backed up. Nothing was changed.")
    attachments_check(folder, manifest.attachments)
    known = set(MigrationLoader(None).disk_migrations)
    if newer := [".".join(step) for step in manifest.migrations if tuple(step) not in known]:
        raise CommandError(f"The backup is of a newer version, which has the migration {newer[-1]}. Upgrade first.")
    if manifest.engine == "sqlite":
        sqlite_tools.check(folder / manifest.database)
    else:
        postgres_tools.check(folder / manifest.database)


def _write(folder: Path) -> Manifest:
    database = folder / _DATABASE[connection.vendor]
    if connection.vendor == "sqlite":
        sqlite_tools.copy(Path(connection.settings_dict["NAME"]), database)
    else:
        postgres_tools.dump(database)
    key = settings.DAYBOOK_HOME / KEY_FILE
    if key.exists() and not settings.SECRET_KEY_GIVEN:
        shutil.copyfile(key, folder / KEY_FILE)
    attachments = attachments_copy(folder, database)
    files = sorted(path for path in folder.iterdir() if path.is_file())
    manifest = Manifest(
        format=1,
        made_at=timezone.now().isoformat(timespec="seconds"),
        engine=connection.vendor,
        files={path.name: _sha256(path) for path in files},
        migrations=sorted([app, name] for app, name in _applied(database)),
        attachments=attachments,
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")
    for path in (*files, folder / MANIFEST):
        sqlite_tools.sync(path)
    return manifest


def _applied(database: Path) -> set[tuple[str, ...]]:
    """Return the applied migrations, from the copy if it can be queried, since the server may be migrated meanwhile.
    Raises CommandError if there are none."""
    if connection.vendor == "sqlite":
        applied = set(sqlite_tools.rows_of(database, "django_migrations", "app, name"))
    else:
        applied = set(MigrationRecorder(connection).applied_migrations())
    if not applied:
        raise CommandError("The database is empty: there is nothing to back up.")
    return applied


def _read_manifest(folder: Path) -> Manifest:
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise CommandError(f"{folder} contains no {MANIFEST}: it is not a backup, or an incomplete one.") from None
    except OSError as error:
        raise CommandError(f"{folder / MANIFEST} cannot be read ({type(error).__name__}).") from None
    except ValidationError:
        raise CommandError(f"{folder / MANIFEST} has a format that this version does not know.") from None
    if manifest.engine != connection.vendor:
        raise CommandError(f"This is a backup of {manifest.engine}; this installation uses {connection.vendor}.")
    return manifest


def _restore_key(folder: Path, manifest: Manifest) -> Literal["restored", "environment", "missing"]:
    source, target = folder / KEY_FILE, settings.DAYBOOK_HOME / KEY_FILE
    if settings.SECRET_KEY_GIVEN:
        return "environment"
    if KEY_FILE not in manifest.files:
        return "missing"
    fresh = target.with_name(f"{KEY_FILE}.{os.getpid()}")
    shutil.copyfile(source, fresh)
    sqlite_tools.sync(fresh)
    fresh.replace(target)
    return "restored"


def _default_folder(name: str) -> Path:
    return Path(settings.DAYBOOK_HOME) / "backups" / f"{name}-{timezone.now():%Y%m%dT%H%M%S%f}Z"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""What `up` does before it starts anything: the database is copied aside and migrated; first
administrator, first key and agents are made. Under one lock: several starts at once do it once."""

import fcntl
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from config import heartbeat
from config.environment import ConfigurationError
from config.health import pending_migrations
from config.permissions import tighten
from gateway.agents.file import bootstrap_agents
from gateway.keys import api_key_create, plain_keys
from gateway.runs.lapsed import stop_former
from memories.errors import DomainError
from memories.services import owner_for_user

KEPT_BACKUPS = 3
_LOCK_NUMBER = 0x6461_7962_6F6F_6B  # "daybook": advisory locks of PostgreSQL are numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What was done. `admin_user`: "" if there was one; password and key: only if they were made up.
    `no_administrator`: nobody can look after the rest, and an account has the name that a new one would get."""

    admin_user: str = ""
    admin_password: str = ""
    api_key: str = ""
    agents: tuple[str, ...] = ()
    backup: Path | None = None
    no_administrator: bool = False


def prepare() -> Prepared:
    """Migrate and bootstrap; everything that is there already is kept.

    Raises ConfigurationError with one line for a database that can't be used and for wrong first values."""
    tighten(settings.DAYBOOK_HOME)
    sqlite = _sqlite_path()
    existed = sqlite is not None and sqlite.exists() and sqlite.stat().st_size > 0
    try:
        with _one_at_a_time():
            backup = _migrate(sqlite if existed else None)
            heartbeat.forget_dead()
            stop_former()
            admin_user, admin_password, api_key = first_credentials()
            agents = bootstrap_agents()
    except DatabaseError as error:
        raise ConfigurationError(_unusable_database(error)) from error
    except DomainError as error:
        raise ConfigurationError(str(error)) from None
    return Prepared(
        admin_user=admin_user,
        admin_password=admin_password,
        api_key=api_key,
        agents=tuple(agents),
        backup=backup,
        no_administrator=not User.objects.filter(is_superuser=True, is_active=True).exists(),
    )


@transaction.atomic
def first_credentials() -> tuple[str, str, str]:
    """Make the first administrator if there is none, and the first key if there has never been one.

    Returns the name of a new administrator, and the password and the key that were made up here (else "")."""
    users = User.objects
    name = password = key = ""
    admin = users.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if admin is None:
        name, password = settings.DAYBOOK_ADMIN_USER, settings.DAYBOOK_ADMIN_PASSWORD
        if users.filter(username=name).exists():
            return "", "", ""  # an account of that name is not made an administrator behind its back
        made_up = "" if password else secrets.token_urlsafe(12)
        admin = users.create_superuser(username=name, password=password or made_up)
        password = made_up
    if not plain_keys().exists():
        key = _first_key(admin)
    return name, password, key


def _first_key(admin: User) -> str:
    given = settings.DAYBOOK_API_KEY
    try:
        _, plain = api_key_create(owner=owner_for_user(admin), name="first key", plain=given or None)
    except DomainError as error:
        raise ConfigurationError(f"DAYBOOK_API_KEY is a value that is not shown; {error}") from None
    return "" if given else plain


def _migrate(sqlite: Path | None) -> Path | None:
    """Apply what is pending. An existing SQLite file is copied aside first; returns the copy."""
    if not pending_migrations():
        return None
    backup = back_up(sqlite, settings.DAYBOOK_HOME / "backups") if sqlite else None
    call_command("migrate", interactive=False, verbosity=0)
    return backup


def back_up(database: Path, folder: Path) -> Path:
    """Copy a SQLite database, also one in use, to `folder/before-<UTC time>.sqlite3`; keeps three."""
    folder.mkdir(mode=0o700, exist_ok=True)
    target = folder / f"before-{timezone.now():%Y%m%dT%H%M%S%f}Z.sqlite3"
    part = target.with_suffix(".part")
    part.touch(mode=0o600)
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(part)) as copy:
        source.backup(copy)
    part.replace(target)  # a copy that was cut short never looks like a whole one
    for old in sorted(folder.glob("before-*.sqlite3"))[:-KEPT_BACKUPS]:
        old.unlink()
    return target


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """A lock that ends with the process: one of PostgreSQL's, or one on a file in the home."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK_NUMBER])
            try:
                yield
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK_NUMBER])
        return
    with (settings.DAYBOOK_HOME / "up.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sqlite_path() -> Path | None:
    return Path(settings.DATABASES["default"]["NAME"]) if connection.vendor == "sqlite" else None


def _unusable_database(error: DatabaseError) -> str:
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if path := _sqlite_path():
        return f"DAYBOOK_HOME is '{path.parent}'; the database {path.name} in it can't be used: {said}."
    return f"DATABASE_URL is a value that is not shown; the database can't be used: {said}."

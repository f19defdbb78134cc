"""The preparation done by `up`: back up and migrate the database, and create the first administrator, key and agents. A
lock ensures that concurrent starts do it only once."""

import fcntl
import logging
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import CommandError
from django.core.management.sql import emit_post_migrate_signal
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from config.backups import postgres_tools, sqlite_tools
from config.databases import encoding_problem, unusable_database
from config.environment import ConfigurationError, refuse_quoted
from config.health import newer_version, pending_migrations
from config.permissions import tighten
from config.secret_key import guessable_key
from gateway import heartbeat
from gateway.agents.file import bootstrap_agents
from gateway.keys import api_key_create, plain_keys
from gateway.runs.ending import stop_left_behind
from memories.errors import DomainError
from memories.services import owner_for_user

logger = logging.getLogger("daybook.prepare")
MAX_BACKUPS = 3
_UNFINISHED = "unfinished"  # a file with the name of the copy made at the beginning of an unfinished upgrade
_LOCKED = "Another start prepares this database; this one waits until it has finished."
_LOCK_NUMBER = 0x6461_7962_6F6F_6B  # "daybook", since PostgreSQL's advisory locks are numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The result. `admin_user` is "" unless an administrator was created; password and key are set only if they were
    generated. `no_administrator`: there is none, and none was created because an account already has the name."""

    admin_user: str = ""
    admin_password: str = ""
    api_key: str = ""
    agents: tuple[str, ...] = ()
    backup: Path | None = None
    no_administrator: bool = False


def prepare() -> Prepared:
    """Migrate and create what is missing. Raises ConfigurationError with one line for an unusable database or invalid
    initial values."""
    tighten(settings.DAYBOOK_HOME)
    if warning := guessable_key([settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]):
        logger.warning("%s.", warning)
    existing = _existing_sqlite()
    try:
        with _exclusive():
            _refuse_unusable_postgres()
            if newer := newer_version():
                raise ConfigurationError(newer)
            backup = _migrate(existing)
            heartbeat.forget_dead()
            stop_left_behind()
            admin_user, admin_password, api_key = first_credentials()
            agents = bootstrap_agents()
    except DatabaseError as error:
        raise ConfigurationError(unusable_database(error)) from error
    except DomainError as error:
        raise ConfigurationError(str(error)) from None
    except (OSError, sqlite3.Error) as error:  # another user's folder, or a full disk
        home = settings.DAYBOOK_HOME
        raise ConfigurationError(f"DAYBOOK_HOME is '{home}'; it cannot be prepared: {error}.") from error
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
    """Create the first administrator if there is none, and the first key if there never was one. Returns the new
    administrator's name, and the generated password and key, or "" for what was not created or generated."""
    users = User.objects
    name = password = key = ""
    admin = users.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if admin is None:
        name, password = settings.DAYBOOK_ADMIN_USER, settings.DAYBOOK_ADMIN_PASSWORD
        if users.filter(username=name).exists():
            return "", "", ""  # do not silently make an existing account an administrator
        _check_name(name)
        if password:
            _check_given(password, User(username=name))
        generated = "" if password else secrets.token_urlsafe(12)
        admin = users.create_superuser(username=name, password=password or generated)
        password = generated
    if not plain_keys().exists():
        key = _first_key(admin)
    return name, password, key


def _check_name(name: str) -> None:
    """Refuse a name that createsuperuser and the admin's form refuse: its account could not be edited."""
    try:
        User._meta.get_field("username").run_validators(name)
    except ValidationError:
        raise ConfigurationError(
            f"DAYBOOK_ADMIN_USER is {name!r}; allowed are letters, digits and @ . + - _."
        ) from None


def _check_given(password: str, user: User) -> None:
    """Refuse a password in quotation marks. A weak one is used, since a trial may need no better, but reported."""
    try:
        refuse_quoted(password)
    except ValueError as error:
        raise ConfigurationError(f"DAYBOOK_ADMIN_PASSWORD is a value that is not shown; {error}.") from None
    try:
        validate_password(password, user)
    except ValidationError as error:
        logger.warning("DAYBOOK_ADMIN_PASSWORD is weak: %s Change it on the account page.", " ".join(error.messages))


def _first_key(admin: User) -> str:
    given = settings.DAYBOOK_API_KEY
    try:
        _, plain = api_key_create(owner=owner_for_user(admin), name="first key", plain=given or None)
    except DomainError as error:
        raise ConfigurationError(f"DAYBOOK_API_KEY is a value that is not shown. {error}") from None
    return "" if given else plain


def _refuse_unusable_postgres() -> None:
    """Raise ConfigurationError for an empty database that cannot store every text, or that a restore has left between
    two schemas when it was killed."""
    if connection.vendor != "postgresql" or connection.introspection.table_names():
        return
    if aside := postgres_tools.set_aside():
        schema = connection.ops.quote_name(postgres_tools.schema())
        raise ConfigurationError(
            f"A restore was interrupted: the data from before it is in the schema {aside}. Restore again, or rename "
            f'it: DROP SCHEMA {schema} CASCADE; ALTER SCHEMA "{aside}" RENAME TO {schema}.'
        )
    if problem := encoding_problem():
        raise ConfigurationError(f"DATABASE_URL is a value that is not shown; {problem}.")


def _migrate(sqlite: Path | None) -> Path | None:
    """Apply pending migrations. An existing SQLite file is copied first; returns the path of the copy."""
    folder, backup = settings.DAYBOOK_HOME / "backups", None
    if pending_migrations():
        backup = back_up(sqlite, folder) if sqlite else None
        call_command("migrate", interactive=False, verbosity=0)
    else:
        # A start that was killed after its last migration has not created permissions and triggers.
        emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)
    (folder / _UNFINISHED).unlink(missing_ok=True)
    return backup


def back_up(database: Path, folder: Path) -> Path:
    """Copy a SQLite database, which may be in use, to `folder/before-<UTC time>.sqlite3`. Keeps the newest MAX_BACKUPS
    copies and, until an upgrade has finished, its first one, since a repeatedly interrupted upgrade copies a partly
    migrated database. Raises ConfigurationError for a damaged database."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for unfinished in folder.glob("before-*.part"):
        unfinished.unlink()
    target = folder / f"before-{timezone.now():%Y%m%dT%H%M%S%f}Z.sqlite3"
    part = target.with_suffix(".part")
    part.touch(mode=0o600)
    try:
        sqlite_tools.copy(database, part)
    except CommandError as error:
        raise ConfigurationError(" ".join(str(error).split())) from None
    part.replace(target)  # so that an interrupted copy never looks complete
    first = folder / _UNFINISHED
    if not first.exists():
        first.write_text(target.name)
    for old in sorted(folder.glob("before-*.sqlite3"))[:-MAX_BACKUPS]:
        if old.name != first.read_text():
            old.unlink()
    return target


@contextmanager
def _exclusive() -> Iterator[None]:
    """Hold a lock that ends with the process: an advisory lock of PostgreSQL, or one on a file in DAYBOOK_HOME."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK_NUMBER])
            if not cursor.fetchone()[0]:
                logger.warning(_LOCKED)
                cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK_NUMBER])
            try:
                yield
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK_NUMBER])
        return
    with (settings.DAYBOOK_HOME / "up.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.warning(_LOCKED)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _existing_sqlite() -> Path | None:
    path = Path(settings.DATABASES["default"]["NAME"])
    return path if connection.vendor == "sqlite" and path.exists() and path.stat().st_size > 0 else None

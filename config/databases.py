"""Settings of the database and its connection pool: SQLite in DAYBOOK_HOME, or PostgreSQL."""

import shutil
from pathlib import Path
from typing import Any

import dj_database_url
from django.db import DatabaseError, connection

from config.environment import ConfigurationError, Environment
from config.permissions import make_private

_FULL_BYTES = 1_000_000
_PAGE_CONNECTIONS = 2  # minimum left in the pool for pages while every database thread holds a connection
# A server that is gone without closing its connections is noticed within a minute: by keepalives on an idle connection,
# by the user timeout (milliseconds) while a query is on its way.
_TIMEOUTS = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def database(env: Environment, home: Path) -> dict[str, Any]:
    """Return Django's settings of the database. Raises ConfigurationError."""
    return _postgres(env) if env.database_url else _sqlite(env, home)


def _postgres(env: Environment) -> dict[str, Any]:
    try:
        config: dict[str, Any] = dict(dj_database_url.parse(env.database_url, conn_max_age=0))
    except (ValueError, KeyError):
        config = {}
    if config.get("ENGINE") != "django.db.backends.postgresql" or not config["NAME"]:
        raise ConfigurationError(
            "DATABASE_URL is a value that is not shown; allowed is postgres://user:password@host:port/name."
        )
    threads = env.db_threads + env.db_read_threads
    if env.db_pool < threads + _PAGE_CONNECTIONS:
        raise ConfigurationError(
            f"DAYBOOK_DB_POOL is {env.db_pool}; allowed is {threads + _PAGE_CONNECTIONS} or more: one for each of "
            f"{threads} database threads and {_PAGE_CONNECTIONS} for pages."
        )
    # Database threads keep their connections; pages take one per request. If none becomes free in time, the request is
    # answered as overloaded.
    config["ENGINE"] = "memories.database.postgresql"
    config["OPTIONS"] = _TIMEOUTS | config.get("OPTIONS", {})
    config["OPTIONS"]["pool"] = {
        "min_size": 0,
        "max_size": env.db_pool,
        "timeout": env.db_busy_seconds,
        "max_idle": 60,
        # The pool pauses ever longer between attempts to connect, and starts again with the next request after this.
        "reconnect_timeout": 2,
        "num_workers": 2,
    }
    return config


def _sqlite(env: Environment, home: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": _owner_only(home / "daybook.sqlite3"),
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": env.db_busy_seconds,
            # Overwrite deleted rows, however SQLite was compiled, so that forgotten text is gone.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA secure_delete=ON; "
            f"PRAGMA synchronous={env.sqlite_synchronous};",
        },
        # A file: an in-memory database isn't reliably shared between the threads of a live server.
        "TEST": {"NAME": home / "test.sqlite3"},
    }


def unusable_database(error: DatabaseError) -> str:
    """Return one line that says which database cannot be used, and why, without its address."""
    reason = error_line(error)
    if connection.vendor == "sqlite":
        path = Path(connection.settings_dict["NAME"])
        line = f"DAYBOOK_HOME is '{path.parent}'; the database {path.name} in it can't be used: {reason}."
        return line + _full_disk(path.parent)
    return f"DATABASE_URL is a value that is not shown; the database can't be used: {connection_refusal() or reason}."


def _full_disk(folder: Path) -> str:
    """Return a sentence if the disk is full, since SQLite may only say "disk I/O error"; else ""."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return ""
    return " Its disk has 0 MB left." if free < _FULL_BYTES else ""


def connection_refusal() -> str:
    """Return why PostgreSQL refuses a connection, without its address; "" if it accepts one, or with SQLite. The pool
    only says that it got none in time."""
    if connection.vendor == "sqlite":
        return ""
    postgres: Any = connection
    driver = postgres.Database
    try:
        driver.connect(**connection.get_connection_params()).close()
    except driver.Error as error:
        return error_line(error)
    return ""


def encoding_problem() -> str:
    """Return that PostgreSQL's database cannot store every text and what to do about it, or "" if it can."""
    if connection.vendor == "sqlite":
        return ""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_encoding")
        (encoding,) = cursor.fetchone()
    create = "createdb --encoding=UTF8 --template=template0"
    return (
        "" if encoding == "UTF8" else f"its encoding is {encoding}, so it cannot store every text: {create} makes one"
    )


def error_line(error: Exception) -> str:
    """Return the first line of an error, without the address that PostgreSQL's driver puts in front of it."""
    line = str(error).strip().partition("\n")[0] or type(error).__name__
    return line.rpartition(" failed: ")[2].rpartition("] ")[2].removeprefix("FATAL:").strip().removesuffix(".")


def _owner_only(database: Path) -> Path:
    """Remove other users' permissions on the database's files, which an earlier version may have left open, and return
    its path. For new files the umask does this (config.permissions)."""
    try:
        for path in database.parent.glob(f"{database.name}*"):
            make_private(path)
    except OSError as error:
        raise ConfigurationError(
            f"DAYBOOK_HOME is '{database.parent}'; its database must be a file of this user ({error.strerror})."
        ) from None
    return database

"""Migrated, empty databases that test runs and end-to-end tests copy, since running the migrations takes seconds.

SQLite's is a file in pytest's cache, PostgreSQL's a database on the server. Both are named after a hash of the
migrations and of what they import. The first caller creates them and removes those of older migrations."""

import fcntl
import functools
import hashlib
import importlib
import inspect
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import django
import psycopg
from django.apps import apps
from psycopg import sql

_ROOT = Path(__file__).resolve().parents[1]
_FOLDER = _ROOT / ".pytest_cache" / "migrated"
_PREFIX = "daybook_migrated_"
_LOCK = 4_242  # any advisory lock that nobody else uses on the server


@functools.cache
def migrated_file() -> Path:
    """Return the path of the migrated SQLite database."""
    name = f"{_migrations_hash()}.sqlite3"
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (_FOLDER / name).exists():
            _migrate(_FOLDER / name)
    return _FOLDER / name


def _migrate(target: Path) -> None:
    for old in _FOLDER.glob("*.sqlite3"):
        old.unlink()
    with tempfile.TemporaryDirectory(dir=_FOLDER) as home:
        _run_migrate(home, {})
        shutil.move(Path(home) / "daybook.sqlite3", target)


@functools.cache
def migrated_database(url: str) -> str:
    """Return the name of the migrated PostgreSQL database on the server of that URL."""
    name = f"{_PREFIX}{_migrations_hash()}"
    with _server(url) as server:
        server.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        existing = [
            row[0]
            for row in server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [_PREFIX])
        ]
        if name not in existing:
            for old in existing:
                server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(old)))
            unfinished = f"{_PREFIX}part"
            server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(unfinished)))
            with tempfile.TemporaryDirectory() as home:
                database = urlunsplit(urlsplit(url)._replace(path=f"/{unfinished}"))
                _run_migrate(home, {"DATABASE_URL": database, "DAYBOOK_SECRET_KEY": secrets.token_urlsafe(32)})
            rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            server.execute(rename.format(sql.Identifier(unfinished), sql.Identifier(name)))
    return name


@contextmanager
def database_from(url: str, name: str, template: str) -> Iterator[None]:
    """Create a PostgreSQL database of that name as a copy of `template`, and drop it when the block ends. Its commits
    do not wait for the disk, which takes ten times as long as the rest of a small transaction."""
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    unwaited = sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(sql.Identifier(name))
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
    with _server(url) as server:
        for statement in (drop, create, unwaited):
            server.execute(statement)
    try:
        yield
    finally:
        with _server(url) as server:
            server.execute(drop)


def _server(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(urlunsplit(urlsplit(url)._replace(path="/postgres")), autocommit=True)


def _run_migrate(home: str, variables: Mapping[str, str]) -> None:
    inherited = {key: value for key, value in os.environ.items() if key not in {"DATABASE_URL", "REDIS_URL"}}
    ours = {"DAYBOOK_HOME": home, "DJANGO_SETTINGS_MODULE": "config.settings"}
    command = [sys.executable, str(_ROOT / "manage.py"), "migrate", "--verbosity", "0"]
    subprocess.run(command, env=inherited | ours | dict(variables), check=True, timeout=300)


def _migrations_hash() -> str:
    digest = hashlib.sha256(django.__version__.encode())
    # Leave out the folder: the same packages may be installed at another path.
    for path in sorted(set(_sources()), key=lambda path: (path.name, path.read_bytes())):
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    """Yield the migrations of all apps, and our modules that they import from."""
    for app in apps.get_app_configs():
        for path in sorted((Path(app.path) / "migrations").glob("[0-9]*.py")):
            yield path
            module = importlib.import_module(f"{app.name}.migrations.{path.stem}")
            for imported in filter(None, map(inspect.getmodule, vars(module).values())):
                source = Path(getattr(imported, "__file__", None) or "")
                if source.is_relative_to(_ROOT) and ".venv" not in source.parts:
                    yield source

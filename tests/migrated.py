"""Migrated, empty databases, which test runs and end-to-end tests copy: to migrate anew takes seconds.

SQLite's is a file beside pytest's cache, PostgreSQL's a database of the server. Both are named by a hash of the
migrations and of what they import; whoever is the first to ask makes them, and removes those of earlier states."""

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
_LOCK = 4_242  # any number that nobody else locks on the server


@functools.cache
def migrated_file() -> Path:
    """The path of SQLite's database."""
    name = f"{_state()}.sqlite3"
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
    """The name of PostgreSQL's database, on the server of that URL."""
    name = f"{_PREFIX}{_state()}"
    with _server(url) as server:
        server.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        found = [
            row[0]
            for row in server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [_PREFIX])
        ]
        if name not in found:
            for old in found:
                server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(old)))
            part = f"{_PREFIX}part"
            server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(part)))
            with tempfile.TemporaryDirectory() as home:
                database = urlunsplit(urlsplit(url)._replace(path=f"/{part}"))
                _run_migrate(home, {"DATABASE_URL": database, "DAYBOOK_SECRET_KEY": secrets.token_urlsafe(32)})
            rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            server.execute(rename.format(sql.Identifier(part), sql.Identifier(name)))
    return name


@contextmanager
def database_from(url: str, name: str, template: str) -> Iterator[None]:
    """A new PostgreSQL database of that name, a copy of `template`, until the block ends."""
    copied = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    dropped = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
    with _server(url) as server:
        server.execute(dropped)
        server.execute(copied)
    try:
        yield
    finally:
        with _server(url) as server:
            server.execute(dropped)


def _server(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(urlunsplit(urlsplit(url)._replace(path="/postgres")), autocommit=True)


def _run_migrate(home: str, variables: Mapping[str, str]) -> None:
    plain = {key: value for key, value in os.environ.items() if key not in {"DATABASE_URL", "REDIS_URL"}}
    ours = {"DAYBOOK_HOME": home, "DJANGO_SETTINGS_MODULE": "config.settings"}
    command = [sys.executable, str(_ROOT / "manage.py"), "migrate", "--verbosity", "0"]
    subprocess.run(command, env=plain | ours | dict(variables), check=True, timeout=300)


def _state() -> str:
    digest = hashlib.sha256(django.__version__.encode())
    # Not by folder: the same packages may be found by another path.
    for path in sorted(set(_sources()), key=lambda path: (path.name, path.read_bytes())):
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    """Migrations of all apps, and the modules of ours that they take something from."""
    for app in apps.get_app_configs():
        for path in sorted((Path(app.path) / "migrations").glob("[0-9]*.py")):
            yield path
            module = importlib.import_module(f"{app.name}.migrations.{path.stem}")
            for taken in filter(None, map(inspect.getmodule, vars(module).values())):
                source = Path(getattr(taken, "__file__", None) or "")
                if source.is_relative_to(_ROOT) and ".venv" not in source.parts:
                    yield source

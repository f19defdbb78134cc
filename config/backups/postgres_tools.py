"""Running pg_dump and pg_restore for backups. The password is passed in the environment, never as an argument."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from django.utils import timezone

_ASIDE = "replaced_"
_LOCK_TIMEOUT = "-c lock_timeout=10s"
_TLS = ("sslmode", "sslrootcert", "sslcert", "sslkey")
_WITHOUT_ROLES = ("--no-owner", "--no-privileges")


def dump(target: Path) -> None:
    """Dump the schema `public` in the custom format, as one consistent state. Raises CommandError."""
    _run("pg_dump", "--format=custom", "--schema=public", *_WITHOUT_ROLES, f"--file={target}")


def check(source: Path) -> None:
    """Read the dump's table of contents. Raises CommandError for a damaged one."""
    _run("pg_restore", "--list", str(source))


def load(source: Path) -> str:
    """Replace the schema `public` with a dump, in one transaction. The existing schema is renamed, and restored if the
    dump cannot be loaded; after a kill, `set_aside` returns its name. Returns the new name of the existing schema if it
    could not be dropped because it is in use, else "". Raises CommandError."""
    aside = f"{_ASIDE}{timezone.now():%Y%m%d%H%M%S%f}"
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '10s'")
        cursor.execute(f'ALTER SCHEMA public RENAME TO "{aside}"')
        cursor.execute("CREATE SCHEMA public")
        try:
            # The dump creates the schema itself, unless it is the server's default schema.
            _run("pg_restore", "--exit-on-error", "--single-transaction", "--schema=public", *_WITHOUT_ROLES,
                 f"--dbname={connection.settings_dict['NAME']}", str(source))  # fmt: skip
        except BaseException:  # Ctrl-C, too
            cursor.execute("DROP SCHEMA public CASCADE")
            cursor.execute(f'ALTER SCHEMA "{aside}" RENAME TO public')
            raise
        try:
            cursor.execute(f'DROP SCHEMA "{aside}" CASCADE')
        except DatabaseError:  # the dump is already loaded, so this must not fail
            return aside
    return ""


def set_aside() -> str:
    """Return the name of the newest schema with the data from before a restore that was killed, or ""."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(nspname) FROM pg_namespace WHERE nspname ~ %s", [f"^{_ASIDE}[0-9]{{20}}$"])
        (name,) = cursor.fetchone()
    return name or ""


def _run(program: str, *arguments: str) -> None:
    path = shutil.which(program)
    if path is None:
        raise CommandError(f"{program} is not installed; it comes with PostgreSQL's client programs.")
    result = subprocess.run(  # noqa: S603 - the program and its arguments are ours
        [path, *arguments], env=_environment(connection.settings_dict), capture_output=True, text=True, check=False
    )
    if result.returncode:
        lines = result.stderr.strip().splitlines()
        errors = [line.partition(" error: ")[2] for line in lines if " error: " in line]  # the others are details
        raise CommandError(f"{program} failed: {[*errors, *lines[-1:], f'exit code {result.returncode}'][0]}")


def _environment(database: Mapping[str, Any]) -> dict[str, str]:
    names = {"HOST": "PGHOST", "PORT": "PGPORT", "USER": "PGUSER", "PASSWORD": "PGPASSWORD", "NAME": "PGDATABASE"}
    variables = {variable: str(database[name]) for name, variable in names.items() if database.get(name)}
    options = database.get("OPTIONS") or {}
    tls = {f"PG{name.upper()}": str(options[name]) for name in _TLS if name in options}
    return {**os.environ, **variables, **tls, "PGOPTIONS": _LOCK_TIMEOUT, "LC_ALL": "C"}

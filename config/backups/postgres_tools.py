"""Running pg_dump and pg_restore for backups. The password is passed in the environment, never as an argument."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from django.utils import timezone
from psycopg.pq import Conninfo

_ASIDE = "replaced_"
_WITHOUT_ROLES = ("--no-owner", "--no-privileges")
_LOCK_SECONDS = 60


def schema() -> str:
    """Return the schema of Daybook's tables or, if there are none, the one in which they would be created: the first
    that exists of the user's search_path, usually `public`. Raises CommandError if they are in several, which happens
    if the search_path changes between two upgrades."""
    tables = ["django_migrations", *connection.introspection.django_table_names()]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(min(nspname), current_schema(), 'public'), max(nspname) "
            "FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
            "WHERE relname = ANY(%s) AND pg_table_is_visible(pg_class.oid)",
            [tables],
        )
        name, other = cursor.fetchone()
    if other not in (None, name):
        raise CommandError(f"Some tables are in {name}, others in {other}: move them with ALTER TABLE … SET SCHEMA.")
    return str(name)


def dump(target: Path) -> None:
    """Dump Daybook's schema in the custom format, as one consistent state. Raises CommandError, also if a table is
    locked for too long."""
    name = connection.ops.quote_name(schema())  # pg_dump takes a pattern
    waiting = f"--lock-wait-timeout={_LOCK_SECONDS}s"
    try:
        _run("pg_dump", "--format=custom", f"--schema={name}", waiting, *_WITHOUT_ROLES, f"--file={target}")
    except CommandError as error:
        if not re.search("due to (lock|statement) timeout", str(error)):  # pg_dump has no other time limit
            raise
        raise CommandError(
            f"For {_LOCK_SECONDS} seconds another connection has locked a table, as ALTER TABLE or VACUUM FULL does. "
            "Nothing was backed up: try again when it is done."
        ) from None


def check(source: Path) -> None:
    """Read the dump's table of contents. Raises CommandError for a damaged dump, and for one of another schema."""
    table = re.search(r" TABLE (.+) django_migrations ", _run("pg_restore", "--list", str(source)))
    if table is None:
        raise CommandError(f"{source} has none of Daybook's tables. Nothing was changed.")
    if table[1] != (own := schema()):
        raise CommandError(
            f"The backup is of the schema {table[1]}, and this database uses {own}: create {table[1]}, and make "
            "it the first in the search_path of the user in DATABASE_URL. Nothing was changed."
        )


def load(source: Path) -> str:
    """Replace Daybook's schema with a dump, in one transaction. The existing schema is renamed, and restored if the
    dump cannot be loaded; after a kill, `set_aside` returns its name. Returns the new name of the existing schema if it
    could not be dropped because it is in use, else "". Raises CommandError."""
    name, aside = schema(), f"{_ASIDE}{timezone.now():%Y%m%d%H%M%S%f}"
    quoted = connection.ops.quote_name(name)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '10s'")
        # Each pair is one transaction, so that a schema of this name exists whenever this process is killed.
        cursor.execute(f'ALTER SCHEMA {quoted} RENAME TO "{aside}"; CREATE SCHEMA {quoted}')
        try:
            # The dump creates the schema itself, unless it is the server's default schema.
            _run("pg_restore", "--exit-on-error", "--single-transaction", f"--schema={name}", *_WITHOUT_ROLES,
                 f"--dbname={connection.settings_dict['NAME']}", str(source))  # fmt: skip
        except BaseException:  # Ctrl-C, too
            cursor.execute(f'DROP SCHEMA {quoted} CASCADE; ALTER SCHEMA "{aside}" RENAME TO {quoted}')
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


def _run(program: str, *arguments: str) -> str:
    """Run a program and return its output. Raises CommandError."""
    path = shutil.which(program)
    if path is None:
        raise CommandError(f"{program} is not installed; it comes with PostgreSQL's client programs.")
    result = subprocess.run(  # noqa: S603 - the program and its arguments are ours
        [path, *arguments], env=_environment(), capture_output=True, text=True, check=False
    )
    if result.returncode:
        lines = result.stderr.strip().splitlines()
        errors = [line.partition(" error: ")[2] for line in lines if " error: " in line]  # the others are details
        raise CommandError(f"{program} failed: {[*errors, *lines[-1:], f'exit code {result.returncode}'][0]}")
    return result.stdout


def _environment() -> Mapping[str, str]:
    """Return the environment with which a program connects to the database as this process does."""
    parameters = connection.get_connection_params()
    names = {option.keyword.decode(): option.envvar.decode() for option in Conninfo.get_defaults() if option.envvar}
    variables = {name: str(parameters[keyword]) for keyword, name in names.items() if parameters.get(keyword)}
    return {**os.environ, **variables, "LC_ALL": "C"}

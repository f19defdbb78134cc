"""Makes tests/data/schema_1.sql.xz, the database from which upgrade tests start: the schema of the first release,
filled by the product's own services with invented words. Run it only in a checkout of that schema, from its root:

    python -m tests.data.make_schema_1

Every table holds at least one row; the script fails if one is empty."""

import lzma
import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

TARGET = Path(__file__).with_name("schema_1.sql.xz")
# Filled by Django, or by nobody here.
EMPTY = {"django_q_schedule", "auth_group", "auth_group_permissions", "auth_user_groups", "auth_user_user_permissions"}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="daybook-schema-") as home:
        os.environ |= {"DAYBOOK_HOME": home, "DJANGO_SETTINGS_MODULE": "config.settings"}
        os.environ["DAYBOOK_SECRET_KEY"] = "a-secret-key-of-the-stored-database-0000"
        import django  # noqa: PLC0415 - the environment comes first

        django.setup()
        from django.core.management import call_command  # noqa: PLC0415

        from tests.data.schema_1_rows import fill  # noqa: PLC0415

        call_command("migrate", verbosity=0)
        fill()
        with closing(sqlite3.connect(Path(home) / "daybook.sqlite3")) as database:
            _check_rows(database)
            script = "\n".join(line for line in database.iterdump() if "sqlite_sequence" not in line)
    TARGET.write_bytes(lzma.compress(script.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")  # noqa: T201 - a script


def _check_rows(database: sqlite3.Connection) -> None:
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    empty = {name for name in tables if not database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]}  # noqa: S608
    if left := empty - EMPTY - {"sqlite_sequence"}:
        raise SystemExit(f"Nothing in {', '.join(sorted(left))}.")


if __name__ == "__main__":
    main()

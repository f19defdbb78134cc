"""Set up Daybook in a benchmark's own process."""

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
PREFIXES = ("DAYBOOK_", "OPENAI_", "REDIS_", "DATABASE_")
MODEL_SERVERS = ("DAYBOOK_", "OPENAI_")


@contextmanager
def own_home(name: str, variables: Mapping[str, str] | None = None, *, keep: Collection[str] = ()) -> Iterator[None]:
    """Set Django up with a temporary home, the given environment variables, and no Daybook settings of the caller but
    those with a prefix in `keep`: MODEL_SERVERS for benchmarks that measure a model.

    The database begins as a copy of the file that the variable MIGRATED_DATABASE names, if it is set, since running all
    migrations takes seconds."""
    removed = tuple(prefix for prefix in PREFIXES if prefix not in keep)
    with tempfile.TemporaryDirectory(prefix=f"daybook-{name}-") as home:
        for key in [key for key in os.environ if key.startswith(removed)]:
            del os.environ[key]
        defaults = {
            "DAYBOOK_HOME": home,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "DAYBOOK_DB_THREADS": "0",
            "DAYBOOK_SECRET_KEY": secrets.token_urlsafe(32),
            "DAYBOOK_ALLOWED_HOSTS": "testserver",
        }
        os.environ.update(defaults | dict(variables or {}))
        if migrated := os.environ.get("MIGRATED_DATABASE"):
            shutil.copyfile(migrated, Path(home) / "daybook.sqlite3")
        sys.path.insert(0, str(REPO))
        import django

        django.setup()
        from django.db import connections

        try:
            yield
        finally:
            connections.close_all()

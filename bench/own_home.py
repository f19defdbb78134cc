"""A Daybook for a benchmark that runs in this process: with a new home, without settings of the caller's
environment."""

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent


@contextmanager
def own_home(name: str, variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """Set Django up in a home that is deleted afterwards. `variables` are further ones of the environment."""
    with tempfile.TemporaryDirectory(prefix=f"daybook-{name}-") as home:
        for theirs in [key for key in os.environ if key.startswith(("DAYBOOK_", "OPENAI_", "REDIS_", "DATABASE_"))]:
            del os.environ[theirs]
        own = {
            "DAYBOOK_HOME": home,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "DAYBOOK_DB_THREADS": "0",
            "DAYBOOK_SECRET_KEY": secrets.token_urlsafe(32),
            "DAYBOOK_ALLOWED_HOSTS": "testserver",
        }
        os.environ.update(own | dict(variables or {}))
        sys.path.insert(0, str(REPO))
        import django

        django.setup()
        from django.db import connections

        try:
            yield
        finally:
            connections.close_all()

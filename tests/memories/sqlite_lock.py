import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connections

SQLITE = settings.DATABASES["default"]["ENGINE"].endswith("sqlite3")


@contextmanager
def write_lock() -> Iterator[None]:
    """Hold SQLite's write lock, as another process would."""
    other = sqlite3.connect(connections.settings["default"]["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()

"""Empty the database after a test with real transactions.

Django's flush empties every table, even an empty one, and then recreates all content types and permissions, which takes
longer than most tests."""

from functools import cache

from django.db import connection, transaction

_TABLES_KEPT = {"django_content_type", "auth_permission"}
"""Filled after the migrations and changed by no test."""


@cache
def _tables() -> list[str]:
    return sorted(
        set(connection.introspection.django_table_names(only_existing=True, include_views=False)) - _TABLES_KEPT
    )


def empty_tables() -> None:
    """Delete all rows."""
    quote = connection.ops.quote_name
    queries = [f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {quote(table)})" for table in _tables()]  # noqa: S608
    # The foreign keys are deferred, so the order does not matter.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(queries))
        for (table,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {quote(table)}")  # noqa: S608

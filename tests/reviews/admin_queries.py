"""The number of queries that a page of the admin needs."""

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext


def count_queries(client: Client, path: str) -> int:
    """Return the number of queries of a page with warm caches, and check that none of them counts a table."""
    client.get(path)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200
    assert not [query for query in queries if "COUNT(" in query["sql"].upper()]
    return len(queries)

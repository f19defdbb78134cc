"""/admin/: what every list keeps to: queries that do not grow with its rows, no count of a table"""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.admin_pages import list_of, page_of, pages, rows_make, set_make
from tests.admin_rows import staff_client

pytestmark = pytest.mark.django_db
MANY = 20


def queries_of(client: Client, path: str) -> list[str]:
    """The statements of the second look; the first fills the caches of a process."""
    client.get(path, follow=True)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path, follow=True).status_code == 200
    return [query["sql"] for query in queries]


def test_no_list_costs_more_queries_with_twenty_rows_than_with_one() -> None:
    rows_make()
    root = staff_client(superuser=True)
    few = {name: len(queries_of(root, list_of(name))) for name in pages()}
    for number in range(MANY - 1):
        set_make(f"person{number}")
    for name, page in pages().items():
        if name != "gateway.configuration":  # one form over a fixed number of rows
            assert page.model._default_manager.count() >= MANY, f"tests.admin_pages.set_make makes no further {name}"
    assert {name: len(queries_of(root, list_of(name))) for name in pages()} == few


def test_no_list_and_no_page_counts_a_table() -> None:
    rows = rows_make()
    root = staff_client(superuser=True)
    paths = [list_of(name) for name in pages()] + [page_of(name, row) for name, row in rows.items()]
    counting = [path for path in paths if any("COUNT(" in sql.upper() for sql in queries_of(root, path))]
    assert counting == []

"""/admin/: every list has a constant number of queries and never counts a table"""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.admin import site
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.models import CharField, Count, JSONField, TextField
from django.test import Client
from django.test.utils import CaptureQueriesContext
from unfold.contrib.filters.admin import RangeDateFilter

from memories.admin.paging import MAX_COUNTED
from memories.models import Book, Memory, Notification
from tests.admin_pages import add_of, counts_a_table, list_of, page_of, pages, rows_make, set_make
from tests.admin_rows import book_make, memory_make, staff_client

pytestmark = pytest.mark.django_db
MANY = 6


def statements_of(client: Client, path: str) -> list[str]:
    """Return the SQL statements of a request."""
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path, follow=True).status_code == 200
    return [query["sql"] for query in queries]


def count_statements(client: Client, path: str) -> int:
    """Return the number of a list's SQL statements, without the limited count that a list of one page does not need."""
    return sum(f"LIMIT {MAX_COUNTED + 1}" not in statement for statement in statements_of(client, path))


def test_no_list_needs_more_queries_for_more_rows_and_no_list_and_no_page_counts_a_table() -> None:
    rows = rows_make()
    root = staff_client(superuser=True)
    statements = {
        path: statements_of(root, path) for name in pages() for path in (list_of(name), page_of(name, rows[name]))
    }
    assert [path for path, sent in statements.items() if any(map(counts_a_table, sent))] == []
    expected = {name: count_statements(root, list_of(name)) for name in pages()}
    for number in range(MANY - 1):
        set_make(f"person{number}")
    for name, page in pages().items():
        if name != "gateway.configuration":  # one form over a fixed number of rows
            assert page.model._default_manager.count() >= MANY, f"tests.admin_pages.set_make makes no further {name}"
    assert {name: count_statements(root, list_of(name)) for name in pages()} == expected


@pytest.mark.any_database
def test_every_filter_by_day_accepts_any_day_of_the_calendar() -> None:
    rows_make()
    root = staff_client(superuser=True)
    by_day = [
        (name, field[0])
        for name, page in pages().items()
        for field in page.list_filter
        if isinstance(field, tuple) and issubclass(field[1], RangeDateFilter)
    ]
    assert len(by_day) >= 10
    for name, column in by_day:
        for query in (f"{column}_from=0001-01-01&{column}_to=9999-12-31", f"{column}_from=1969-12-31"):
            assert root.get(f"{list_of(name)}?{query}").status_code == 200, (name, query)


def test_a_count_without_a_limit_is_recognised() -> None:
    rows = Memory.objects.order_by("-pk")
    with CaptureQueriesContext(connection) as queries:
        rows.count()
        rows[:1001].count()
        Book.objects.annotate(n=Count("memories")).first()
    assert [counts_a_table(query["sql"]) for query in queries] == [True, False, True]


def test_a_list_shows_its_row_count_up_to_a_thousand() -> None:
    root, book = staff_client(superuser=True), book_make()
    path = list_of("memories.memory")
    for number in range(3):
        memory_make(f"Fact {number}.", book=book)
    assert "3 in this list" in root.get(path).content.decode()
    Notification.objects.bulk_create(
        Notification(owner=book.owner, seq=seq, kind="resync") for seq in range(10_000, 10_000 + MAX_COUNTED + 1)
    )
    path = list_of("memories.notification")
    assert "More than 1,000 in this list" in root.get(path).content.decode()
    assert any("LIMIT 1001" in sql and "COUNT" in sql for sql in statements_of(root, path))
    Notification.objects.filter(seq__gte=10_000 + 59).delete()
    number = Notification.objects.count()
    assert f"{number} in this list" in root.get(path).content.decode()
    assert f"{number} in this list" in root.get(path, {"p": 2}).content.decode()


def test_lists_can_only_be_sorted_by_indexed_columns() -> None:
    rows_make()
    root = staff_client(superuser=True)
    for name, page in pages().items():
        for column in page.sortable_by:
            field = getattr(getattr(page, column), "admin_order_field", column)
            firsts = [index.fields[0] for index in page.model._meta.indexes if index.fields]
            indexed = {first.lstrip("-") for first in firsts} | {"pk", "username"}
            assert field in indexed, (name, column)
            place = page.list_display.index(column) + bool(page.actions)
            for order in (place, -place):
                assert root.get(list_of(name), {"o": order}).status_code == 200


def test_sorting_by_last_use_lists_only_used_memories() -> None:
    root = staff_client(superuser=True)
    used = [memory_make(f"Fact {number}.") for number in range(3)][:2]
    for day, memory in enumerate(used, start=1):
        Memory.objects.filter(pk=memory.pk).update(last_used_at=datetime(2026, 1, day, tzinfo=UTC))
    page = site.get_model_admin(Memory)
    place = page.list_display.index("last_use") + 1
    for order, wanted in ((place, used), (-place, used[::-1])):
        assert list(root.get(list_of("memories.memory"), {"o": order}).context["cl"].result_list) == wanted


def test_a_search_with_too_many_words_is_refused_with_a_message() -> None:
    root = staff_client(superuser=True)
    for name, page in pages().items():
        if page.search_fields and name != "gateway.run":  # its search compares whole ids
            shown = root.get(list_of(name), {"q": "a " * 3_000})
            assert "A search has at most" in shown.content.decode(), name


@pytest.mark.any_database
@pytest.mark.parametrize("key", ["x", "9" * 30, "\0"])
def test_an_action_on_what_is_no_row_is_refused_with_a_message(key: str) -> None:
    root = staff_client(superuser=True)
    for path, action in (("memories/memory", "delete_memories"), ("auth/user", "unlock_sign_in")):
        answer = root.post(f"/admin/{path}/", {"action": action, "_selected_action": [key]}, follow=True)
        assert answer.status_code == 200
        assert "Select rows of this list." in answer.content.decode()


def test_each_list_that_looks_up_ids_has_a_search_field() -> None:
    assert [name for name, page in pages().items() if page.searched_ids and not page.search_fields] == []


@pytest.mark.any_database
def test_a_list_refuses_lookups_on_columns_without_a_filter() -> None:
    """Otherwise, trying one prefix after another would reveal text that no page shows."""
    rows_make()
    viewer = staff_client(may=tuple(name.replace(".", ".view_") for name in pages()))
    answers = {
        (name, field.name): viewer.get(list_of(name), {f"{field.name}__startswith": "a"}).status_code
        for name, page in pages().items()
        for field in page.opts.concrete_fields
        if isinstance(field, CharField | TextField | JSONField) and field.name not in _filtered(page)
    }
    assert {("gateway.run", "text"), ("gateway.webhook", "url"), ("gateway.apikey", "sha256")} <= answers.keys()
    not_lists = {"gateway.configuration", "gateway.usageday"}
    assert {lookup for lookup, status in answers.items() if status != 400 and lookup[0] not in not_lists} == set()


def _filtered(page: Any) -> set[str]:
    return {item[0] if isinstance(item, tuple) else item for item in page.list_filter if isinstance(item, str | tuple)}


def test_an_empty_list_offers_to_show_everything_only_if_something_is_filtered() -> None:
    root = staff_client(superuser=True)
    empty, filtered = (root.get(list_of("memories.memory"), {"q": words}).content.decode() for words in ("", "bees"))
    assert "Nothing here yet." in empty
    assert "Show everything" not in empty
    assert '<a class="db-link" href="?">Show everything</a>' in filtered


@pytest.mark.any_database
def test_every_form_for_a_new_row_accepts_any_value_of_its_fields() -> None:
    root = staff_client(superuser=True)
    for name, page in pages().items():
        if page.has_add_permission(root.get("/admin/").wsgi_request):
            nonsense = dict.fromkeys(root.get(add_of(name)).context["adminform"].form.fields, "nonsense")
            assert root.get(add_of(name), nonsense).status_code == 200, name
            answer = root.post(add_of(name), nonsense)
            assert (answer.status_code, bool(answer.context["adminform"].form.errors)) == (200, True), name


def test_a_form_that_is_shown_again_keeps_the_chosen_row() -> None:
    book = book_make()
    page = staff_client(superuser=True).post(add_of("memories.memory"), {"book": str(book.pk)}).content.decode()
    assert f'<option value="{book.pk}" selected>' in page


def test_the_admin_has_no_links_to_the_site_of_a_row() -> None:
    root = staff_client(superuser=True)
    for content_type in ContentType.objects.all():
        assert root.get(f"/admin/r/{content_type.pk}/1/").status_code == 404

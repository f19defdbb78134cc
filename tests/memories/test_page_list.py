"""The list on the memories page: sorting, numbers, exact counts, deleted memories, and further pages."""

import re
from collections.abc import Iterable
from datetime import timedelta

import pytest
import time_machine
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories import number_words
from memories.artifacts.store import artifact_put
from memories.history.undo import change_set_get
from memories.models import Memory, Owner
from memories.page import filters, listing
from memories.services import MemoryFields, book_get_or_create, book_limits_set, book_writing
from tests.factories import BY_HAND, memory_make
from tests.memories.conftest import rows_in
from tests.pages import client_of, html_of, text_of
from tests.unsliced import book_clear, undo_changes

pytestmark = pytest.mark.django_db


def fill(alice: Owner, texts: Iterable[str]) -> None:
    book_limits_set({"main": (0, 0)})
    with book_writing(book_get_or_create(alice.pk, "main"), BY_HAND) as writer:
        for text in texts:
            writer.add(MemoryFields(content=text, target="user"))


def delete(memory: Memory) -> None:
    with book_writing(memory.book, BY_HAND) as writer:
        writer.delete(memory.number)


def test_the_list_is_sorted_by_name_of_the_order(page: Client, alice: Owner) -> None:
    tea, bees, apples = (memory_make(alice, text) for text in ("Likes tea.", "Keeps bees.", "apples, never pears."))
    with book_writing(tea.book, BY_HAND) as writer:
        writer.update(tea.number, MemoryFields(pinned=True))
    Memory.objects.filter(pk=bees.pk).update(usage_count=5)
    orders = {
        "": [apples, bees, tea],
        "oldest": [tea, bees, apples],
        "changed": [tea, apples, bees],
        "recalled": [bees, apples, tea],
        "text": [apples, bees, tea],
        "colour": [apples, bees, tea],
    }
    for name, memories in orders.items():
        assert rows_in(html_of(page, f"/memories/?sort={name}")) == [m.number for m in memories], name
    assert "3 memories, newest first" in html_of(page, "/memories/")
    assert "3 memories, most recalled first" in html_of(page, "/memories/?sort=recalled")


def test_each_order_uses_its_index(alice: Owner) -> None:
    fill(alice, (f"Fact number {number}." for number in range(60)))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_sort = off")  # it would sort so few rows without the index
    book = book_get_or_create(alice.pk, "main")
    for sort, deleted, index in (
        ("", False, "memory_live"),
        ("oldest", False, "memory_live"),
        ("changed", False, "memory_last_changed"),
        ("recalled", False, "memory_most_recalled"),
        ("text", False, "memory_by_text"),
        ("", True, "memory_last_deleted"),
    ):
        rows = Memory.objects.filter(owner_id=alice.pk, book=book, deleted_at__isnull=not deleted)
        plan = filters.Filters(sort=sort, deleted=deleted).in_order(rows)[:50].explain()
        if connection.vendor == "sqlite":
            assert index in plan
        assert not re.search("TEMP B-TREE|Sort Key", plan), (sort, deleted)


@pytest.mark.any_database
def test_a_number_finds_its_memory_in_any_book_and_state(page: Client, alice: Owner, charlie: Owner) -> None:
    tea, bread = memory_make(alice, "Likes tea."), memory_make(alice, "Bakes bread.", book="kitchen")
    for _ in range(3):
        theirs = memory_make(charlie, f"Charlie's {_}.")
    delete(tea)
    for query in (f"number={bread.number}", f"q=%23{bread.number}", f"q=%23{bread.number}&category=none&book=main"):
        html = html_of(page, f"/memories/?{query}")
        assert rows_in(html) == [bread.number], query
        assert 'data-book="kitchen"' in html
        assert f"Memory #{bread.number}. Clear search" in text_of(html)
    html = html_of(page, f"/memories/?number={tea.number}")
    assert "<s>Likes tea.</s>" in html
    assert "data-restore=" in html
    html = html_of(page, f"/memories/?q=%23{theirs.number}")
    assert rows_in(html) == []
    assert f"There is no memory #{theirs.number}. It may have been deleted for good." in html
    assert rows_in(html_of(page, "/memories/?book=kitchen&number=99999999999999999999999")) == [bread.number]


@pytest.mark.any_database
def test_a_search_counts_all_hits_and_can_show_more(page: Client, alice: Owner) -> None:
    fill(alice, [*(f"Keeps dumps of server {n}." for n in range(70)), "Likes tea.", "Has a cat."])
    html = html_of(page, "/memories/?q=dumps")
    assert len(rows_in(html)) == 50
    assert "70 memories match “dumps”, best first." in html
    assert '/memories/?book=main&amp;q=dumps&amp;n=100" data-more' in html
    more = html_of(page, "/memories/?q=dumps&n=100")
    assert len(rows_in(more)) == 70
    assert rows_in(more)[:50] == rows_in(html)


def test_a_search_with_too_many_hits_says_so(page: Client, alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_ROWS", 20)
    fill(alice, (f"Keeps dumps of server {n}." for n in range(25)))
    assert "More than 20 memories match “dumps”, best first." in html_of(page, "/memories/?q=dumps")


@pytest.mark.any_database
def test_a_search_is_combined_with_the_filters(page: Client, alice: Owner) -> None:
    fill(alice, (f"Keeps dumps of server {n}." for n in range(70)))
    rare = memory_make(alice, "Keeps dumps, too, among many other things that are of no interest.", category="rare")
    html = html_of(page, "/memories/?q=dumps&category=rare")
    assert rows_in(html) == [rare.number]
    assert "1 memory matches “dumps”, best first." in html
    assert "You · rare" in html


def test_a_long_list_continues_on_the_next_page(page: Client, alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (filters, listing):
        monkeypatch.setattr(module, "MAX_ROWS", 60)
    fill(alice, (f"Fact number {n}." for n in range(130)))
    first = html_of(page, "/memories/?sort=oldest&target=user&n=60")
    assert rows_in(first) == list(range(1, 61))
    assert 'href="/memories/?book=main&amp;target=user&amp;sort=oldest&amp;skip=60">Show more' in first
    second = html_of(page, "/memories/?sort=oldest&target=user&skip=60&n=60")
    assert rows_in(second) == list(range(61, 121))
    last = html_of(page, "/memories/?sort=oldest&target=user&skip=120")
    assert rows_in(last) == list(range(121, 131))
    assert "Show more" not in last


def test_deleted_memories_are_listed_and_can_be_restored(page: Client, alice: Owner) -> None:
    tea, bees = memory_make(alice, "Likes tea."), memory_make(alice, "Keeps bees.")
    memory_make(alice, "Has a cat.")
    delete(bees)
    delete(tea)
    html = html_of(page, "/memories/?deleted=1")
    assert rows_in(html) == [tea.number, bees.number]
    assert f"2 deleted, last deleted first. Each can be restored for {settings.UNDO_DAYS} days" in html
    assert html.count("data-restore=") == 2
    assert "No deleted memories match these filters." in html_of(page, "/memories/?deleted=1&pinned=1")
    assert rows_in(html_of(page, "/memories/?deleted=1&q=BEES")) == [bees.number]
    assert rows_in(html_of(page, "/memories/")) == [3]
    assert "Nothing matches “tea”." in html_of(page, "/memories/?q=tea")


def test_blocked_memories_can_be_searched(page: Client, alice: Owner) -> None:
    memory = memory_make(alice, "Keeps bees.")
    Memory.objects.filter(pk=memory.pk).update(scan_rule="some_rule", scan_hash="x")
    assert rows_in(html_of(page, "/memories/?blocked=1&q=bees")) == [memory.number]


def test_a_search_of_deleted_memories_ignores_case_outside_ascii(page: Client, alice: Owner) -> None:
    memory = memory_make(alice, "Über den Bienen wohnt Ömer.")
    Memory.objects.filter(pk=memory.pk).update(deleted_at=timezone.now())
    assert rows_in(html_of(page, "/memories/?deleted=1&q=ÜBER+ömer")) == [memory.number]


def test_large_numbers_have_thousands_separators() -> None:
    assert number_words.memories(10_010) == "10,010 memories"
    assert number_words.memories(1) == "1 memory"


@pytest.mark.any_database
def test_an_empty_book_has_no_filters(page: Client, alice: Owner) -> None:
    assert '<div class="tools" hidden>' in html_of(page, "/memories/")
    memory = memory_make(alice, "Likes tea.")
    assert '<div class="tools">' in html_of(page, "/memories/")
    delete(memory)
    assert '<div class="tools">' in html_of(page, "/memories/"), "the deleted memory can be listed"


def test_a_clear_can_be_undone_on_the_page_until_its_deadline(page: Client, alice: Owner) -> None:
    book = memory_make(alice, "Likes tea.").book
    memory_make(alice, "Keeps bees.")
    cleared = book_clear(book, actor="user:1")
    text = text_of(html_of(page, "/memories/"))
    until = timezone.now() + timedelta(days=settings.UNDO_DAYS)
    assert "2 memories were deleted by /memory clear on" in text
    assert f"Undo until {until:%-d %b}" in text
    assert f'data-undo-clear="{cleared.change_set}"' in html_of(page, "/memories/")
    undone = undo_changes(change_set_get(alice.pk, cleared.change_set), BY_HAND)
    assert "data-undo-clear" not in html_of(page, "/memories/")
    undo_changes(change_set_get(alice.pk, undone.change_set), BY_HAND)
    assert "data-undo-clear" in html_of(page, "/memories/"), "the undo was undone"
    with time_machine.travel(until + timedelta(seconds=1), tick=False):
        client = client_of(alice)
        assert "data-undo-clear" not in html_of(client, "/memories/")


def test_a_clear_that_removed_only_documents_can_be_undone_on_the_page(page: Client, alice: Owner) -> None:
    book = book_get_or_create(alice.pk, "main")
    artifact_put(book, "MEMORY.md", "Handbook", BY_HAND)
    book_clear(book, actor="user:1")
    text = text_of(html_of(page, "/memories/"))
    assert "This book was cleared by /memory clear on" in text
    assert "0 memories" not in text


@pytest.mark.parametrize("path", ["/memories/?deleted=1", "/memories/?sort=text", "/memories/?q=fact&category=general"])
def test_the_number_of_queries_does_not_grow_with_the_list(page: Client, alice: Owner, path: str) -> None:
    def queries() -> int:
        html_of(page, path)
        with CaptureQueriesContext(connection) as captured:
            html_of(page, path)
        return len(captured)

    def fill_more(first: int, last: int) -> None:
        fill(alice, (f"A fact, number {n}." for n in range(first, last)))
        if "deleted" in path:
            for memory in Memory.objects.filter(deleted_at__isnull=True).select_related("book"):
                delete(memory)

    fill_more(0, 3)
    expected = queries()
    fill_more(3, 9)
    assert len(rows_in(html_of(page, path))) == 9
    assert queries() == expected

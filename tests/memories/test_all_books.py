"""`*` means all books in lists and searches. It and an empty name are refused where a single book is required"""

from typing import Any

import pytest

from gateway.models import Agent
from memories.database.access import in_thread
from memories.models import Book, Memory, Owner
from reviews.models import ConsolidationRun
from tests.conftest import Api
from tests.factories import key_make, memory_make

pytestmark = pytest.mark.any_database

MESSAGES = [{"role": "user", "content": "I like tea."}]


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/memories", {"content": "Likes tea.", "book": "*"}),
        ("POST", "/api/memories/bulk", {"ids": ["1"], "action": "pin", "book": "*"}),
        ("POST", "/api/memories/ingest", {"messages": MESSAGES, "book": "*"}),
        ("POST", "/api/memories/ingest", {"messages": MESSAGES, "book": "*", "session_id": "mine"}),
        ("POST", "/api/consolidations", {"book": "*", "dry_run": True}),
        ("GET", "/api/books/*/artifacts", None),
        ("GET", "/api/books/*/artifacts/MEMORY.md", None),
        ("PUT", "/api/books/*/artifacts/MEMORY.md", {"content": "x"}),
        ("GET", "/api/export?book=*", None),
        ("POST", "/api/import?book=*", {"content": "x"}),
    ],
)
async def test_a_star_is_refused_where_a_single_book_is_required(
    alice: Owner, agent: Agent, limited: bool, method: str, path: str, body: Any
) -> None:
    api = Api((await in_thread(lambda: key_make(alice, books=["main"] if limited else [])))[1])
    status, answer = await api.call(method, path, body)
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", "book")
    assert not await in_thread(Book.objects.exists)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/memories", {"content": "Likes tea.", "book": ""}),
        ("POST", "/api/memories/bulk", {"ids": ["1"], "action": "pin", "book": ""}),
        ("POST", "/api/memories/ingest", {"messages": MESSAGES, "book": ""}),
        ("POST", "/api/memories/search", {"query": "tea", "book": ""}),
        ("POST", "/api/consolidations", {"book": ""}),
        ("GET", "/api/export?book=", None),
        ("POST", "/api/import?book=", {"content": "x"}),
        ("DELETE", "/api/account/memories?book=", None),
        ("DELETE", "/api/account/memories?book=*", None),
    ],
)
async def test_an_empty_name_is_refused_where_a_book_is_named(
    alice: Owner, alice_api: Api, agent: Agent, method: str, path: str, body: Any
) -> None:
    await in_thread(memory_make, alice)
    status, answer = await alice_api.call(method, path, body)
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", "book")
    assert await in_thread(Memory.objects.count) == 1


async def test_a_star_means_every_book_in_lists_and_searches(alice: Owner, alice_api: Api) -> None:
    for book in ("main", "work"):
        memory = await in_thread(memory_make, alice, "Likes tea.", book=book)
        await in_thread(ConsolidationRun.objects.create, owner=alice, book=memory.book, book_epoch=1, trigger="request")
    for path in (
        "/api/memories?book=*",
        "/api/memories?book=",
        "/api/consolidations?book=*",
        "/api/consolidations?book=",
    ):
        _, listed = await alice_api.get(path)
        assert sorted(entry["book"] for entry in listed["data"]) == ["main", "work"]
    _, found = await alice_api.post("/api/memories/search", {"query": "tea", "book": "*"})
    assert sorted(entry["book"] for entry in found["data"]) == ["main", "work"]


async def test_a_bulk_edit_changes_a_single_book(alice: Owner, alice_api: Api) -> None:
    ids = [str((await in_thread(memory_make, alice, "Likes tea.", book=book)).number) for book in ("main", "work")]
    for book, changed in ((None, ids[:1]), ("work", ids[1:]), ("nothing", [])):
        _, answer = await alice_api.post("/api/memories/bulk", {"ids": ids, "action": "delete", "book": book})
        assert (answer["changed"], answer["left_alone"]) == (changed, [id for id in ids if id not in changed])


async def test_an_empty_category_does_not_filter_a_search(alice: Owner, alice_api: Api) -> None:
    await in_thread(memory_make, alice, "Likes tea.", category="food")
    _, found = await alice_api.post("/api/memories/search", {"query": "tea", "category": ""})
    assert [entry["content"] for entry in found["data"]] == ["Likes tea."]


@pytest.mark.parametrize("book", [None, "nothing"])
async def test_invalid_ids_are_left_alone(alice: Owner, alice_api: Api, book: str | None) -> None:
    await in_thread(memory_make, alice)
    _, answer = await alice_api.post(
        "/api/memories/bulk", {"ids": ["zz", "99", "zz", "\u0661"], "action": "pin", "book": book}
    )
    assert answer == {"change_set": None, "changed": [], "left_alone": ["99", "zz", "\u0661"]}
    assert (await alice_api.get("/api/memories/%D9%A1"))[0] == 404  # an Arabic 1


async def test_an_invalid_book_of_a_key_is_refused(alice_api: Api) -> None:
    for book in ("", "*", "x" * 65):
        status, answer = await alice_api.post("/api/keys", {"name": "x", "books": [book]})
        assert (status, answer["error"]["param"]) == (400, "books")

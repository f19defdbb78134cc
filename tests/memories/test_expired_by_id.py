"""An expired memory cannot be accessed by its id, even before a sweep has deleted it"""

import json
from typing import Any

import pytest
from django.test import Client

from memories.api.export import export_lines
from memories.database.access import in_thread
from memories.errors import NotFound
from memories.models import Owner, WriteOrigin
from memories.services import MemoryFields, Source, book_writing
from memories.sweep import memories_sweep
from reviews.consolidation.clear import contents_of
from tests.conftest import Api
from tests.factories import expired_make, memory_make
from tests.unsliced import book_clear


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("PATCH", {"pinned": True}), ("DELETE", None)])
async def test_an_expired_memory_is_not_found_by_its_id(alice: Owner, alice_api: Api, method: str, body: Any) -> None:
    memory = await in_thread(expired_make, alice)
    status, answer = await alice_api.call(method, f"/api/memories/{memory.number}", body)
    assert (status, answer["error"]["code"]) == (404, "not_found")


async def test_a_bulk_edit_skips_an_expired_memory_but_can_restore_it(alice: Owner, alice_api: Api) -> None:
    number = str((await in_thread(expired_make, alice)).number)
    for action in ("pin", "delete"):
        _, answer = await alice_api.post("/api/memories/bulk", {"ids": [number], "action": action})
        assert answer["left_alone"] == [number]
    _, answer = await alice_api.post("/api/memories/bulk", {"ids": [number], "action": "restore"})
    assert answer["changed"] == [number]
    assert (await alice_api.get(f"/api/memories/{number}"))[1]["expires_at"] is None


@pytest.mark.any_database
@pytest.mark.parametrize("swept", [False, True])
async def test_an_expired_memory_keeps_its_history_and_can_be_restored(
    alice: Owner, alice_api: Api, swept: bool
) -> None:
    number = (await in_thread(expired_make, alice)).number
    if swept:
        await in_thread(memories_sweep)
    status, history = await alice_api.get(f"/api/memories/{number}/revisions")
    first = history["data"][-1]["id"]
    assert status == 200
    status, restored = await alice_api.post(f"/api/memories/{number}/restore", {"revision": first})
    assert (status, restored["content"]) == (200, "On holiday until Monday.")
    assert (await alice_api.get(f"/api/memories/{number}"))[0] == 200


def test_a_writer_does_not_find_an_expired_memory(alice: Owner) -> None:
    memory = expired_make(alice)
    source = Source(actor="model", origin=WriteOrigin.TOOL)
    for fields in (MemoryFields(content="Likes tea."), MemoryFields(clear_expiry=True)):
        with pytest.raises(NotFound), book_writing(memory.book, source) as writer:
            writer.update(memory.number, fields)
    with pytest.raises(NotFound), book_writing(memory.book, source) as writer:
        writer.delete(memory.number)


async def test_lists_and_counts_exclude_an_expired_memory(alice: Owner, alice_api: Api) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    await in_thread(expired_make, alice, "Tea on holiday until Monday.", scan_rule="odd")
    _, listed = await alice_api.get("/api/memories")
    assert [memory["content"] for memory in listed["data"]] == ["Likes tea."]
    for strategy in ("ranked", "match_all"):
        _, found = await alice_api.post("/api/memories/search", {"query": "tea", "search": strategy, "book": "*"})
        assert [memory["content"] for memory in found["data"]] == ["Likes tea."]
    _, health = await alice_api.get("/api/memories/health")
    assert [(book["memories"], book["blocked"]) for book in health["data"]] == [(1, 0)]
    lines = (await in_thread(lambda: [json.loads(line) for line in export_lines(alice.pk)]))[1:]
    deleted = {line["content"]: bool(line["deleted_at"]) for line in lines if line["type"] == "memory"}
    assert deleted == {"Likes tea.": False, "Tea on holiday until Monday.": True}


def test_pages_exclude_an_expired_memory(alice: Owner, client: Client) -> None:
    memory_make(alice, "Likes tea.")
    number = expired_make(alice, "Tea on holiday until Monday.", category="passing").number
    assert alice.user
    client.force_login(alice.user)
    for address in ("/memories/", "/memories/?q=tea", "/memories/?pinned=0&expiring=1", f"/memories/?number={number}"):
        page = client.get(address).content.decode()
        assert "on holiday" not in page
        assert "passing" not in page
    assert "1 memory" in client.get("/memories/").content.decode()
    assert "1 memory" in client.get("/account/").content.decode()


def test_clearing_a_book_leaves_an_expired_memory_to_the_sweep(alice: Owner) -> None:
    book = memory_make(alice, "Likes tea.").book
    expired_make(alice)
    assert contents_of(book).memories == 1
    assert len(book_clear(book, actor="user:1").changes) == 1

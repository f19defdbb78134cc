"""An expired memory that no sweep has seen yet: by its id it is as gone as after the sweep"""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.database import in_thread
from memories.errors import NotFound
from memories.models import Memory, Owner, WriteOrigin
from memories.services import MemoryFields, Source, book_writing
from memories.sweep import memories_sweep
from tests.conftest import Api
from tests.factories import memory_make


def expired_make(owner: Owner, content: str = "On holiday until Monday.") -> Memory:
    memory = memory_make(owner, content, expires_at=timezone.now() + timedelta(hours=1))
    Memory.objects.filter(pk=memory.pk).update(expires_at=timezone.now() - timedelta(minutes=1))
    return memory


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("PATCH", {"pinned": True}), ("DELETE", None)])
async def test_it_is_not_found_by_its_id(alice: Owner, alice_api: Api, method: str, body: Any) -> None:
    memory = await in_thread(expired_make, alice)
    status, answer = await alice_api.call(method, f"/api/memories/{memory.number}", body)
    assert (status, answer["error"]["code"]) == (404, "not_found")


async def test_many_at_once_leave_it_alone_but_bring_it_back(alice: Owner, alice_api: Api) -> None:
    number = str((await in_thread(expired_make, alice)).number)
    for action in ("pin", "delete"):
        _, answer = await alice_api.post("/api/memories/bulk", {"ids": [number], "action": action})
        assert answer["left_alone"] == [number]
    _, answer = await alice_api.post("/api/memories/bulk", {"ids": [number], "action": "restore"})
    assert answer["changed"] == [number]
    assert (await alice_api.get(f"/api/memories/{number}"))[1]["expires_at"] is None


@pytest.mark.parametrize("swept", [False, True])
async def test_its_history_and_the_way_back_stay(alice: Owner, alice_api: Api, swept: bool) -> None:
    number = (await in_thread(expired_make, alice)).number
    if swept:
        await in_thread(memories_sweep)
    status, history = await alice_api.get(f"/api/memories/{number}/revisions")
    first = history["data"][-1]["id"]
    assert status == 200
    status, restored = await alice_api.post(f"/api/memories/{number}/restore", {"revision": first})
    assert (status, restored["content"]) == (200, "On holiday until Monday.")
    assert (await alice_api.get(f"/api/memories/{number}"))[0] == 200


def test_no_writer_finds_it(alice: Owner) -> None:
    memory = expired_make(alice)
    source = Source(actor="model", origin=WriteOrigin.TOOL)
    for fields in (MemoryFields(content="Likes tea."), MemoryFields(clear_expiry=True)):
        with pytest.raises(NotFound), book_writing(memory.book, source) as writer:
            writer.update(memory.number, fields)
    with pytest.raises(NotFound), book_writing(memory.book, source) as writer:
        writer.delete(memory.number)

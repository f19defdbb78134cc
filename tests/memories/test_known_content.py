"""POST /api/memories of words that are remembered already: what else the request names is an update"""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.database.access import in_thread
from memories.models import Memory, Owner, WriteOrigin
from memories.services import MemoryFields, Source, book_writing
from tests.conftest import Api
from tests.factories import memory_make

pytestmark = pytest.mark.any_database

LATER = "2099-01-01T00:00:00Z"
ALL: dict[str, Any] = {
    "keywords": ["drink"],
    "category": "food",
    "target": "memory",
    "pinned": True,
    "expires_at": LATER,
    "metadata": {"source": "crm"},
}


def known_make(owner: Owner, **fields: Any) -> Memory:
    return memory_make(owner, "Likes tea.", category="drink", keywords=["cup"], metadata={"by": "hand"}, **fields)


@pytest.mark.parametrize("named", [*({name: value} for name, value in ALL.items()), ALL])
async def test_the_fields_that_are_named_are_applied(alice: Owner, alice_api: Api, named: dict[str, Any]) -> None:
    memory = await in_thread(known_make, alice)
    _, before = await alice_api.get(f"/api/memories/{memory.number}")
    response = await alice_api.raw("POST", "/api/memories", {"content": "likes  TEA", **named})
    after = response.json()
    assert (response.status_code, response["ETag"]) == (200, '"2"')
    changed = {name: after[name] for name in after if after[name] != before[name]}
    assert changed == {**named, "version": 2, "updated_at": after["updated_at"]}
    _, history = await alice_api.get(f"/api/memories/{memory.number}/revisions")
    assert [(row["action"], row["write_origin"]) for row in history["data"]] == [("update", "user"), ("add", "user")]


@pytest.mark.parametrize("named", [{}, {"category": "drink", "keywords": ["cup"]}])
async def test_nothing_new_is_no_change(alice: Owner, alice_api: Api, named: dict[str, Any]) -> None:
    memory = await in_thread(known_make, alice)
    status, answer = await alice_api.post("/api/memories", {"content": "Likes tea.", **named})
    assert (status, answer["id"], answer["version"], answer["target"]) == (200, str(memory.number), 1, "user")


async def test_an_expiry_that_is_named_as_null_is_removed(alice: Owner, alice_api: Api) -> None:
    await in_thread(known_make, alice, expires_at=timezone.now() + timedelta(days=1))
    status, answer = await alice_api.post("/api/memories", {"content": "Likes tea.", "expires_at": None})
    assert (status, answer["expires_at"], answer["version"]) == (200, None, 2)


async def test_what_is_refused_of_it_leaves_the_memory_as_it_is(alice: Owner, alice_api: Api) -> None:
    memory = await in_thread(known_make, alice)
    secret = {"token": "ghp_" + "a1B2" * 9}
    status, answer = await alice_api.post("/api/memories", {"content": "Likes tea.", "metadata": secret})
    assert (status, answer["error"]["code"]) == (422, "blocked_by_scan")
    assert (await in_thread(Memory.objects.get, pk=memory.pk)).version == 1


def test_a_repetition_by_a_model_changes_nothing(alice: Owner) -> None:
    memory = known_make(alice)
    with book_writing(memory.book, Source(actor="model", origin=WriteOrigin.TOOL)) as writer:
        written = writer.add(MemoryFields(content="Likes tea.", category="food", keywords=["leaf"]))
    assert (written.changed, Memory.objects.get().category) == (False, "drink")

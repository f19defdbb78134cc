"""POST /api/memories with the content of an existing memory: the other given fields are updated"""

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


@pytest.mark.parametrize("given", [*({name: value} for name, value in ALL.items()), ALL])
async def test_the_given_fields_are_updated(alice: Owner, alice_api: Api, given: dict[str, Any]) -> None:
    memory = await in_thread(known_make, alice)
    _, before = await alice_api.get(f"/api/memories/{memory.number}")
    response = await alice_api.raw("POST", "/api/memories", {"content": "likes  TEA", **given})
    after = response.json()
    assert (response.status_code, response["ETag"]) == (200, '"2"')
    changed = {name: after[name] for name in after if after[name] != before[name]}
    assert changed == {**given, "version": 2, "updated_at": after["updated_at"]}
    _, history = await alice_api.get(f"/api/memories/{memory.number}/revisions")
    assert [(row["action"], row["write_origin"]) for row in history["data"]] == [("update", "user"), ("add", "user")]


@pytest.mark.parametrize("given", [{}, {"category": "drink", "keywords": ["cup"]}])
async def test_equal_fields_make_no_revision(alice: Owner, alice_api: Api, given: dict[str, Any]) -> None:
    memory = await in_thread(known_make, alice)
    status, answer = await alice_api.post("/api/memories", {"content": "Likes tea.", **given})
    assert (status, answer["id"], answer["version"], answer["target"]) == (200, str(memory.number), 1, "user")


async def test_an_expiry_given_as_null_is_removed(alice: Owner, alice_api: Api) -> None:
    await in_thread(known_make, alice, expires_at=timezone.now() + timedelta(days=1))
    status, answer = await alice_api.post("/api/memories", {"content": "Likes tea.", "expires_at": None})
    assert (status, answer["expires_at"], answer["version"]) == (200, None, 2)


async def test_a_refused_field_leaves_the_memory_unchanged(alice: Owner, alice_api: Api) -> None:
    memory = await in_thread(known_make, alice)
    secret = {"token": "ghp_" + "a1B2" * 9}
    status, answer = await alice_api.post("/api/memories", {"content": "Likes tea.", "metadata": secret})
    assert (status, answer["error"]["code"]) == (422, "blocked_by_scan")
    assert (await in_thread(Memory.objects.get, pk=memory.pk)).version == 1


def test_a_models_repetition_changes_nothing(alice: Owner) -> None:
    memory = known_make(alice)
    with book_writing(memory.book, Source(actor="model", origin=WriteOrigin.TOOL)) as writer:
        written = writer.add(MemoryFields(content="Likes tea.", category="food", keywords=["leaf"]))
    assert (written.changed, Memory.objects.get().category) == (False, "drink")


async def test_a_memory_cannot_be_changed_to_the_text_of_another_one(alice: Owner, alice_api: Api) -> None:
    memory = await in_thread(known_make, alice)
    _, other = await alice_api.post("/api/memories", {"content": "Likes coffee."})
    path = f"/api/memories/{other['id']}"
    status, answer = await alice_api.call("PATCH", path, {"content": "likes  TEA"})
    assert (status, answer["error"]["code"]) == (409, "conflict")
    assert answer["error"]["details"] == {"memory_id": str(memory.number)}
    assert (await alice_api.get(path))[1]["version"] == 1
    arguments = {"id": int(other["id"]), "content": "Likes tea."}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    _, answer = await alice_api.post("/mcp", message | {"params": {"name": "update_memory", "arguments": arguments}})
    assert answer["result"]["structuredContent"]["error"] == "conflict"
    assert (await alice_api.call("PATCH", path, {"content": "likes COFFEE"}))[0] == 200  # its own text


async def test_a_deleted_memory_can_be_restored_beside_one_with_its_text(alice: Owner, alice_api: Api) -> None:
    memory = await in_thread(known_make, alice)
    path = f"/api/memories/{memory.number}"
    _, history = await alice_api.get(f"{path}/revisions")
    await alice_api.call("DELETE", path)
    _, other = await alice_api.post("/api/memories", {"content": "Likes coffee."})
    assert (await alice_api.call("PATCH", f"/api/memories/{other['id']}", {"content": "Likes tea."}))[0] == 200
    assert (await alice_api.post(f"{path}/restore", {"revision": history["data"][0]["id"]}))[0] == 200
    for row in (memory.number, other["id"]):  # each of two equal ones can be corrected
        status, _ = await alice_api.call("PATCH", f"/api/memories/{row}", {"content": f"Likes tea {row}."})
        assert status == 200

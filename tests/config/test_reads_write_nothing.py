"""Reads write nothing: every GET of the APIs and pages, and every read-only tool, is called twice, and the second call
must not write. The first one may record something once, such as a new owner or the use of a key."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.database.access import in_thread
from memories.models import Owner
from memories.tools import TOOLS as TOOL_TABLE
from tests.config.test_access_matrix import API, PAGES, TOOLS, World, request
from tests.conftest import Api
from tests.factories import key_make, memory_make
from tests.queries import statements

# Reads that do write, and why; docs/limits.md lists them too.
WRITES = {"GET /api/export": "every export is recorded before its first line is sent"}

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def writes(statements: list[str]) -> list[str]:
    """Return the statements that write."""
    return [sql for sql in statements if sql.startswith(("INSERT", "UPDATE", "DELETE", "REPLACE"))]


@pytest.fixture
def charlies(world: World) -> tuple[Owner, Api]:
    """Charlie, who has no memories in this world, and an API client."""
    charlie = Owner.objects.get(user__username="charlie")
    return charlie, Api(key_make(charlie)[1])


@pytest.mark.parametrize("name", [name for name in API if name.startswith("GET ")])
@pytest.mark.parametrize("caller", ["owner's key", "owner"])
async def test_a_get_operation_writes_nothing(world: World, name: str, caller: str) -> None:
    _, path = world.fill(name).split()
    await request(world.clients[caller], "GET", path, None)
    async with statements() as found:
        await request(world.clients[caller], "GET", path, None)
    assert writes(found) == [] or name in WRITES


@pytest.mark.parametrize("name", [name for name, (_, method, _) in PAGES.items() if method == "GET"])
def test_viewing_a_page_writes_nothing(world: World, name: str) -> None:
    client = Client()
    client.cookies = world.clients["owner"].cookies
    path = world.fill(PAGES[name][2])
    b"".join(client.get(path))
    with CaptureQueriesContext(connection) as found:
        b"".join(client.get(path))
    assert writes([query["sql"] for query in found]) == [] or name in WRITES


@pytest.mark.parametrize("name", [name for name in TOOLS if not TOOL_TABLE[name].writes])
async def test_a_read_only_tool_writes_nothing(world: World, name: str) -> None:
    client: AsyncClient = world.clients["owner's key"]
    call = {"name": name, "arguments": world.fill(TOOLS[name][1])}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    options: dict[str, Any] = {"data": message, "content_type": "application/json"}
    await client.post("/mcp", **options)
    async with statements() as found:
        await client.post("/mcp", **options)
    assert writes(found) == [] or name in WRITES


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/memories/search", {"query": "tea"}),
        ("/mcp", {"method": "tools/call", "params": {"name": "search_memories", "arguments": {"query": "tea"}}}),
        ("/mcp", {"method": "tools/call", "params": {"name": "get_memories", "arguments": {}}}),
    ],
    ids=["search", "search_memories", "get_memories"],
)
async def test_an_expired_memory_is_hidden_before_the_sweep_without_a_write(
    charlies: tuple[Owner, Api], monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    (charlie, charlie_api), now = charlies, timezone.now()
    await in_thread(memory_make, charlie, "Likes tea.", expires_at=now + timedelta(hours=1))
    if path == "/mcp":
        body = {"jsonrpc": "2.0", "id": 1, **body}
    _, answer = await charlie_api.post(path, body)
    assert "Likes tea." in json.dumps(answer)
    monkeypatch.setattr(timezone, "now", lambda: now + timedelta(hours=2))
    async with statements() as found:
        _, answer = await charlie_api.post(path, body)
    assert "Likes tea." not in json.dumps(answer)
    assert writes(found) == []

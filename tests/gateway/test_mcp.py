"""/mcp: JSON-RPC over HTTP, the memory tools of the key's owner"""

from typing import Any

import pytest

from gateway.api import openai_body
from gateway.keys import api_key_revoke
from gateway.models import Agent
from memories.database.access import in_thread
from memories.models import Book, Memory, Owner, Revision
from tests.conftest import Api
from tests.factories import agent_make, key_make, memory_make
from tests.gateway.mcp import ENVELOPE, READING, WRITING, call, rpc


async def tool_names(api: Api) -> set[str]:
    _, answer = await api.post("/mcp", rpc("tools/list"))
    return {tool["name"] for tool in answer["result"]["tools"]}


async def test_a_handshake_agrees_on_the_version_of_the_client(alice_api: Api) -> None:
    status, answer = await alice_api.post("/mcp", rpc("initialize", protocolVersion="2025-06-18", capabilities={}))
    assert status == 200
    assert answer["id"] == 1
    assert answer["result"]["protocolVersion"] == "2025-06-18"
    assert answer["result"]["capabilities"] == {"tools": {}, "resources": {}, "prompts": {}}
    assert answer["result"]["serverInfo"]["name"] == "daybook"


async def test_an_unknown_version_is_offered_the_newest_one(alice_api: Api) -> None:
    _, answer = await alice_api.post("/mcp", rpc("initialize", protocolVersion="2031-01-01", capabilities={}))
    assert answer["result"]["protocolVersion"] == "2025-11-25"


async def test_a_large_body_is_parsed_in_a_thread(alice_api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing it on the event loop would block all other requests."""
    in_thread_calls: list[str] = []

    async def in_a_thread(function: Any, *arguments: Any) -> Any:
        in_thread_calls.append(getattr(function, "func", function).__name__)
        return function(*arguments)

    monkeypatch.setattr(openai_body, "in_read_thread", in_a_thread)
    for size in (10, 100_000):
        status, answer = await alice_api.post("/mcp", rpc("ping", padding="x" * size))
        assert (status, answer["result"]) == (200, {})
    assert in_thread_calls == ["read_messages"]


async def test_parameters_may_be_null(alice_api: Api) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": None}
    status, answer = await alice_api.post("/mcp", message)
    assert (status, len(answer["result"]["tools"])) == (200, 6)


async def test_a_notification_is_acknowledged_without_a_body(alice_api: Api) -> None:
    response = await alice_api.raw("POST", "/mcp", rpc("notifications/initialized", id=None))
    assert (response.status_code, response.content) == (202, b"")


async def test_every_memory_tool_is_listed_with_its_schema(alice_api: Api) -> None:
    _, answer = await alice_api.post("/mcp/", rpc("tools/list"))
    tools = {tool["name"]: tool for tool in answer["result"]["tools"]}
    assert set(tools) == WRITING | READING
    assert tools["add_memory"]["inputSchema"]["required"] == ["content"]


async def test_a_tool_write_is_attributed_to_the_key(alice: Owner, alice_api: Api) -> None:
    result = await call(alice_api, "add_memory", content="Is vegetarian.", target="user", category="diet")
    revision = await in_thread(lambda: Revision.objects.select_related("memory", "change_set").get())
    key = await in_thread(lambda: alice.api_keys.get())
    assert result["ok"] is True
    assert (revision.owner_id, revision.memory.number) == (alice.pk, result["id"])
    assert (revision.write_origin, revision.actor) == ("tool", f"key:{key.pk}")
    assert (revision.change_set.kind, revision.change_set.run_id) == ("tool", None)


async def test_a_memory_can_be_found_updated_and_deleted(alice_api: Api) -> None:
    number = (await call(alice_api, "add_memory", content="Drinks tea."))["id"]
    found = await call(alice_api, "search_memories", query="tea")
    assert [memory["content"] for memory in found["memories"]] == ["Drinks tea."]
    await call(alice_api, "update_memory", id=number, content="Drinks coffee.")
    assert [m["content"] for m in (await call(alice_api, "get_memories"))["memories"]] == ["Drinks coffee."]
    await call(alice_api, "delete_memory", id=number)
    assert (await call(alice_api, "get_memories"))["memories"] == []


async def test_a_write_refused_by_the_scan_returns_an_error_result(alice_api: Api) -> None:
    secret = "The password of the router is Tr0ub4dor-9x!k."
    result = await call(alice_api, "add_memory", content=secret)
    assert (result["ok"], result["error"]) == (False, "blocked_by_scan")
    assert not await in_thread(Memory.objects.exists)


async def test_invalid_arguments_return_an_error_result(alice_api: Api) -> None:
    result = await call(alice_api, "add_memory", text="No such argument.")
    assert result["error"] == "invalid_arguments"
    assert "content" in result["message"]


async def test_charlie_sees_nothing_of_alice(alice: Owner, charlie_api: Api) -> None:
    memory = await in_thread(memory_make, alice, "Likes jazz.")
    assert (await call(charlie_api, "get_memories"))["memories"] == []
    result = await call(charlie_api, "delete_memory", id=memory.number)
    assert result["error"] == "not_found"
    assert await in_thread(Memory.objects.filter(deleted_at__isnull=True).exists)


async def test_a_read_only_key_has_only_the_reading_tools(alice: Owner) -> None:
    await in_thread(memory_make, alice, "Likes jazz.")
    reader = Api((await in_thread(key_make, alice, read_only=True))[1])
    assert await tool_names(reader) == READING
    assert len((await call(reader, "get_memories"))["memories"]) == 1
    assert (await call(reader, "add_memory", content="Likes tea."))["error"] == "forbidden"
    assert await in_thread(Memory.objects.count) == 1


async def test_a_read_only_key_creates_no_book(alice: Owner) -> None:
    reader = Api((await in_thread(key_make, alice, read_only=True))[1])
    for tool, arguments in (("search_memories", {"query": "jazz"}), ("get_memories", {})):
        result = await call(reader, tool, {"x-daybook-book": "unheard-of"}, **arguments)
        assert result["error"] == "not_found"
    assert (await call(reader, "get_memories"))["memories"] == []  # its own book may be empty
    assert not await in_thread(Book.objects.filter(name="unheard-of").exists)


async def test_a_key_that_just_became_read_only_cannot_write(alice: Owner) -> None:
    key, plain = await in_thread(key_make, alice)
    writer = Api(plain)
    assert await tool_names(writer) == WRITING | READING
    key.read_only = True
    await in_thread(key.save)
    assert (await call(writer, "add_memory", content="Likes tea."))["error"] == "forbidden"


async def test_a_revoked_key_is_refused_at_once(alice: Owner) -> None:
    key, plain = await in_thread(key_make, alice)
    assert await tool_names(Api(plain))
    await in_thread(api_key_revoke, key)
    calls = (rpc("tools/call", name="get_memories", arguments={}), rpc("prompts/get", name="review_my_memory"))
    for message in (*calls, rpc("resources/list"), rpc("tools/list"), rpc("ping")):
        status, body = await Api(plain).post("/mcp", message)
        assert (status, body["error"]["code"]) == (401, "unauthorized")


async def test_a_trusted_key_names_the_end_user(alice: Owner) -> None:
    app = Api((await in_thread(key_make, alice, trusted=True))[1])
    await call(app, "add_memory", {"x-daybook-user": "anna"}, content="Likes jazz.")
    assert (await call(app, "get_memories"))["memories"] == []
    assert len((await call(app, "get_memories", {"x-daybook-user": "anna"}))["memories"]) == 1


async def test_a_key_shared_by_several_end_users_has_no_memory(alice: Owner) -> None:
    app = Api((await in_thread(key_make, alice))[1])
    await call(app, "get_memories", {"x-openwebui-user-id": "anna"})
    result = await call(app, "add_memory", {"x-openwebui-user-id": "ben"}, content="Likes jazz.")
    assert result["error"] == "forbidden"
    assert not await in_thread(Memory.objects.exists)


async def test_a_header_chooses_the_book(alice_api: Api) -> None:
    await call(alice_api, "add_memory", {"x-daybook-book": "work"}, content="Deploys on Fridays.")
    assert (await call(alice_api, "get_memories"))["memories"] == []
    assert len((await call(alice_api, "get_memories", {"x-daybook-book": "work"}))["memories"]) == 1


async def test_a_key_limited_to_agents_works_on_their_books_only(alice: Owner, agent: Agent) -> None:
    await in_thread(lambda: agent_make("clerk", book="office"))
    clerk = Api((await in_thread(key_make, alice, agents=["clerk"]))[1])
    await call(clerk, "add_memory", content="Files by date.")
    memory = await in_thread(lambda: Memory.objects.select_related("book").get())
    assert memory.book.name == "office"
    assert (await call(clerk, "get_memories", {"x-daybook-book": "main"}))["error"] == "not_found"


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://testserver.evil.example"])
async def test_a_foreign_origin_is_refused(alice_api: Api, origin: str) -> None:
    status, body = await alice_api.post("/mcp", rpc("tools/list"), origin=origin)
    assert (status, body["error"]["code"]) == (403, "forbidden")


async def test_this_host_and_trusted_origins_are_allowed(alice_api: Api, settings: Any) -> None:
    settings.TRUSTED_ORIGINS = ["https://chat.example.org"]
    for origin in ("http://testserver", "https://chat.example.org"):
        status, _ = await alice_api.post("/mcp", rpc("tools/list"), origin=origin)
        assert status == 200


async def test_a_key_is_required(alice_api: Api) -> None:
    status, body = await Api("dbk_nobody_knows_this_one").post("/mcp", rpc("tools/list"))
    assert (status, body["error"]["code"]) == (401, "unauthorized")
    alice_api.headers.clear()
    status, body = await alice_api.post("/mcp", rpc("tools/list"))
    assert (status, body["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_streams_and_sessions_are_not_supported(alice_api: Api, verb: str) -> None:
    response = await alice_api.raw(verb, "/mcp")
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", -32700),
        ('{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600),
        ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
        ('{"jsonrpc": "2.0", "id": 1}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32602),
        ("[]", -32600),
        ("7", -32600),
    ],
)
async def test_invalid_messages_are_refused(alice_api: Api, body: str, code: int) -> None:
    status, answer = await alice_api.post("/mcp", body)
    assert (status, answer["error"]["code"]) == (400, code)


async def test_a_batch_is_answered_in_order(alice_api: Api) -> None:
    batch = [rpc("ping", id=1), rpc("notifications/initialized", id=None), rpc("tools/list", id=2)]
    status, answers = await alice_api.post("/mcp", batch)
    assert status == 200
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[0]["result"] == {}


async def test_a_request_with_its_own_envelope_needs_no_handshake(alice_api: Api) -> None:
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"}
    status, answer = await alice_api.post("/mcp", rpc("server/discover", _meta=ENVELOPE), **headers)
    assert status == 200
    assert "2026-07-28" in answer["result"]["supportedVersions"]
    assert answer["result"]["resultType"] == "complete"


NEWEST = {"mcp-protocol-version": "2026-07-28"}


@pytest.mark.parametrize(
    ("message", "headers", "expected"),
    [
        (rpc("resources/subscribe"), {}, (200, -32601)),
        (rpc("tools/call", name="shell", arguments={}), {}, (200, -32602)),
        (rpc("tools/list"), {"mcp-protocol-version": "2031-01-01"}, (400, -32022)),
        (rpc("logging/setLevel", _meta=ENVELOPE), {**NEWEST, "mcp-method": "logging/setLevel"}, (404, -32601)),
        (rpc("tools/list", _meta=ENVELOPE), {**NEWEST, "mcp-method": "tools/call"}, (400, -32020)),
        (rpc("tools/list", _meta=ENVELOPE), {"mcp-method": "tools/list"}, (400, -32020)),
        (
            rpc("tools/list", _meta=ENVELOPE),
            {"mcp-protocol-version": "2025-11-25", "mcp-method": "tools/list"},
            (400, -32020),
        ),
    ],
)
async def test_a_request_that_is_not_supported_or_contradicts_its_headers_is_refused(
    alice_api: Api, message: dict[str, Any], headers: dict[str, str], expected: tuple[int, int]
) -> None:
    status, answer = await alice_api.post("/mcp", message | {"id": 7}, **headers)
    assert (status, answer["error"]["code"]) == expected
    assert answer["id"] == 7
    if expected[1] == -32022:
        assert "2025-11-25" in answer["error"]["data"]["supported"]

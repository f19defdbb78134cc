"""/mcp: output schemas, annotations of tools, and the version of the server"""

import tomllib
from pathlib import Path
from typing import Any

from django.conf import settings
from jsonschema import Draft202012Validator

from memories.artifacts.store import artifact_put
from memories.database.access import in_thread
from memories.models import Owner
from memories.services import book_get_or_create, book_limits_set
from memories.tools import Stage, output_schema, tools_at
from tests.conftest import Api
from tests.factories import BY_HAND, memory_make
from tests.gateway.mcp import READING, WRITING, call, rpc


async def schemas(api: Api) -> dict[str, Any]:
    _, answer = await api.post("/mcp", rpc("tools/list"))
    return {tool["name"]: tool["outputSchema"] for tool in answer["result"]["tools"]}


def errors(schema: dict[str, Any], result: dict[str, Any]) -> list[str]:
    return [error.message for error in Draft202012Validator(schema).iter_errors(result)]


async def test_every_tool_has_an_output_schema_without_references(alice_api: Api) -> None:
    found = await schemas(alice_api)
    assert found.keys() == WRITING | READING
    for schema in found.values():
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert {"ok", "error", "message"} <= schema["properties"].keys()
        assert "$ref" not in str(schema)
        assert errors(schema, {"ok": True}) != []
        assert errors(schema, {"ok": False}) != []
        assert errors(schema, {}) != []


async def test_results_of_every_tool_match_its_schema(alice: Owner, alice_api: Api) -> None:
    def prepare() -> None:
        artifact_put(book_get_or_create(alice.pk, "main"), "MEMORY.md", "# Tea\n" + "Leaf by leaf.\n" * 2_000, BY_HAND)
        book_limits_set({"main": (100, 30)})

    await in_thread(prepare)
    schema = await schemas(alice_api)
    calls: dict[str, list[dict[str, Any]]] = {
        "add_memory": [
            {"content": "Likes tea."},
            {"content": "Likes tea."},  # known
            {"content": "Likes green tea."},  # the book is nearly full
            {"content": "Likes a lot of other things, too."},  # over budget
            {"content": "The password of the router is Tr0ub4dor-9x!k."},  # refused by the scan
            {"text": "no such argument"},
        ],
        "update_memory": [{"id": 1, "content": "Likes rum."}, {"id": 4711, "content": "Likes rum."}, {"id": 1}],
        "search_memories": [{"query": "tea"}, {"query": "astronomy"}, {}],
        "get_memories": [{}, {"book": "main"}],
        "read": [
            {"path": "memory://root/MEMORY.md"},
            {"path": "memory://root/MEMORY.md", "offset": 24_000},
            {"path": "memory://root"},
            {"path": "file:///etc/passwd"},
        ],
        "delete_memory": [{"id": 1}, {"id": 1}, {}],
    }
    assert calls.keys() == schema.keys()
    outcomes: dict[str, set[bool]] = {}
    for name, arguments in calls.items():
        for call_arguments in arguments:
            result = await call(alice_api, name, **call_arguments)
            assert errors(schema[name], result) == [], (name, call_arguments, result)
            outcomes.setdefault(name, set()).add(result["ok"])
    assert all(seen == {True, False} for seen in outcomes.values()), outcomes


async def test_annotations_describe_what_a_tool_may_do(alice_api: Api) -> None:
    _, answer = await alice_api.post("/mcp", rpc("tools/list"))
    annotations = {tool["name"]: tool["annotations"] for tool in answer["result"]["tools"]}
    assert {name for name, hints in annotations.items() if hints["readOnlyHint"]} == READING
    assert {name for name, hints in annotations.items() if hints["destructiveHint"]} == {
        "update_memory",
        "delete_memory",
    }
    assert all(
        hints["idempotentHint"] and not hints["openWorldHint"] and hints["title"] for hints in annotations.values()
    )


async def test_idempotent_tools_are_idempotent(alice: Owner, alice_api: Api) -> None:
    for _ in range(2):
        await call(alice_api, "add_memory", content="Likes tea.")
    for _ in range(2):
        await call(alice_api, "update_memory", id=1, content="Likes rum.")
    assert len((await call(alice_api, "get_memories"))["memories"]) == 1
    _, history = await alice_api.get("/api/memories/1/revisions")
    assert [revision["action"] for revision in history["data"]] == ["update", "add"]


async def test_lists_of_what_does_not_change_have_one_page(alice_api: Api) -> None:
    for method in ("tools/list", "prompts/list", "resources/templates/list"):
        _, answer = await alice_api.post("/mcp", rpc(method, cursor="bW9yZTox"))
        assert answer["error"]["code"] == -32602
        _, answer = await alice_api.post("/mcp", rpc(method, cursor=None))
        assert "nextCursor" not in answer["result"]


async def test_the_server_reports_the_version_of_the_package(alice_api: Api) -> None:
    project = tomllib.loads((Path(settings.BASE_DIR) / "pyproject.toml").read_text())["project"]
    _, answer = await alice_api.post("/mcp", rpc("initialize", protocolVersion="2025-11-25", capabilities={}))
    assert answer["result"]["serverInfo"]["version"] == project["version"]


def test_a_listed_memory_has_the_documented_fields(alice: Owner) -> None:
    memory_make(alice)
    listed = output_schema(next(tool.result for tool in tools_at(Stage.MCP) if tool.name == "get_memories"))
    assert listed["properties"]["memories"]["items"]["properties"].keys() == {"id", "category", "content", "target"}

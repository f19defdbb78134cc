"""The official MCP client against a real server's /mcp."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.e2e.conftest import migrated_storage
from tests.e2e.running import RunningDaybook, running_daybook
from tests.lazy_module import LazyModule

mcp: Any = LazyModule("mcp")
streamable_http: Any = LazyModule("mcp.client.streamable_http")

pytestmark = [pytest.mark.e2e, pytest.mark.any_database]


@pytest.fixture(scope="module")
def daybook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaybook]:
    """A running Daybook."""
    home = tmp_path_factory.mktemp("mcp") / "home"
    with migrated_storage(home) as storage, running_daybook(home, storage) as running:
        yield running


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_lists_and_calls_the_tools(daybook: RunningDaybook, mode: str) -> None:
    headers = {"Authorization": f"Bearer {daybook.api_key}", "X-Daybook-Book": mode}
    # The client uses the HTTP library of the openai package.
    async with openai.DefaultAsyncHttpxClient(headers=headers) as http_client:
        transport = streamable_http.streamable_http_client(f"{daybook.address}mcp", http_client=http_client)
        async with mcp.Client(transport, mode=mode) as client:
            listed = await client.list_tools()
            assert {"add_memory", "search_memories"} <= {tool.name for tool in listed.tools}
            await _remember(client)
            await _read(client)
            await _review(client)


async def _remember(client: Any) -> None:
    added = await client.call_tool("add_memory", {"content": "Likes jazz in the evening.", "target": "user"})
    assert added.is_error is False
    found = await client.call_tool("search_memories", {"query": "music in the evening"})
    assert [memory["content"] for memory in found.structured_content["memories"]] == ["Likes jazz in the evening."]
    refused = await client.call_tool("delete_memory", {"id": 4711})
    assert refused.is_error is True


async def _read(client: Any) -> None:
    listed = await client.list_resources()
    (memory,) = [resource for resource in listed.resources if str(resource.uri).startswith("memory://memories/")]
    (contents,) = (await client.read_resource(memory.uri)).contents
    assert json.loads(contents.text)["content"] == "Likes jazz in the evening."
    templates = await client.list_resource_templates()
    assert "memory://memories/{id}" in {template.uri_template for template in templates.resource_templates}
    with pytest.raises(mcp.MCPError, match="no such memory"):
        await client.read_resource("memory://memories/4711")
    with pytest.raises(mcp.MCPError, match="nextCursor"):
        await client.list_resources(cursor="not-one-of-ours")


async def _review(client: Any) -> None:
    (prompt,) = (await client.list_prompts()).prompts
    assert prompt.name == "review_my_memory"
    (message,) = (await client.get_prompt(prompt.name)).messages
    assert "Likes jazz in the evening." in message.content.text


async def test_the_official_client_is_refused_without_a_key(daybook: RunningDaybook) -> None:
    transport = streamable_http.streamable_http_client(f"{daybook.address}mcp")
    entered = False
    with pytest.RaisesGroup(mcp.MCPError, flatten_subgroups=True, allow_unwrapped=True):
        async with mcp.Client(transport):
            entered = True
    assert not entered

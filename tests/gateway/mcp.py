"""Send messages to /mcp."""

import json
from typing import Any

from tests.conftest import Api

WRITING = {"add_memory", "update_memory", "delete_memory"}
READING = {"search_memories", "get_memories", "read"}
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def rpc(method: str, id: int | None = 1, **params: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return message if id is None else {**message, "id": id}


async def call(api: Api, name: str, headers: dict[str, str] | None = None, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its structured result."""
    status, answer = await api.post("/mcp", rpc("tools/call", name=name, arguments=arguments), **(headers or {}))
    assert status == 200, answer
    result: dict[str, Any] = answer["result"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert result["isError"] is not result["structuredContent"]["ok"]
    return dict(result["structuredContent"])

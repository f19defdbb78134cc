"""The MCP SDK: messages become calls of the memory tools."""

import json
import re
from typing import Any

import openai
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from talk import HOST, KEY, talk


async def ask(history: Any, said: dict[str, Any]) -> tuple[str, None]:
    remembering = re.search(r"remember this: (.*)$", said["text"])
    async with (
        openai.DefaultAsyncHttpxClient(headers={"Authorization": f"Bearer {KEY}"}) as http,
        Client(streamable_http_client(f"{HOST}/mcp", http_client=http)) as client,
    ):
        if remembering:
            result = await client.call_tool("add_memory", {"content": remembering[1], "target": "user"})
        else:
            result = await client.call_tool("search_memories", {"query": said["text"]})
        assert not result.is_error, result
        return json.dumps(result.structured_content), None


talk(ask)

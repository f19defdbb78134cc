"""What is offered over MCP and what a call does: the memory tools of a conversation, on the key's own behalf.
Synchronous; uses the database. Handlers, scanning and budgets are those of memories.tools."""

import json
from typing import Any

from gateway.agents.rows import KEY_REVOKED
from gateway.authentication import require_memory
from gateway.keys import key_limits, valid_keys
from gateway.models import ApiKey
from memories import tools as memory_tools
from memories.books import book_state, book_state_to_read
from memories.caller import Caller
from memories.errors import DomainError, Forbidden, Unauthorized
from memories.tools import Stage, Tool, ToolCall, ToolScope

_TOOLS = memory_tools.tools_at(Stage.MCP)
NAMES = frozenset(tool.name for tool in _TOOLS)


def offered(caller: Caller) -> list[dict[str, Any]]:
    """Return the tools of this key as MCP describes tools; a read-only key gets those that read."""
    return [_described(tool) for tool in _TOOLS if not (caller.read_only and tool.writes)]


def _described(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.definition()["function"]["parameters"],
        "annotations": {
            "readOnlyHint": not tool.writes,
            "destructiveHint": tool.destructive,
            "openWorldHint": False,
        },
    }


def call_tool(caller: Caller, book: str, call: ToolCall) -> dict[str, Any]:
    """Run one tool; `book` is the one that was asked for ("": the key's own). A refusal is a result that the model can
    act on. Raises Unauthorized for a key that was revoked meanwhile."""
    key = valid_keys().filter(pk=caller.key_id).first() if caller.key_id else None
    if key is None:  # what authentication remembers may be a minute old
        raise Unauthorized(KEY_REVOKED)
    try:
        text = _run(caller, key, book, call)
    except DomainError as error:
        text = json.dumps(memory_tools.failure(error.code, str(error), **error.details), ensure_ascii=False)
    result = json.loads(text)
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": result,
        "isError": not result["ok"],
    }


def _run(caller: Caller, key: ApiKey, book: str, call: ToolCall) -> str:
    require_memory(caller)
    if key.read_only and memory_tools.TOOLS[call.name].writes:
        raise Forbidden("This key may only read.")
    state_of = book_state if memory_tools.TOOLS[call.name].writes else book_state_to_read
    scope = ToolScope(
        book=state_of(caller.owner_id, key_limits(key).book_name(book or None)),
        search="ranked",
        session_id=None,
        run_id=None,
        actor=caller.actor,
    )
    return memory_tools.run_calls([call], scope).results[call.id]

"""The tools offered over MCP: the memory tools, called on behalf of the key instead of a conversation. Handlers,
scanning and budgets are those of memories.tools. Synchronous; uses the database."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.agents.rows import agent_settings
from gateway.authentication import require_memory
from gateway.keys import key_limits
from gateway.mcp.rights import current_key
from gateway.models import Agent, ApiKey
from memories import tools as memory_tools
from memories.books import book_state, book_state_to_read, existing_book_state
from memories.caller import DEFAULT_BOOK, Caller
from memories.errors import DomainError, Forbidden, NotFound
from memories.evidence import Hold
from memories.tools import Stage, Tool, ToolCall, ToolScope

_STRICTEST_FIRST = (Hold.STRICT, Hold.UNTRUSTED, Hold.OFF)
_TOOLS = memory_tools.tools_at(Stage.MCP)
NAMES = frozenset(tool.name for tool in _TOOLS)


def _tool_json(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.definition()["function"]["parameters"],
        "outputSchema": memory_tools.output_schema(tool.result),
        "annotations": {
            "title": tool.title,
            "readOnlyHint": not tool.writes,
            "destructiveHint": tool.destructive,
            "idempotentHint": True,  # repeating a call has no further effect
            "openWorldHint": False,
        },
    }


_TOOLS_JSON = {tool.name: _tool_json(tool) for tool in _TOOLS}


def offered(caller: Caller) -> list[dict[str, Any]]:
    """Return the MCP definitions of the tools that the caller may use."""
    return [_TOOLS_JSON[tool.name] for tool in _TOOLS if not (caller.read_only and tool.writes)]


def call_tool(
    caller: Caller, book: str | None, call: ToolCall, vectors: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """Handle tools/call. `book` is the one that the client named (None: the key's own); `vectors` are those of the
    call's search query. Errors become results, so that the model can act on them, except Unauthorized for a revoked
    key."""
    key = current_key(caller)
    try:
        text = _run(caller, key, book, call, vectors)
    except DomainError as error:
        text = json.dumps(memory_tools.failure(error.code, str(error), **error.details), ensure_ascii=False)
    result = json.loads(text)
    return {"content": [{"type": "text", "text": text}], "structuredContent": result, "isError": not result["ok"]}


def _hold(key: ApiKey, book: str) -> Hold:
    """Return which writes of a key wait for a person: the strictest setting of the agents that have this book and that
    the key may use. One query."""
    agents = Agent.objects.filter(book=book, **({"name__in": key.agents} if key.agents else {}))
    settings = {agent_settings(agent).memory_hold for agent in agents}
    return next((hold for hold in _STRICTEST_FIRST if hold in settings), Hold.UNTRUSTED)


def _run(caller: Caller, key: ApiKey, book: str | None, call: ToolCall, vectors: Mapping[str, Sequence[float]]) -> str:
    require_memory(caller)
    writes = memory_tools.TOOLS[call.name].writes
    if key.read_only and writes:
        raise Forbidden("This key may only read.")
    limits = key_limits(key)
    name = limits.book_name(book)
    if writes:
        state = book_state(caller.owner_id, name)
    elif not caller.read_only or name in {DEFAULT_BOOK, *limits.books}:
        state = book_state_to_read(caller.owner_id, name)
    elif existing := existing_book_state(caller.owner_id, name):  # a key that may only read creates no other book
        state = existing
    else:
        raise NotFound("There is no such book.")
    scope = ToolScope(
        book=state,
        search="ranked",
        session_id=None,
        run_id=None,
        actor=caller.actor,
        hold=_hold(key, name) if writes else Hold.UNTRUSTED,
        vectors=vectors,
    )
    return memory_tools.run_calls([call], scope).results[call.id]

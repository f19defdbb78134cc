"""The tools that are offered over MCP: the memory tools of a conversation, called for the key itself. Handlers,
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
from memories.books import book_state, book_state_if_made, book_state_to_read
from memories.caller import DEFAULT_BOOK, Caller
from memories.errors import DomainError, Forbidden, NotFound
from memories.evidence import Hold
from memories.recall.book_views import BookState
from memories.tools import Stage, Tool, ToolCall, ToolScope

_STRICTEST_FIRST = (Hold.STRICT, Hold.UNTRUSTED, Hold.OFF)
_TOOLS = memory_tools.tools_at(Stage.MCP)
NAMES = frozenset(tool.name for tool in _TOOLS)


def _described(tool: Tool) -> dict[str, Any]:
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
            "idempotentHint": True,  # a call that is repeated changes nothing more
            "openWorldHint": False,
        },
    }


_DESCRIBED = {tool.name: _described(tool) for tool in _TOOLS}


def offered(caller: Caller) -> list[dict[str, Any]]:
    """Return the tools of this key as MCP describes tools; a read-only key gets those that read."""
    return [_DESCRIBED[tool.name] for tool in _TOOLS if not (caller.read_only and tool.writes)]


def call_tool(caller: Caller, book: str, call: ToolCall, vectors: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Run one tool; `book` is the one that was asked for ("": the key's own), `vectors` are those of what the call
    searches for. A refusal is a result that the model can act on. Raises Unauthorized for a key that was revoked
    meanwhile."""
    key = current_key(caller)
    try:
        text = _run(caller, key, book, call, vectors)
    except DomainError as error:
        text = json.dumps(memory_tools.failure(error.code, str(error), **error.details), ensure_ascii=False)
    result = json.loads(text)
    return {"content": [{"type": "text", "text": text}], "structuredContent": result, "isError": not result["ok"]}


def _hold(key: ApiKey, book: str) -> Hold:
    """Return which writes of a key wait for a person: the strictest setting of the agents that the key may use and that
    have this book. One query."""
    agents = Agent.objects.filter(book=book, **({"name__in": key.agents} if key.agents else {}))
    chosen = {agent_settings(agent).memory_hold for agent in agents}
    return next((hold for hold in _STRICTEST_FIRST if hold in chosen), Hold.UNTRUSTED)


def _book_there(caller: Caller, name: str) -> BookState:
    """Return a book that a request names whose key may only read: it makes no book by asking for one. Raises
    NotFound."""
    state = book_state_if_made(caller.owner_id, name)
    if state is None:
        raise NotFound("There is no such book.")
    return state


def _run(caller: Caller, key: ApiKey, book: str, call: ToolCall, vectors: Mapping[str, Sequence[float]]) -> str:
    require_memory(caller)
    writes = memory_tools.TOOLS[call.name].writes
    if key.read_only and writes:
        raise Forbidden("This key may only read.")
    limits = key_limits(key)
    name = limits.book_name(book or None)
    if writes:
        state = book_state(caller.owner_id, name)
    elif caller.read_only and name not in {DEFAULT_BOOK, *limits.books}:
        state = _book_there(caller, name)
    else:
        state = book_state_to_read(caller.owner_id, name)
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

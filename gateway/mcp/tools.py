"""What is offered over MCP and what a call does: the memory tools of a conversation, on the key's own behalf.
Synchronous; uses the database. Handlers, scanning and budgets are those of memories.tools."""

import json
from typing import Any

from gateway.agents.rows import KEY_REVOKED
from gateway.keys import valid_keys
from gateway.models import Agent, ApiKey
from memories import tools as memory_tools
from memories.books import book_state
from memories.caller import Caller
from memories.errors import DomainError, Forbidden, NotFound, Unauthorized
from memories.tools import Stage, Tool, ToolCall, ToolScope

DEFAULT_BOOK = "main"
_TOOLS = memory_tools.tools_at(Stage.MCP)
NAMES = frozenset(tool.name for tool in _TOOLS)


def offered(caller: Caller) -> list[dict[str, Any]]:
    """The tools of this key as MCP describes tools; a read-only key gets those that read."""
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


def call_tool(caller: Caller, book: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run one tool; `book` is the one that was asked for ("": the key's own). A refusal is a result that the model can
    act on. Raises Unauthorized for a key that was revoked meanwhile."""
    key = valid_keys().filter(pk=caller.key_id).first() if caller.key_id else None
    if key is None:  # what authentication remembers may be a minute old
        raise Unauthorized(KEY_REVOKED)
    try:
        result = _run(caller, key, book, ToolCall(id=name, name=name, arguments=json.dumps(arguments)))
    except DomainError as error:
        result = memory_tools.failure(error.code, str(error), **error.details)
    return {
        "content": [{"type": "text", "text": json.dumps(result, ensure_ascii=False)}],
        "structuredContent": result,
        "isError": not result["ok"],
    }


def _run(caller: Caller, key: ApiKey, book: str, call: ToolCall) -> dict[str, Any]:
    if not caller.remembers:
        raise Forbidden("This key was used for several end users and is not trusted to name them: no memory for them.")
    if key.read_only and memory_tools.TOOLS[call.name].writes:
        raise Forbidden("This key may only read.")
    scope = ToolScope(
        book=book_state(caller.owner_id, _book_name(key, book)),
        search="ranked",
        session_id=None,
        run_id=None,
        actor=caller.actor,
    )
    result: dict[str, Any] = json.loads(memory_tools.run_calls([call], scope).results[call.id])
    return result


def _book_name(key: ApiKey, asked: str) -> str:
    """The book to work on. A key that is limited to agents sees the books of these agents only."""
    if not key.agents:
        return asked or DEFAULT_BOOK
    books = dict(Agent.objects.filter(name__in=key.agents).values_list("name", "book"))
    own = [books[name] for name in key.agents if name in books]
    if not own or (asked and asked not in own):
        raise NotFound("There is no such book.")
    return asked or own[0]

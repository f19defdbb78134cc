"""Prompts of MCP: what a person may start from their client. Synchronous; uses the database."""

from typing import Any

from gateway.mcp.cursors import require_one_page
from gateway.mcp.messages import INVALID_PARAMS, RpcError
from gateway.mcp.protocol import kept_by_clients
from gateway.mcp.resources import Answer, Params
from gateway.mcp.rights import current_limits, refusals
from memories.caller import Caller
from memories.errors import NotFound
from memories.limits import SHORT_LENGTH
from memories.selectors import book_named
from memories.tools.reading import MORE, newest_memories
from prompts.memory import MemoryLine, review_my_memory

REVIEW = "review_my_memory"
_DESCRIPTION = "Go through what Daybook remembers about you: what is outdated, said twice, contradictory or missing."
_PROMPTS = [
    {
        "name": REVIEW,
        "title": "Review my memory",
        "description": _DESCRIPTION,
        "arguments": [
            {
                "name": "book",
                "title": "Book",
                "description": "The book of memories to review; unless given, the one of this connection.",
                "required": False,
            }
        ],
    }
]


def prompts_listed(caller: Caller, book: str, params: Params) -> dict[str, Any]:
    """Return the prompts. Raises RpcError."""
    require_one_page(params)
    return {"prompts": _PROMPTS, **kept_by_clients()}


def prompt(caller: Caller, book: str, params: Params) -> dict[str, Any]:
    """Return the messages of a prompt; `book` is the one of the connection ("": the key's own). Raises RpcError for a
    name, an argument or a book that is not there for this key."""
    if params.get("name") != REVIEW:
        raise RpcError(INVALID_PARAMS, "There is no such prompt.")
    asked = _book_argument(params.get("arguments"))
    with refusals(INVALID_PARAMS):
        limits = current_limits(caller)
        of_tools = limits.book_name(book or None)
        text = _review_text(caller, limits.book_name(asked) if asked else of_tools, of_tools, must_be=bool(asked))
    return {"description": _DESCRIPTION, "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


METHODS: dict[str, Answer] = {"prompts/list": prompts_listed, "prompts/get": prompt}
"""What answers each method; the second argument is the name of the book that the client asked for."""


def _book_argument(arguments: Any) -> str:
    if arguments is None:
        return ""
    if not isinstance(arguments, dict) or set(arguments) - {"book"}:
        raise RpcError(INVALID_PARAMS, "arguments is an object with at most `book`.")
    asked = arguments.get("book", "")
    if not isinstance(asked, str) or len(asked) > SHORT_LENGTH:
        raise RpcError(INVALID_PARAMS, f"book is a name of at most {SHORT_LENGTH} characters.")
    return asked.strip()


def _review_text(caller: Caller, name: str, of_tools: str, *, must_be: bool) -> str:
    book = book_named(caller.owner_id, name)
    if book is None and must_be:
        raise NotFound("There is no such book.")
    newest, more = newest_memories(book) if book else ([], False)
    lines = [MemoryLine(number=row.number, category=row.category, content=row.content) for row in reversed(newest)]
    return review_my_memory(lines, book=name, tools_book=of_tools, note=MORE if more else "")

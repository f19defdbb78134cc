"""MCP prompts, which a person starts from their client. Synchronous; uses the database."""

from typing import Any

from gateway.mcp.protocol import INVALID_PARAMS, RpcError
from gateway.mcp.rights import current_limits, rpc_errors
from memories.caller import Caller
from memories.limits import SHORT_LENGTH
from memories.selectors import book_get, book_named
from memories.tools.reading import MORE, newest_memories
from prompts.memory import MemoryLine, review_my_memory

REVIEW = "review_my_memory"
_DESCRIPTION = "Go through what Daybook remembers about you: what is outdated, said twice, contradictory or missing."
PROMPTS = [
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


def prompt(caller: Caller, book: str | None, params: dict[str, Any]) -> dict[str, Any]:
    """Handle prompts/get. `book` is that of the connection (None: the key's own). Raises RpcError for an unknown name,
    an invalid argument, or a book that does not exist for this key."""
    if params.get("name") != REVIEW:
        raise RpcError(INVALID_PARAMS, "There is no such prompt.")
    requested = _book_argument(params.get("arguments"))
    with rpc_errors(INVALID_PARAMS):
        limits = current_limits(caller)
        tools_book = limits.book_name(book)
        reviewed = limits.book_name(requested) if requested else tools_book
        text = _review_text(caller, reviewed, tools_book, must_exist=bool(requested))
    return {"description": _DESCRIPTION, "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def _book_argument(arguments: Any) -> str:
    if arguments is None:
        return ""
    if not isinstance(arguments, dict) or set(arguments) - {"book"}:
        raise RpcError(INVALID_PARAMS, "arguments must be an object with no other entry than `book`.")
    book = arguments.get("book", "")
    if not isinstance(book, str) or len(book) > SHORT_LENGTH:
        raise RpcError(INVALID_PARAMS, f"book must be a name of at most {SHORT_LENGTH} characters.")
    return book.strip()


def _review_text(caller: Caller, name: str, tools_book: str, *, must_exist: bool) -> str:
    book = book_get(caller.owner_id, name) if must_exist else book_named(caller.owner_id, name)
    newest, more = newest_memories(book) if book else ([], False)
    lines = [MemoryLine(number=row.number, category=row.category, content=row.content) for row in reversed(newest)]
    return review_my_memory(lines, book=name, tools_book=tools_book, note=MORE if more else "")

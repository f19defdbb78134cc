"""Pagination cursors of MCP lists, with all state that the next page needs. Pure functions."""

from typing import Any

from gateway.mcp.messages import INVALID_PARAMS, RpcError
from memories.limits import SHORT_LENGTH


def cursor_of(section: str, position: str) -> str:
    """Return the cursor for the entries after a position in a section of a list."""
    return f"{section}:{position}"


def position_in(params: dict[str, Any]) -> tuple[str, str] | None:
    """Return the section and position in the cursor of a request, or None without a cursor. Raises RpcError."""
    cursor = params.get("cursor")
    if cursor is None:
        return None
    if not isinstance(cursor, str) or len(cursor) > SHORT_LENGTH:
        raise wrong_cursor()
    section, colon, position = cursor.partition(":")
    if not colon or not position.isprintable():
        raise wrong_cursor()
    return section, position


def require_no_cursor(params: dict[str, Any]) -> None:
    """Raise RpcError if a request for a list with a single page has a cursor."""
    if params.get("cursor") is not None:
        raise wrong_cursor()


def wrong_cursor() -> RpcError:
    return RpcError(INVALID_PARAMS, "cursor must be the nextCursor of the previous page, or left out.")

"""Cursors of MCP's lists. They are opaque to clients and hold all that the next page needs. Pure functions."""

import base64
import binascii
from typing import Any

from gateway.mcp.messages import INVALID_PARAMS, RpcError
from memories.limits import SHORT_LENGTH


def cursor_of(part: str, place: str) -> str:
    """Return the cursor for the entries after `place` in a part of a list."""
    return base64.urlsafe_b64encode(f"{part}:{place}".encode()).decode().rstrip("=")


def place_of(params: dict[str, Any]) -> tuple[str, str] | None:
    """Return the part and the place that the cursor of a request names, or None without one. Raises RpcError."""
    cursor = params.get("cursor")
    if cursor is None:
        return None
    if not isinstance(cursor, str) or len(cursor) > SHORT_LENGTH:
        raise wrong_cursor()
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError):
        raise wrong_cursor() from None
    part, colon, place = text.partition(":")
    if not colon or not place.isprintable():
        raise wrong_cursor()
    return part, place


def require_one_page(params: dict[str, Any]) -> None:
    """Raises RpcError for any cursor: a list with one page gives none."""
    if params.get("cursor") is not None:
        raise wrong_cursor()


def wrong_cursor() -> RpcError:
    """Return the refusal of a cursor that is not one of ours."""
    return RpcError(INVALID_PARAMS, "cursor is the nextCursor of the page before, or left out.")

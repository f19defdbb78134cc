"""Pagination of the APIs: lists are newest first unless stated otherwise, with `limit` and `after`."""

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import QuerySet

from memories.errors import InvalidRequest
from memories.ids import parse_uuid
from memories.limits import MAX_NUMBER

DEFAULT_LIMIT = 50
T = TypeVar("T")


def list_json(
    rows: "QuerySet[Any]",
    *,
    limit: int,
    after: str | None,
    show: Callable[[Any], dict[str, Any]],
    key: str = "id",
    parse: Callable[[str], Any] = parse_uuid,
) -> dict[str, Any]:
    """Return one page of at most `limit` rows, the highest `key` first. `after` is the id of the last entry of the
    previous page, from which `parse` reads its key. Raises InvalidRequest."""
    if (cursor := parse_cursor(after, parse)) is not None:
        rows = rows.filter(**{f"{key}__lt": cursor})
    found = list(rows.order_by(f"-{key}")[: limit + 1])
    return page_json([show(row) for row in found[:limit]], has_more=len(found) > limit)


def parse_cursor(after: str | None, parse: Callable[[str], T | None]) -> T | None:
    """Return the parsed key to continue after, or None for the beginning of the list. Raises InvalidRequest."""
    cursor = parse(after) if after else None
    if after and cursor is None:
        raise InvalidRequest("after is the id of an entry of this list.", param="after")
    return cursor


def fitting(sizes: Iterable[int]) -> int:
    """Return how many entries of these sizes, in characters, a page may have: at least one, up to a body's limit."""
    return max(1, sum(total <= settings.DAYBOOK_MAX_BODY for total in accumulate(sizes)))


def page_json(data: list[dict[str, Any]], *, has_more: bool = False) -> dict[str, Any]:
    """Return the JSON envelope of a list."""
    return {
        "object": "list",
        "data": data,
        "has_more": has_more,
        "first_id": data[0].get("id") if data else None,
        "last_id": data[-1].get("id") if data else None,
    }


def parse_number(value: str) -> int | None:
    """Return a numeric id as a number, or None if the text is not one."""
    if not (value.isascii() and value.isdecimal()) or len(value) > len(str(MAX_NUMBER)):
        return None
    found = int(value)
    return found if found <= MAX_NUMBER else None

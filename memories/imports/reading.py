"""What readers of JSON share: a file as its items, one after the other, each with its place; and the values of foreign
JSON, read so that nothing in them is relied on: what has another type than it should have counts as missing."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memories.errors import InvalidRequest
from memories.imports.files import SourceFile
from memories.imports.found import Found
from memories.imports.json_members import Member, Members

_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
_LATEST_SECONDS = 10_000_000_000
_SHORT = 10_000  # characters of small items, which are read together in one slice


@dataclass(frozen=True, slots=True)
class Item:
    """One value of a file. `key` names it in the outermost object, "" in an outermost list; `number` counts from 1."""

    key: str
    number: int
    place: str
    value: Any


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A file of JSON, looked through but not read yet."""

    source: SourceFile
    parts: Members

    def place(self, words: str) -> str:
        return self.source.place(words)

    def item(self, number: int, member: Member) -> Item:
        """Return a member as an item. Raises InvalidRequest."""
        place = self.place(f"{member.key or 'entry'} {number}" if member.key else f"entry {number}")
        return Item(member.key, number, place, self.parts.value(member, place))


def each_item(file: JsonFile, found: Found) -> Iterator[Item | None]:
    """Return the items of a file, and None where a slice may end. One that is not valid JSON is refused and left
    out."""
    read = 0
    counts: dict[str, int] = {}
    for member in file.parts.members:
        number = counts[member.key] = counts.get(member.key, 0) + 1
        try:
            item = file.item(number, member)
        except InvalidRequest as error:
            found.refuse(file.place(f"{member.key or 'entry'} {number}"), error)
        else:
            yield item
        read += member.end - member.start + 100
        if read > _SHORT * 20:
            yield None
            read = 0


def text_of(value: Any) -> str:
    """Return a value if it is text, else an empty one."""
    return value if isinstance(value, str) else ""


def object_of(value: Any) -> dict[str, Any]:
    """Return a value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; none of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts_of(value: Any) -> list[str]:
    """Return the texts of a list; none of anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def line_to(at: Any, nodes: dict[str, Any], parent: str) -> list[dict[str, Any]]:
    """Return the nodes of a tree from its root to the one with the id `at`; `parent` is the key of a parent's id."""
    found: dict[str, dict[str, Any]] = {}
    while isinstance(at, str) and at in nodes and at not in found:
        found[at] = object_of(nodes[at])
        at = found[at].get(parent)
    return list(found.values())[::-1]


def moment(value: Any) -> datetime | None:
    """Return a time from ISO 8601 or from seconds, milliseconds, microseconds or nanoseconds since 1970; None for what
    is not a time, and for times before 1990 or in the future. A time without a zone is taken for UTC."""
    found = _from_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else iso_moment(value)
    if found is None or not _EARLIEST <= found <= timezone.now() + timedelta(days=1):
        return None
    return min(found, timezone.now())


def _from_number(value: float) -> datetime | None:
    if not math.isfinite(value) or value < 0 or value > _LATEST_SECONDS * 10**9:
        return None
    seconds = float(value)
    while seconds > _LATEST_SECONDS:
        seconds /= 1_000
    return datetime.fromtimestamp(seconds, UTC)


def iso_moment(value: Any) -> datetime | None:
    """Return a time of ISO 8601, also one to come; None for anything else."""
    try:
        found = parse_datetime(value) if isinstance(value, str) else None
        if found is None:
            return None
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None

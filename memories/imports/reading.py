"""Helpers of the JSON readers: reading a file item by item, and reading untrusted values. A value of an unexpected type
counts as missing."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memories.database.batches import Slices
from memories.errors import InvalidRequest
from memories.imports.contents import ImportContents
from memories.imports.files import SourceFile
from memories.imports.json_members import Member
from memories.json_input import read_json
from memories.limits import IMPORT_ITEM_LENGTH

_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
_LATEST_SECONDS = 10_000_000_000
_SLICE_CHARACTERS = 200_000  # characters of small items that one slice reads


@dataclass(frozen=True, slots=True)
class Item:
    """A value of a file. `key` is its key in the outermost object, "" in an outermost list and for the whole object."""

    key: str
    place: str
    value: Any


@dataclass(frozen=True, slots=True)
class JsonFile(SourceFile):
    """A JSON file whose members are located but not parsed yet."""

    members: list[Member]

    def item(self, number: int, member: Member) -> Item:
        """Parse a member. Raises InvalidRequest."""
        place = self.place(f"{member.key or 'entry'} {number}")
        if member.end - member.start > IMPORT_ITEM_LENGTH:
            raise InvalidRequest(f"{place} has more than {IMPORT_ITEM_LENGTH} characters.")
        value = read_json(self.text[member.start : member.end], what=place, repair=True)
        return Item(member.key, place, value)


def read_items(
    file: JsonFile, contents: ImportContents, add: Callable[[Item, ImportContents], None], apart: Collection[str]
) -> Slices[None]:
    """Call `add` with each item of a file, in slices. Invalid items are recorded as refused. Of a file that is one
    object, the members with the keys `apart` are items by themselves; the object of the others comes last. Raises
    TooLarge."""
    read = 0
    counts: dict[str, int] = {}
    whole: dict[str, Any] = {}
    lists: dict[str, list[Any]] = {}  # apart from `whole`, since a key can be repeated with another value
    for member in file.members:
        number = counts[member.key] = counts.get(member.key, 0) + 1
        try:
            item = file.item(number, member)
        except InvalidRequest as error:
            contents.refuse(file.place(f"{member.key or 'entry'} {number}"), error)
        else:
            if not member.key or member.key in apart:
                add(item, contents)
            elif member.listed:
                lists.setdefault(member.key, []).append(item.value)
            else:
                whole[member.key] = item.value
        read += member.end - member.start + 100
        if read > _SLICE_CHARACTERS:
            yield
            read = 0
    if whole or lists:
        add(Item("", file.place("entry 1"), whole | lists), contents)


def text_of(value: Any) -> str:
    """Return the value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def object_of(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; an empty list if the value is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def path_to(id: Any, nodes: dict[str, Any], parent: str) -> list[dict[str, Any]]:
    """Return the nodes of a tree from the root to the node `id`; `parent` is the key that holds a parent's id."""
    path: dict[str, dict[str, Any]] = {}
    while isinstance(id, str) and id in nodes and id not in path:
        path[id] = object_of(nodes[id])
        id = path[id].get(parent)
    return list(path.values())[::-1]


def parse_past_time(value: Any) -> datetime | None:
    """Parse an ISO 8601 time, or seconds, milliseconds, microseconds or nanoseconds since 1970. Return None for
    anything else, and for times before 1990 or in the future. Times without a zone are UTC."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    time = _from_number(value) if is_number else parse_iso_time(value)
    if time is None or not _EARLIEST <= time <= timezone.now() + timedelta(days=1):
        return None
    return min(time, timezone.now())


def _from_number(value: float) -> datetime | None:
    if not math.isfinite(value) or value < 0 or value > _LATEST_SECONDS * 10**9:
        return None
    seconds = float(value)
    while seconds > _LATEST_SECONDS:
        seconds /= 1_000
    return datetime.fromtimestamp(seconds, UTC)


def parse_iso_time(value: Any) -> datetime | None:
    """Parse an ISO 8601 time, which may be in the future. Return None for anything else."""
    try:
        time = parse_datetime(value) if isinstance(value, str) else None
        if time is None:
            return None
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None

"""What readers of JSON share: a file as its items, one after the other, each with its place."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memories.errors import InvalidRequest
from memories.imports.files import SourceFile
from memories.imports.found import Found
from memories.imports.json_members import Member, Members

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
        """Return the name of a place in the file."""
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

"""A JSON text read member by member: an export has hundreds of megabytes at times, and no single step may hold the
interpreter for long. Members are the elements of an outermost list; of an outermost object its values, and of those
which are lists each element."""

import re
import time
from dataclasses import dataclass
from typing import Any

from memories.database.batches import SLICE_SECONDS, Slices
from memories.errors import InvalidRequest
from memories.json_input import read_json
from memories.limits import IMPORT_LINES

# A string that is never closed matches to the end: trying again behind each of its quotes would take for ever.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_COLON = re.compile(r"\s*:")
_LOOK_AT_CLOCK = 2_000
MOST_MEMBERS = 2 * IMPORT_LINES


@dataclass(frozen=True, slots=True)
class Member:
    """A stretch of the text that is one value. `key` names it, or the list that has it, in the outermost object."""

    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Members:
    """The members of a text, in its order."""

    text: str
    members: list[Member]

    def value(self, member: Member, what: str) -> Any:
        """Return the value of a member. `what` names it in errors. Raises InvalidRequest."""
        return read_json(self.text[member.start : member.end], what=what, repair=True)


def members_of(text: str, what: str) -> Slices[Members]:
    """Return the members of a JSON text in slices; `what` names it in errors. Raises InvalidRequest for a text that is
    cut off, goes on after its end, or has too many members."""
    scan = _Scan(what)
    began = time.monotonic()
    for count, match in enumerate(_TOKEN.finditer(text)):
        scan.take(text, match)
        if count % _LOOK_AT_CLOCK == 0 and time.monotonic() - began > SLICE_SECONDS:
            yield
            began = time.monotonic()
    if scan.depth or not scan.over:
        raise scan.broken("it is cut off")
    return Members(text, scan.members)


class _Scan:
    """How far a text has been looked through. Inside a member only brackets count; whether a member is valid shows when
    it is read."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.depth = 0
        self.over = False
        self.is_object = False
        self.members: list[Member] = []
        self._key = ""
        self._list_inside = False  # the value of the outermost object's key is a list
        self._start = 0

    def broken(self, why: str) -> InvalidRequest:
        return InvalidRequest(f"{self.what} is not valid JSON: {why}. Nothing was imported.")

    def take(self, text: str, match: "re.Match[str]") -> None:
        """Note the next string or bracket."""
        mark = text[match.start()]
        if self.over:
            raise self.broken("it goes on after its end")
        if mark == '"':
            if self.depth == self._level:
                self._take_string(text, match)
        elif mark in "[{":
            self._open(mark, match.start())
        else:
            self._close(match.end())

    @property
    def _level(self) -> int:
        """How many brackets are open around a member."""
        return 2 if self._list_inside else 1

    def _take_string(self, text: str, match: "re.Match[str]") -> None:
        if self.is_object and not self._list_inside and _COLON.match(text, match.end()):
            self._key = text[match.start() + 1 : match.end() - 1]
            return
        self._add(match.start(), match.end())

    def _open(self, mark: str, at: int) -> None:
        if self.depth == 0:
            self.is_object = mark == "{"
        elif self.depth == 1 and self.is_object and mark == "[":
            self._list_inside = True
        elif self.depth == self._level:
            self._start = at
        self.depth += 1

    def _close(self, end: int) -> None:
        self.depth -= 1
        if self.depth < 0:
            raise self.broken("a bracket is closed that was not opened")
        if self.depth == 0:
            self.over = True
        elif self.depth == 1 and self._list_inside:
            self._list_inside = False
        elif self.depth == self._level:
            self._add(self._start, end)

    def _add(self, start: int, end: int) -> None:
        if len(self.members) >= MOST_MEMBERS:
            raise InvalidRequest(f"{self.what} has more than {MOST_MEMBERS} entries. Split it. Nothing was imported.")
        self.members.append(Member(self._key, start, end))

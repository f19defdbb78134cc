"""Split a JSON text into members that are parsed one at a time: exports can have hundreds of megabytes, and no single
step may hold the interpreter for long. Members are the elements of an outermost list, or the values of an outermost
object; a value that is a list counts as its elements."""

import re
import time
from dataclasses import dataclass

from memories.database.batches import SLICE_SECONDS, Slices
from memories.errors import InvalidRequest
from memories.limits import IMPORT_LINES, SHORT_LENGTH

# A part of a string. Bounded, since a match holds the interpreter, and without backtracking, which takes 100 bytes for
# each escape.
_PART = r'[^"\\]{0,1000000}+(?:\\.[^"\\]{0,1000}+){0,10000}+'
_TOKEN = re.compile(rf'"{_PART}|[\[\]{{}}]', re.DOTALL)
_REST = re.compile(_PART, re.DOTALL)
_COLON = re.compile(r"\s*:")
_CLOCK_INTERVAL, _CLOCK_CHARS = 2_000, 200_000  # tokens, or characters, between two looks at the clock
MAX_MEMBERS = 2 * IMPORT_LINES


@dataclass(frozen=True, slots=True)
class Member:
    """The span of one value in the text. `key` is its key, or that of its list (`listed`), in the outermost object."""

    key: str
    start: int
    end: int
    listed: bool


def members_of(text: str, what: str) -> Slices[list[Member]]:
    """Locate the members of a JSON text, in slices; `what` names the text in errors. Raises InvalidRequest if it is
    truncated, continues after its end, or has too many members."""
    scan = _MemberScan(what)
    began = time.monotonic()
    count = end = looked = 0
    while token := _TOKEN.search(text, end):
        start, end = token.span()
        count += 1
        if text[start] == '"':
            end = end + 1 if text.startswith('"', end) else (yield from _string_end(text, end, scan))
        scan.feed(text, start, end)
        if count % _CLOCK_INTERVAL == 0 or end - looked > _CLOCK_CHARS:
            looked = end
            if time.monotonic() - began > SLICE_SECONDS:
                yield
                began = time.monotonic()
    if scan.depth or not scan.finished:
        raise scan.error("it is cut off")
    return scan.members


def _string_end(text: str, at: int, scan: "_MemberScan") -> Slices[int]:
    """Return the end of a string that is longer than a part, in slices."""
    began = time.monotonic()
    while not text.startswith('"', at):
        part = _REST.match(text, at)
        if part is None or part.end() == at:
            raise scan.error("it is cut off")
        at = part.end()
        if time.monotonic() - began > SLICE_SECONDS:
            yield
            began = time.monotonic()
    return at + 1


class _MemberScan:
    """The state of scanning a text. Inside a member only brackets are tracked; its validity shows when it is parsed."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.depth = 0
        self.finished = False
        self.is_object = False
        self.members: list[Member] = []
        self._key = ""
        self._list_inside = False  # the value of the current key is a list
        self._start = 0

    def error(self, why: str) -> InvalidRequest:
        return InvalidRequest(f"{self.what} is not valid JSON: {why}. Nothing was imported.")

    def feed(self, text: str, start: int, end: int) -> None:
        """Process the next string or bracket."""
        character = text[start]
        if self.finished:
            raise self.error("it continues after its end")
        if character == '"':
            if self.depth == self._member_depth:
                self._feed_string(text, start, end)
        elif character in "[{":
            self._open(character, start)
        else:
            self._close(end)

    @property
    def _member_depth(self) -> int:
        """The number of brackets open around a member."""
        return 2 if self._list_inside else 1

    def _feed_string(self, text: str, start: int, end: int) -> None:
        if self.is_object and not self._list_inside and _COLON.match(text, end):
            self._key = text[start + 1 : end - 1][:SHORT_LENGTH]  # of ours, none is longer
            return
        self._add(start, end)

    def _open(self, character: str, at: int) -> None:
        if self.depth == 0:
            self.is_object = character == "{"
        elif self.depth == 1 and self.is_object and character == "[":
            self._list_inside = True
        elif self.depth == self._member_depth:
            self._start = at
        self.depth += 1

    def _close(self, end: int) -> None:
        self.depth -= 1
        if self.depth < 0:
            raise self.error("a closing bracket has no opening one")
        if self.depth == 0:
            self.finished = True
        elif self.depth == 1 and self._list_inside:
            self._list_inside = False
        elif self.depth == self._member_depth:
            self._add(self._start, end)

    def _add(self, start: int, end: int) -> None:
        if len(self.members) >= MAX_MEMBERS:
            raise InvalidRequest(f"{self.what} has more than {MAX_MEMBERS} entries. Split it. Nothing was imported.")
        self.members.append(Member(self._key, start, end, self._list_inside))

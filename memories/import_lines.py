"""The lines of an import: our own export, or lists from elsewhere, read without a look at any book."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from memories.batches import Slices, finish
from memories.errors import InvalidRequest, TooLarge
from memories.json_input import read_json
from memories.limits import IMPORT_LINE_LENGTH, IMPORT_LINES
from memories.pagination import number as parse_number
from memories.services import MemoryFields

_TEXT_KEYS = ("content", "memory", "text", "fact")
_PARSED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLine:
    """One memory to import."""

    line: int
    number: int | None
    book: str
    fields: MemoryFields


def parse_lines(text: str, *, default_book: str) -> list[ImportLine]:
    """Return the memories of an import: our own export (other lines of it are passed over), or objects that hold their
    text as `content`, `memory`, `text` or `fact`. Raises InvalidRequest with the number of the line, TooLarge."""
    return finish(lines_of(text, default_book))


def lines_of(text: str, default_book: str) -> Slices[list[ImportLine]]:
    """Return what `parse_lines` does, in slices."""
    rows = text.split("\n")
    if len(rows) > IMPORT_LINES + 1:
        raise TooLarge(f"An import has at most {IMPORT_LINES} lines. Split it.", limit=IMPORT_LINES)
    found: list[ImportLine] = []
    for number, raw in enumerate(rows, start=1):
        if raw.strip() and (line := _parse_line(number, raw, default_book)):
            found.append(line)
        if number % _PARSED_AT_ONCE == 0:
            yield
    return found


def _parse_line(number: int, raw: str, default_book: str) -> ImportLine | None:
    if len(raw) > IMPORT_LINE_LENGTH:
        raise InvalidRequest(
            f"Line {number} has more than {IMPORT_LINE_LENGTH} characters. Nothing was imported.", line=number
        )
    try:
        data = read_json(raw, what=f"Line {number}", repair=True)
    except InvalidRequest as error:
        raise InvalidRequest(f"{error} Nothing was imported.", line=number) from None
    if not isinstance(data, dict):
        raise InvalidRequest(f"Line {number} is no JSON object. Nothing was imported.", line=number)
    if data.get("type", "memory") != "memory" or data.get("deleted_at"):
        return None
    return _parse_memory(number, data, default_book)


def _parse_memory(line: int, data: dict[str, Any], default_book: str) -> ImportLine:
    content = next((data[key] for key in _TEXT_KEYS if isinstance(data.get(key), str)), None)
    if content is None:
        raise InvalidRequest(f"Line {line} has no text as `content`. Nothing was imported.", line=line)
    keywords = data.get("keywords") or ()
    if not isinstance(keywords, list | tuple):
        raise InvalidRequest(f"Line {line}: keywords is a list. Nothing was imported.", line=line)
    return ImportLine(
        line=line,
        number=parse_number(str(data.get("id", ""))),
        book=str(data.get("book") or default_book),
        fields=MemoryFields(
            content=content,
            target=str(data.get("target") or "user"),
            category=str(data.get("category") or "general"),
            keywords=[str(keyword) for keyword in keywords],
            pinned=bool(data.get("pinned", False)),
            expires_at=_time(line, data.get("expires_at")),
        ),
    )


def _time(line: int, value: Any) -> datetime | None:
    if not value:
        return None
    try:
        parsed = parse_datetime(str(value))
    except ValueError:  # it looks like a time, of a day that is in no calendar
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise InvalidRequest(
            f"Line {line}: expires_at is a time such as 2027-01-31T00:00:00Z. Nothing was imported.", line=line
        )
    return parsed

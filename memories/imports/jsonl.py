"""JSON Lines: our own export, or one object per line from another system, whose text is `content`, `memory`, `text` or
`fact`. Lines of an export that are not memories are skipped. An invalid line stops the import."""

import re
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from memories.database.batches import Slices
from memories.errors import InvalidRequest, TooLarge
from memories.evidence.conversation import MAX_QUOTE_CHARS
from memories.imports.contents import Entry, ImportContents
from memories.imports.files import SourceFile
from memories.imports.reading import parse_past_time, text_of
from memories.json_input import read_json
from memories.limits import IMPORT_LINE_LENGTH, IMPORT_LINES, IMPORT_MESSAGES
from memories.models import Evidence, EvidenceKind
from memories.pagination import parse_number
from memories.services import MemoryFields
from memories.storable import storable_text

TEXT_KEYS = ("content", "memory", "text", "fact")
_OTHER_TYPES = frozenset({
    "artifact", "extraction", "header", "message", "reasoning", "review", "revision", "session",
})  # fmt: skip
"""The types of lines of an export that are no memories."""
_MAX_LINES = IMPORT_LINES + IMPORT_MESSAGES  # an export has revisions and messages besides
_SLICE_LINES = 1_000
_LEADING_TYPE = re.compile(r'\s*\{\s*"type"\s*:\s*"([^"\\]*)"')
_LEADING_CHARS = 200


def is_jsonl(text: str) -> bool:
    """Return True if the first line is a complete object with a `type`, as in our export, or with a text."""
    first = text.lstrip().split("\n", 1)[0].strip()
    if not (first.startswith("{") and first.endswith("}")) or len(first) > IMPORT_LINE_LENGTH:
        return False
    try:
        data = read_json(first, repair=True)
    except InvalidRequest:
        return False
    return isinstance(data, dict) and any(isinstance(data.get(key), str) for key in (*TEXT_KEYS, "type"))


def read_jsonl(file: SourceFile, contents: ImportContents) -> Slices[None]:
    """Add the memories of a file. Raises InvalidRequest with the number of the line, TooLarge."""
    if file.text.count("\n") > _MAX_LINES:
        raise TooLarge(f"A file has at most {_MAX_LINES} lines. Leave out all but the memories.", limit=_MAX_LINES)
    for number, raw in enumerate(file.text.split("\n"), start=1):
        if raw.strip() and (entry := _parse_line(number, raw, contents.book)):
            contents.add_entry(entry)
        if number % _SLICE_LINES == 0:
            yield


def _parse_line(number: int, raw: str, default_book: str) -> Entry | None:
    if len(raw) > IMPORT_LINE_LENGTH:
        if _is_long_other_line(raw):
            return None
        raise _refusal(number, f"Line {number} has more than {IMPORT_LINE_LENGTH} characters.")
    try:
        data = read_json(raw, what=f"Line {number}", repair=True)
    except InvalidRequest as error:
        raise _refusal(number, str(error)) from None
    if not isinstance(data, dict):
        raise _refusal(number, f"Line {number} is not a JSON object.")
    if text_of(data.get("type")) in _OTHER_TYPES or data.get("deleted_at"):
        return None
    return _parse_memory(number, data, default_book)


def _is_long_other_line(raw: str) -> bool:
    """Return True for a complete line of an export that begins with one of the other types. A message may be as
    long as a request, and parsing it would block others, so only the beginning and the end of the line are examined."""
    leading = _LEADING_TYPE.match(raw[:_LEADING_CHARS])
    return leading is not None and leading[1] in _OTHER_TYPES and raw[-_LEADING_CHARS:].rstrip().endswith("}")


def _parse_memory(line: int, data: dict[str, Any], default_book: str) -> Entry | None:
    content = next((data[key] for key in TEXT_KEYS if isinstance(data.get(key), str)), None)
    if content is None and "type" in data:
        return None  # of another system
    if content is None:
        raise _refusal(line, f"Line {line} has no text as “content”.")
    keywords = data.get("keywords") or ()
    if not isinstance(keywords, list | tuple):
        raise _refusal(line, f"Line {line}: keywords is a list.")
    made_at = parse_past_time(data.get("created_at"))
    return Entry(
        line=line,
        place=f"Line {line}",
        number=parse_number(str(data.get("id", ""))) if made_at else None,
        made_at=made_at,
        book=str(data.get("book") or default_book),
        fields=MemoryFields(
            content=content,
            target=str(data.get("target") or "user"),
            category=str(data.get("category") or "general"),
            keywords=[str(keyword) for keyword in keywords],
            metadata=data.get("metadata") or {},
            pinned=bool(data.get("pinned", False)),
            expires_at=_time(line, data.get("expires_at")),
            evidence=_evidence(data.get("evidence")),
        ),
    )


def _evidence(value: Any) -> Evidence | None:
    """Return the evidence that our own export gives for a memory, without session and turn, whose ids differ here.
    Anything else is ignored: the memory can be imported without it."""
    if not isinstance(value, dict) or value.get("kind") not in EvidenceKind.values:
        return None
    quote = value.get("quote")
    return Evidence(
        kind=EvidenceKind(value["kind"]), quote=storable_text(quote)[:MAX_QUOTE_CHARS] if isinstance(quote, str) else ""
    )


def _time(line: int, value: Any) -> datetime | None:
    if not value:
        return None
    try:
        parsed = parse_datetime(str(value))
    except ValueError:  # well-formed, but not a date of the calendar
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise _refusal(line, f"Line {line}: expires_at is a time such as 2027-01-31T00:00:00Z.")
    return parsed


def _refusal(line: int, why: str) -> InvalidRequest:
    return InvalidRequest(f"{why} Nothing was imported.", line=line)

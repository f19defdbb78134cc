"""Export and import: everything about an owner as JSON Lines, and memories brought from elsewhere.
The floors above register what they have to add to an export when Django starts; the words of a line's `type` are
public. An import is one change set per book; every line is scanned, and a preview writes nothing."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.dateparse import parse_datetime

from memories.caller import UNLIMITED, KeyLimits
from memories.entry_rules import content_key
from memories.errors import BlockedByScan, DomainError, InvalidRequest, OverBudget, TooLarge
from memories.models import ChangeSet, Memory, Revision, WriteOrigin
from memories.selectors import memory_json, revision_json
from memories.services import BookWriter, MemoryFields, Source, book_get_or_create, book_writing
from memories.storable import storable

FORMAT = "daybook-export"
MAX_LINES = 50_000
_TEXT_KEYS = ("content", "memory", "text", "fact")

Exporter = Callable[[UUID], Iterator[dict[str, Any]]]
_exporters: dict[str, Exporter] = {}


def register_exporter(name: str, exporter: Exporter) -> None:
    """Add what a floor above knows of an owner to every export; called from an AppConfig's ready()."""
    _exporters[name] = exporter


def export_lines(owner_id: UUID, *, book: str | None = None) -> Iterator[str]:
    """The export, a line at a time: a header, memories and their revisions, and, unless it is of one book only, what
    the floors above add."""
    yield _line({"type": "header", "format": FORMAT, "version": 1, "book": book})
    memories = Memory.objects.filter(owner_id=owner_id).select_related("book").order_by("number")
    revisions = Revision.objects.filter(owner_id=owner_id).select_related("change_set", "memory").order_by("id")
    if book is not None:
        memories, revisions = memories.filter(book__name=book), revisions.filter(memory__book__name=book)
    for memory in memories.iterator(chunk_size=500):
        yield _line({"type": "memory", **memory_json(memory), "deleted_at": memory.deleted_at})
    for revision in revisions.iterator(chunk_size=500):
        yield _line({"type": "revision", "memory_id": str(revision.memory.number), **revision_json(revision)})
    if book is None:
        for exporter in _exporters.values():
            for row in exporter(owner_id):
                yield _line(row)


@dataclass(slots=True)
class ImportReport:
    """What an import did or would do; `problems` names the lines that were left out, without their words."""

    new: int = 0
    known: int = 0
    changed: int = 0
    blocked: int = 0
    refused: int = 0
    written: bool = False
    change_sets: list[str] = field(default_factory=list)
    problems: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """As the API shows it."""
        return {
            "object": "import",
            "lines": self.new + self.known + self.changed + self.blocked + self.refused,
            "new": self.new,
            "known": self.known,
            "changed": self.changed,
            "blocked": self.blocked,
            "refused": self.refused,
            "written": self.written,
            "change_sets": self.change_sets,
            "problems": self.problems,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLine:
    """One memory to import."""

    line: int
    number: int | None
    book: str
    fields: MemoryFields


class _Preview(Exception):
    """Rolls an import back: it was only to be looked at."""


def import_text(
    owner_id: UUID, text: str, *, actor: str, book: str = "main", preview: bool, limits: KeyLimits = UNLIMITED
) -> ImportReport:
    """Import JSON Lines. A line that is no JSON stops everything; one that the scan or a budget refuses is left out and
    listed. With `preview` the same is found out, and nothing is written. Raises InvalidRequest, TooLarge,
    and NotFound where a line names a book that the key may not use."""
    lines = parse_lines(text, default_book=book)
    limits.require_books([line.book for line in lines])
    report = ImportReport()
    source = Source(actor=actor, origin=WriteOrigin.IMPORT, kind=ChangeSet.Kind.IMPORT)
    try:
        with transaction.atomic():
            for name in sorted({line.book for line in lines}):
                with book_writing(book_get_or_create(owner_id, name), source) as writer:
                    for line in lines:
                        if line.book == name:
                            _import_line(writer, line, report)
                    if writer.change_set is not None:
                        report.change_sets.append(str(writer.change_set.pk))
            if preview:
                raise _Preview
    except _Preview:
        report.change_sets = []
        return report
    report.written = True
    return report


def parse_lines(text: str, *, default_book: str) -> list[ImportLine]:
    """The memories of an import: our own export (other lines of it are passed over), or objects that hold their text
    as `content`, `memory`, `text` or `fact`. Raises InvalidRequest with the number of the line, TooLarge."""
    found = []
    for number, raw in enumerate(text.splitlines(), start=1):
        if not raw.strip():
            continue
        if number > MAX_LINES:
            raise TooLarge(f"An import has at most {MAX_LINES} lines. Split it.", limit=MAX_LINES)
        try:
            data = storable(json.loads(raw))
        except ValueError:
            raise InvalidRequest(f"Line {number} is not valid JSON. Nothing was imported.", line=number) from None
        if not isinstance(data, dict):
            raise InvalidRequest(f"Line {number} is no JSON object. Nothing was imported.", line=number)
        if data.get("type", "memory") == "memory" and not data.get("deleted_at"):
            found.append(_parse_memory(number, data, default_book))
    return found


def _parse_memory(line: int, data: dict[str, Any], default_book: str) -> ImportLine:
    content = next((data[key] for key in _TEXT_KEYS if isinstance(data.get(key), str)), None)
    if content is None:
        raise InvalidRequest(f"Line {line} has no text as `content`. Nothing was imported.", line=line)
    keywords = data.get("keywords") or ()
    if not isinstance(keywords, list | tuple):
        raise InvalidRequest(f"Line {line}: keywords is a list. Nothing was imported.", line=line)
    given = str(data.get("id", ""))
    return ImportLine(
        line=line,
        number=int(given) if given.isdecimal() and len(given) < 18 else None,
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


def _import_line(writer: BookWriter, line: ImportLine, report: ImportReport) -> None:
    try:
        with transaction.atomic():
            same = _live(writer).filter(number=line.number).first() if line.number else None
            if same is not None and content_key(line.fields.content or "") != same.content_key:
                changed = writer.update(same.number, line.fields).changed
                report.changed += changed
                report.known += not changed
            else:
                written = writer.add(line.fields)
                report.new += written.changed
                report.known += not written.changed
    except BlockedByScan as error:
        report.blocked += 1
        report.problems.append({"line": line.line, "code": error.code, **error.details})
    except (OverBudget, InvalidRequest, TooLarge) as error:
        report.refused += 1
        report.problems.append({"line": line.line, "code": error.code, "message": _message(error)})


def _live(writer: BookWriter) -> Any:
    return Memory.objects.filter(owner_id=writer.book.owner_id, book=writer.book, deleted_at__isnull=True)


def _message(error: DomainError) -> str:
    return str(error)


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


def _line(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, default=_plain) + "\n"


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)

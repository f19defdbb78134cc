"""Import: memories brought as JSON Lines, our own export or lists from elsewhere. An import is one change set per book;
every line is scanned, and a preview only reads. It works in slices: lines are read, checked and scanned without a lock,
and written in short transactions, so that what was written when something fails or a client goes away stays, can be
undone, and is told."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any
from uuid import UUID

from django.db import Error as DatabaseError
from django.utils import timezone

from memories.batches import SLICE_SECONDS, BatchSize, Slices, finish
from memories.caller import UNLIMITED, KeyLimits
from memories.entry_rules import check_scan
from memories.entry_rules import content_key as key_of
from memories.errors import BlockedByScan, DomainError, InvalidRequest, OverBudget, Overloaded, TooLarge
from memories.import_lines import ImportLine, lines_of
from memories.models import Book, ChangeSet, Memory, WriteOrigin
from memories.services import (
    BookWriter,
    Budgets,
    BulkWriter,
    CheckedMemory,
    MemoryFields,
    Source,
    book_changed,
    book_get_or_create,
    book_writing,
    check_new_books,
    fields_cleaned,
    known_keys,
    live_rows,
    refusals_stored,
)

MOST_PROBLEMS = 1_000
"""Problems that a report lists; all are counted."""


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
            "lines": sum(self.counts().values()),
            **self.counts(),
            "written": self.written,
            "change_sets": self.change_sets,
            "problems": self.problems,
        }

    def counts(self) -> dict[str, int]:
        """Return how many lines came to what."""
        return {name: getattr(self, name) for name in ("new", "known", "changed", "blocked", "refused")}

    def add(self, other: "ImportReport") -> None:
        """Take over the counts and problems of a batch."""
        for name, count in other.counts().items():
            setattr(self, name, getattr(self, name) + count)
        self.problems += other.problems[: MOST_PROBLEMS - len(self.problems)]

    def refuse(self, line: "ImportLine", error: DomainError) -> None:
        """Count a line that is left out for its form or because the budget is used up."""
        self.refused += 1
        self._problem({"line": line.line, "code": error.code, "message": str(error)})

    def block(self, line: "ImportLine", error: BlockedByScan) -> None:
        """Count a line that the scan keeps out."""
        self.blocked += 1
        self._problem({"line": line.line, "code": error.code, **error.details})

    def _problem(self, problem: dict[str, Any]) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)


def import_text(owner_id: UUID, text: str, *, actor: str, book: str = "main", preview: bool) -> ImportReport:
    """Import JSON Lines at once, in a command. Raises what `import_slices` raises."""
    return finish(import_slices(owner_id, text, actor=actor, book=book, preview=preview))


def import_slices(
    owner_id: UUID, text: str, *, actor: str, book: str = "main", preview: bool, limits: KeyLimits = UNLIMITED
) -> Slices[ImportReport]:
    """Import JSON Lines in slices. A line that is not JSON stops everything before anything is written; one that the
    scan or a budget refuses is left out and listed. With `preview` the same is found out, and nothing is written.

    Raises InvalidRequest, TooLarge, Conflict (more books than there can be), NotFound where a line names a book that
    the key may not use; Overloaded when the database fails."""
    lines = yield from lines_of(text, book)
    names = sorted({line.book for line in lines})
    limits.require_books(names)
    check_new_books(owner_id, names)
    report = ImportReport()
    source = Source(actor=actor, origin=WriteOrigin.IMPORT, kind=ChangeSet.Kind.IMPORT)
    for name in names:
        of_book = [line for line in lines if line.book == name]
        if preview:
            yield from _preview_book(owner_id, name, of_book, report)
        else:
            yield from _import_book(book_get_or_create(owner_id, name), of_book, source, report)
    report.problems.sort(key=itemgetter("line"))
    report.written = not preview
    return report


def _preview_book(owner_id: UUID, name: str, lines: Sequence[ImportLine], report: ImportReport) -> Slices[None]:
    book = Book.objects.filter(owner_id=owner_id, name=name).first()
    standing = _Standing(Budgets.of(book, name))
    for batch in _batches(lines, BatchSize()):
        for line in (yield from _checked(book, batch, standing, report)):
            _apply(line, standing, report, None)
        yield


def _import_book(book: Book, lines: Sequence[ImportLine], source: Source, report: ImportReport) -> Slices[None]:
    change_set: ChangeSet | None = None
    numbers: list[int] = []
    size = BatchSize()
    try:
        for batch in _batches(lines, size):
            # Scanning is most of the work, and is done without the lock.
            checked = yield from _checked(book, batch, _Standing(Budgets.of(None, book.name)), report)
            began = time.monotonic()
            done = ImportReport()
            with book_writing(book, source, change_set=change_set, silent=True) as writer:
                _write(writer, checked, done)
            size.took(time.monotonic() - began)
            if change_set is None and writer.change_set is not None:
                change_set = writer.change_set
                report.change_sets.append(str(change_set.pk))
            numbers += writer.numbers
            report.add(done)
            yield
    except DatabaseError as error:
        told: dict[str, Any] = {**report.counts(), "change_sets": report.change_sets}
        raise Overloaded(
            f"The database failed at line {batch[0].line}. {report.new + report.changed} memories were imported before "
            "it; undo takes them back, and the same import goes on where it stopped.",
            line=batch[0].line,
            **told,
        ) from error
    finally:
        if numbers:
            book_changed(book, source, numbers)


def _batches(lines: Sequence[ImportLine], size: BatchSize) -> Iterator[Sequence[ImportLine]]:
    start = 0
    while start < len(lines):
        end = start + size.rows
        yield lines[start:end]
        start = end


@dataclass(frozen=True, slots=True)
class _Checked:
    """A line whose fields can be stored."""

    line: ImportLine
    memory: CheckedMemory


@dataclass(slots=True)
class _Standing:
    """What of a book decides over the lines of a batch; a preview keeps it up to date without writing."""

    budgets: Budgets
    rows: dict[int, Memory] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)

    def look(self, book: Book | None, numbers: Sequence[int | None], keys: Sequence[str]) -> None:
        """Read what the lines with these numbers and content keys meet in the book."""
        if book is not None:
            named = [number for number in numbers if number is not None and number not in self.rows]
            self.rows |= live_rows(book, numbers=named) if named else {}
            self.keys |= known_keys(book, keys, timezone.now())

    def changed_by(self, line: ImportLine, key: str) -> Memory | None:
        """Return the memory that a line names and says something else of."""
        same = self.rows.get(line.number) if line.number is not None else None
        return same if same is not None and same.content_key != key else None


def _checked(
    book: Book | None, batch: Sequence[ImportLine], standing: _Standing, report: ImportReport
) -> Slices[list[_Checked]]:
    """Those lines of a batch that may be written; the others are counted in the report."""
    clean: list[tuple[ImportLine, MemoryFields, str]] = []
    for line in batch:
        try:
            fields = fields_cleaned(line.fields)
            clean.append((line, fields, key_of(fields.content or "")))
        except (InvalidRequest, TooLarge) as error:
            report.refuse(line, error)
    standing.look(book, [line.number for line, _, _ in clean], [key for _, _, key in clean])
    found: list[_Checked] = []
    began = time.monotonic()
    for line, fields, key in clean:
        if key in standing.keys and standing.changed_by(line, key) is None:
            report.known += 1
            continue
        try:
            with refusals_stored():
                scan_hash = check_scan(fields.content or "", list(fields.keywords or ()))
            found.append(_Checked(line, CheckedMemory(fields=fields, content_key=key, scan_hash=scan_hash)))
        except BlockedByScan as error:
            report.block(line, error)
        if time.monotonic() - began > SLICE_SECONDS:
            yield
            began = time.monotonic()
    return found


def _write(writer: BookWriter, checked: Sequence[_Checked], report: ImportReport) -> None:
    """Write a batch to the open book, which is looked at again under its lock."""
    standing = _Standing(Budgets.of(writer.book, writer.book.name))
    standing.look(writer.book, [row.line.number for row in checked], [row.memory.content_key for row in checked])
    bulk = BulkWriter(writer)
    for row in checked:
        _apply(row, standing, report, bulk)
    bulk.store()


def _apply(row: _Checked, standing: _Standing, report: ImportReport, bulk: BulkWriter | None) -> None:
    fields, key = row.memory.fields, row.memory.content_key
    target, length = fields.target or "", len(fields.content or "")
    try:
        if (same := standing.changed_by(row.line, key)) is not None:
            standing.budgets.take(target, length, freed=len(same.content), freed_of=same.target)
            standing.keys.discard(same.content_key)
            if bulk is not None:
                bulk.update(same, row.memory)
            else:
                same.content, same.content_key, same.target = fields.content or "", key, target
            report.changed += 1
        elif key in standing.keys:
            report.known += 1
        else:
            standing.budgets.take(target, length)
            if bulk is not None:
                bulk.add(row.memory)
            report.new += 1
    except OverBudget as error:
        report.refuse(row.line, error)
        return
    standing.keys.add(key)

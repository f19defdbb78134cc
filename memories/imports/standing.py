"""What a book decides over the entries of an import: which are known, what they would change, and how full it is. It is
read once, and holds while nobody else writes to the book, which the book's generation tells."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from memories.database.batches import SLICE_SECONDS, Slices, reads
from memories.entry_rules import check_scan
from memories.entry_rules import content_key as key_of
from memories.errors import BlockedByScan, InvalidRequest, OverBudget, TooLarge
from memories.evidence import HoldReason, scan_doubt
from memories.imports.found import Entry
from memories.imports.report import ImportReport
from memories.models import Book, Memory
from memories.selectors import known_keys, live_keys, live_rows
from memories.services import BookWriter, Budgets, MemoryFields, fields_cleaned

_SHOWN = timedelta(milliseconds=1)
_ONE_BATCH = -1  # the generation of a standing that was read under the lock, for one batch only


@dataclass(frozen=True, slots=True)
class Checked:
    """An entry whose fields are cleaned and scanned; with a `doubt` it waits for a person. `key`: of its content."""

    entry: Entry
    fields: MemoryFields
    key: str
    scan_hash: str
    doubt: HoldReason | None = None


@dataclass(slots=True)
class Standing:
    """How a book stands. `rows` are those that entries name by number."""

    budgets: Budgets
    generation: int
    rows: dict[int, Memory] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)

    @classmethod
    @reads
    def load(cls, book: Book | None, name: str) -> "Slices[Standing]":
        """Return the standing of a book, also of one that does not exist yet; the keys are read in pages."""
        if book is None:
            return cls(Budgets.of(None, name), 0)
        # Before all else: what is written while the rest is read raises it.
        generation = Book.objects.values_list("generation", flat=True).get(pk=book.pk)
        standing = cls(Budgets.of(book, name), generation)
        for page in live_keys(book):
            standing.keys |= page
            yield
        return standing

    @classmethod
    def of(cls, book: Book, rows: Sequence[Checked]) -> "Standing":
        """Return what a batch meets in a locked book."""
        keys = known_keys(book, [row.key for row in rows])
        standing = cls(Budgets.of(book, book.name), _ONE_BATCH, keys=keys)
        standing.look(book, [row.entry for row in rows])
        return standing

    def look(self, book: Book | None, entries: Sequence[Entry]) -> None:
        """Read the memories that these entries name."""
        named = {entry.number for entry in entries if entry.number is not None} - self.rows.keys()
        if book is not None and named:
            self.rows |= live_rows(book, numbers=sorted(named))

    def after(self, book: Book) -> "Standing | None":
        """Return the standing after a batch was written to the book; None where it has to be read again."""
        if self.generation == _ONE_BATCH:
            return None
        self.generation = book.generation
        return self

    def changed_by(self, entry: Entry, key: str) -> Memory | None:
        """Return the memory that an entry names and says something else of, which the book does not know yet."""
        same = self.rows.get(entry.number) if entry.number is not None else None
        if same is None or key in self.keys:
            return None
        # Answers of the API cut moments to milliseconds; exports do not.
        others = entry.made_at is not None and abs(entry.made_at - same.created_at) >= _SHOWN
        return None if others else same

    def take(self, row: Checked, report: ImportReport, writer: BookWriter | None) -> None:
        """Count an entry, and note what it makes of the book; it is given to `writer` if there is one."""
        fields, key = row.fields, row.key
        target, length = fields.target or "", len(fields.content or "")
        try:
            same = self.changed_by(row.entry, key)
            if row.doubt is not None and (same is not None or key not in self.keys):
                report.hold(row.entry, fields, row.doubt, same)
            elif same is not None:
                self.budgets.take(target, length, freed=len(same.content), freed_target=same.target)
                self.keys.discard(same.content_key)
                if writer is not None:
                    writer.gather_changed(same, fields, scan_hash=row.scan_hash)
                else:
                    same.content, same.content_key, same.target = fields.content or "", key, target
                report.changed += 1
            elif key in self.keys:
                report.known += 1
            else:
                self.budgets.take(target, length)
                if writer is not None:
                    writer.gather_added(fields, scan_hash=row.scan_hash)
                report.new += 1
        except OverBudget as error:
            report.refuse(row.entry.line, row.entry.place, error)
            return
        self.keys.add(key)


@reads
def checked(
    book: Book | None, batch: Sequence[Entry], standing: Standing, report: ImportReport
) -> Slices[list[Checked]]:
    """Return the entries of a batch that may be written; the others are counted in the report."""
    clean: list[tuple[Entry, MemoryFields, str]] = []
    for entry in batch:
        try:
            fields = fields_cleaned(entry.fields)
            clean.append((entry, fields, key_of(fields.content or "")))
        except (InvalidRequest, TooLarge) as error:
            report.refuse(entry.line, entry.place, error)
    standing.look(book, [entry for entry, _, _ in clean])
    found: list[Checked] = []
    began = time.monotonic()
    for entry, fields, key in clean:
        if key in standing.keys and standing.changed_by(entry, key) is None:
            report.known += 1
            continue
        try:
            verdict = check_scan(fields.content or "", list(fields.keywords or ()), fields.metadata or {})
            found.append(Checked(entry, fields, key, verdict.scan_hash, scan_doubt(verdict)))
        except BlockedByScan as error:
            report.block(entry, error)
        if time.monotonic() - began > SLICE_SECONDS:
            yield
            began = time.monotonic()
    return found

"""The state of a book that an import checks its entries against: known content, memories to update, and budgets. It is
read once and stays valid while the book's generation is the same, that is, while nobody else writes to the book."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from django.utils import timezone

from memories.database.batches import SLICE_SECONDS, Slices, reads
from memories.entry_rules import check_scan, content_key
from memories.errors import BlockedByScan, InvalidRequest, OverBudget, TooLarge
from memories.evidence import scan_doubt
from memories.imports.contents import Entry
from memories.imports.report import ImportReport
from memories.models import Book, Memory
from memories.selectors import PAGE, live_in, live_rows, paged
from memories.services import BookWriter, Budgets, fields_cleaned

_API_PRECISION = timedelta(milliseconds=1)


@dataclass(slots=True)
class BookImportState:
    """The state of a book. `rows` holds the memories that entries name, by number; `keys` are content keys."""

    budgets: Budgets
    generation: int
    rows: dict[int, Memory] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)

    @classmethod
    @reads
    def load(cls, book: Book | None, name: str) -> "Slices[BookImportState]":
        """Return the state of a book, which may not exist yet. The keys are read in pages."""
        if book is None:
            return cls(Budgets.of(None, name), 0)
        # Read first: a write during the rest of the reading raises the generation.
        generation = Book.objects.values_list("generation", flat=True).get(pk=book.pk)
        state = cls(Budgets.of(book, name), generation)
        for count, memory in enumerate(paged(live_in(book).only("number", "content_key"), "number"), start=1):
            state.keys.add(memory.content_key)
            if count % PAGE == 0:
                yield
        return state

    @classmethod
    def load_locked(cls, book: Book, entries: Sequence[Entry]) -> "BookImportState":
        """Return the state of a locked book as far as one batch needs it."""
        known = live_in(book).filter(content_key__in=[entry.key for entry in entries])
        keys = known.values_list("content_key", flat=True)
        state = cls(Budgets.of(book, book.name), book.generation, keys=set(keys))
        state.load_named(book, entries)
        return state

    def load_named(self, book: Book | None, entries: Sequence[Entry]) -> None:
        """Read the memories that these entries name."""
        named = {entry.number for entry in entries if entry.number is not None} - self.rows.keys()
        if book is not None and named:
            self.rows |= live_rows(book, numbers=sorted(named))

    def changed_memory(self, entry: Entry) -> Memory | None:
        """Return the memory whose content an entry would replace, or None if it would add one."""
        memory = self.rows.get(entry.number) if entry.number is not None else None
        if memory is None or entry.made_at is None:
            return None
        # The API truncates times to milliseconds; exports do not.
        return memory if abs(entry.made_at - memory.created_at) < _API_PRECISION else None

    def apply(self, entry: Entry, report: ImportReport, writer: BookWriter | None) -> None:
        """Count a checked entry and update the state as if it were written; pass it to `writer` if there is one."""
        fields, key = entry.fields, entry.key
        target, length = fields.target or "", len(fields.content or "")
        try:
            memory = self.changed_memory(entry)
            if key in self.keys:
                report.known += 1
            elif entry.doubt is not None:
                report.hold(entry, entry.doubt, memory)
            elif memory is not None:
                self.budgets.take(target, length, freed=len(memory.content), freed_target=memory.target)
                self.keys.discard(memory.content_key)
                report.changed += 1
                if writer is not None:
                    writer.gather_changed(memory, fields)
                else:
                    report.show_rewording(entry, memory.content, fields.content or "")
                    memory.content, memory.content_key, memory.target = fields.content or "", key, target
            else:
                self.budgets.take(target, length)
                if writer is not None:
                    writer.gather_added(fields, scan_hash=entry.scan_hash)
                report.add_memory(entry)
        except OverBudget as error:
            report.refuse(entry, error)
            return
        self.keys.add(key)


@reads
def check_entries(
    book: Book | None, batch: Sequence[Entry], state: BookImportState, report: ImportReport, later: list[Entry]
) -> Slices[list[Entry]]:
    """Return the entries of a batch that may be written, checked. The others are counted in the report, except those
    that would give a memory the text of another one: they are added to `later`, since an entry may change the other."""
    cleaned: list[Entry] = []
    for entry in batch:
        try:
            fields = fields_cleaned(entry.fields)
            if fields.expires_at is not None and fields.expires_at <= timezone.now():
                raise InvalidRequest("It has expired.", param="expires_at")
            cleaned.append(replace(entry, fields=fields, key=content_key(fields.content or "")))
        except (InvalidRequest, TooLarge) as error:
            report.refuse(entry, error)
    state.load_named(book, cleaned)
    allowed: list[Entry] = []
    began = time.monotonic()
    for entry in cleaned:
        if entry.key in state.keys:
            memory = state.changed_memory(entry)
            if memory is None or memory.content_key == entry.key or entry.retried:
                report.known += 1
            else:
                later.append(replace(entry, retried=True))
            continue
        fields = entry.fields
        try:
            keywords, metadata = list(fields.keywords or ()), fields.metadata or {}
            verdict = check_scan(fields.content or "", keywords, metadata, fields.category or "")
            allowed.append(replace(entry, scan_hash=verdict.scan_hash, doubt=scan_doubt(verdict)))
        except BlockedByScan as error:
            report.block(entry, error)
        if time.monotonic() - began > SLICE_SECONDS:
            yield
            began = time.monotonic()
    return allowed

"""Import: preview or write what a reader found in a file. An import is one change set per book; every memory is
scanned, and a preview only reads. It works in slices: entries are read, checked and scanned without a lock, and written
in short transactions, so that what was written when something fails or a client goes away stays, can be undone, and is
told. Called by the API, the memories page and the command."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any
from uuid import UUID

from django.db import Error as DatabaseError

from memories.caller import UNLIMITED, KeyLimits
from memories.database.batches import BatchSize, Slices, reads
from memories.errors import Conflict, Overloaded
from memories.evidence import HeldWrites, Proposal, proposal_store
from memories.imports.conversations import conversation_store, in_parts
from memories.imports.files import Upload
from memories.imports.formats import AUTO, found_in
from memories.imports.found import Conversation, Entry, Found
from memories.imports.report import HeldEntry, ImportReport
from memories.imports.standing import Checked, Standing, checked
from memories.models import Book, ChangeSet, WriteOrigin
from memories.services import (
    BookWriter,
    Source,
    book_changed,
    book_get_or_create,
    book_writing,
    check_new_books,
    proposal_of,
    refusals_stored,
)

_DECIDED_TOGETHER = 10  # entries that wait: saving them takes one transaction
_LOOKED_UP = 500  # conversations that are looked up at once


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """What is to be imported, and how. `book` is for memories that name none, and for conversations."""

    upload: Upload
    format: str = AUTO
    book: str = "main"
    conversations: bool = True
    preview: bool = False


def import_slices(
    owner_id: UUID, request: ImportRequest, *, actor: str, limits: KeyLimits = UNLIMITED
) -> Slices[ImportReport]:
    """Import a file in slices. A file that cannot be read stops everything before anything is written; an entry that
    the scan or a budget refuses is left out and listed. A preview finds the same out, and writes nothing.

    Raises InvalidRequest, TooLarge, Conflict (more books than there can be, no agent for the conversations, or a book
    that is cleared or forgotten meanwhile),
    NotFound where a line names a book that the key may not use; Overloaded when the database fails."""
    found = yield from found_in(
        request.upload, format=request.format, book=request.book, with_conversations=request.conversations
    )
    names = sorted({entry.book for entry in found.entries} | ({found.book} if found.conversations else set()))
    limits.require_books(names)
    check_new_books(owner_id, names)
    if found.conversations:
        conversation_store().check(owner_id, found.book, limits)
    report = ImportReport(formats=list(found.formats))
    for refused in found.refused:
        report.refuse(refused.line, refused.place, refused.error)
    work = _Preview(owner_id, report) if request.preview else _Writing(owner_id, report, actor, limits)
    with refusals_stored():
        for name in names:
            yield from work.memories(name, [entry for entry in found.entries if entry.book == name])
            if name == found.book and found.conversations:
                yield from work.conversations(found)
    report.problems.sort(key=itemgetter("line"))
    report.waiting.sort(key=itemgetter("line"))
    report.written = not request.preview
    return report


@dataclass(slots=True)
class _Preview:
    """Finds out what an import would do; only reads."""

    owner_id: UUID
    report: ImportReport

    @reads
    def memories(self, name: str, entries: Sequence[Entry]) -> Slices[None]:
        book = Book.objects.filter(owner_id=self.owner_id, name=name).first()
        standing = yield from Standing.load(book, name)
        for batch in BatchSize().parts(entries):
            for row in (yield from checked(book, batch, standing, self.report)):
                before = self.report.new
                standing.take(row, self.report, None)
                if self.report.new > before:
                    self.report.show(row.entry, row.fields)
            yield

    @reads
    def conversations(self, found: Found) -> Slices[None]:
        for batch in _parts(found, BatchSize(first=100)):
            for conversation in _new_ones(self.owner_id, batch, self.report):
                self.report.conversation(conversation)
            yield


@dataclass(slots=True)
class _Writing:
    """Writes an import: one change set for each book."""

    owner_id: UUID
    report: ImportReport
    actor: str
    limits: KeyLimits
    _change_sets: dict[str, ChangeSet] = field(default_factory=dict)

    def memories(self, name: str, entries: Sequence[Entry]) -> Slices[None]:
        if not entries:
            return
        book = book_get_or_create(self.owner_id, name)
        numbers: list[int] = []
        size = BatchSize()
        standing: Standing | None = None
        try:
            for batch in size.parts(entries):
                if standing is None:
                    standing = yield from Standing.load(book, name)
                # Scanning is most of the work. Others have their turn to write before and after it.
                rows = yield from checked(book, batch, standing, self.report)
                done = ImportReport()
                with size.measured(), self._writing(book) as writer:
                    _require_as_begun(writer, book)
                    if writer.book.generation != standing.generation:  # somebody else wrote to the book
                        standing = Standing.of(writer.book, rows)
                    _write(writer, rows, standing, done)
                standing = standing.after(writer.book)
                self._keep(writer)
                numbers += writer.numbers
                self.report.add(done)
                while len(self.report.to_propose) >= _DECIDED_TOGETHER:
                    self._propose(book)
            self._propose(book)
        except DatabaseError as error:
            raise self._failed(batch[0].place, batch[0].line) from error
        except GeneratorExit:  # the client went away
            self._propose(book)
            raise
        finally:
            if numbers:
                book_changed(book, self._source, numbers)

    def conversations(self, found: Found) -> Slices[None]:
        """Store the conversations that are not there yet. They are looked up again under the book's lock: the same file
        may come twice at once."""
        book = book_get_or_create(self.owner_id, found.book)
        size = BatchSize(first=100)
        try:
            for batch in _parts(found, size):
                done = ImportReport()
                with size.measured(), self._writing(book) as writer:
                    _require_as_begun(writer, book)
                    if new := _new_ones(self.owner_id, batch, done):
                        store = conversation_store()
                        store.add(self.owner_id, book.name, self.limits, writer.changes().pk, new)
                self._keep(writer)
                self.report.conversations_known += done.conversations_known
                for conversation in new:
                    self.report.conversation(conversation)
                yield
        except DatabaseError as error:
            raise self._failed(batch[0].place, batch[0].line) from error

    def _writing(self, book: Book) -> AbstractContextManager[BookWriter]:
        return book_writing(book, self._source, change_set=self._change_sets.get(book.name), silent=True)

    @property
    def _source(self) -> Source:
        return Source(actor=self.actor, origin=WriteOrigin.IMPORT, kind=ChangeSet.Kind.IMPORT)

    def _propose(self, book: Book) -> None:
        """Hand on the first entries that wait to the queue of writes that wait for a person. They go with the change
        set of their import when that is undone."""
        report = self.report
        held, report.to_propose = report.to_propose[:_DECIDED_TOGETHER], report.to_propose[_DECIDED_TOGETHER:]
        if not held:
            return
        step = HeldWrites(session_id=None, agent="", imported=self._change_sets[book.name].pk)
        added = {step.add(_proposal(self._source, one)): one for one in held}
        book.refresh_from_db(fields=["epoch"])
        for given, kept in proposal_store().keep(book, step).items():
            if kept.rejected:
                report.turned_down(added[given].entry)

    def _keep(self, writer: BookWriter) -> None:
        if writer.change_set is not None and writer.book.name not in self._change_sets:
            self._change_sets[writer.book.name] = writer.change_set
            self.report.change_sets.append(str(writer.change_set.pk))

    def _failed(self, place: str, line: int) -> Overloaded:
        told: dict[str, Any] = {**self.report.counts(), "change_sets": self.report.change_sets}
        return Overloaded(
            f"The database failed at {place[:1].lower()}{place[1:]}. {self.report.new + self.report.changed} memories "
            f"and {self.report.conversations_new} conversations were imported before it; undo takes them back, and the "
            "same import goes on where it stopped.",
            line=line,
            **told,
        )


def _require_as_begun(writer: BookWriter, book: Book) -> None:
    """Raises Conflict if the book was cleared or forgotten since the import began to write to it."""
    if writer.book.epoch != book.epoch:
        raise Conflict(
            f"“{book.name}” was cleared or forgotten while the import was under way, which ended it. Import again what "
            "you want to have back."
        )


def _write(writer: BookWriter, rows: Sequence[Checked], standing: Standing, report: ImportReport) -> None:
    """Write a batch to the open book, whose standing is that of now."""
    for row in rows:
        standing.take(row, report, writer)
    if report.held:
        writer.changes()  # an undo takes back what waits, too


def _parts(found: Found, size: BatchSize) -> Iterator[list[Conversation]]:
    """Return the conversations as they are stored, in batches of a few messages and of no more than are looked up at
    once. `size` counts messages."""
    batch: list[Conversation] = []
    messages = 0
    for part in (part for conversation in found.conversations for part in in_parts(conversation)):
        if batch and (messages + len(part.messages) > size.rows or len(batch) == _LOOKED_UP):
            yield batch
            batch, messages = [], 0
        batch.append(part)
        messages += len(part.messages)
    if batch:
        yield batch


def _new_ones(owner_id: UUID, batch: Sequence[Conversation], report: ImportReport) -> list[Conversation]:
    """Return those that were not imported before; the others are counted. One that comes twice is new once."""
    known = conversation_store().known(owner_id, [conversation.key for conversation in batch])
    new: dict[str, Conversation] = {}
    for conversation in batch:
        if conversation.key in known or conversation.key in new:
            report.conversations_known += 1
        else:
            new[conversation.key] = conversation
    return list(new.values())


def _proposal(source: Source, held: HeldEntry) -> Proposal:
    fields = held.fields
    more: dict[str, Any] = {"target": str(fields.target), "metadata": dict(fields.metadata or {})}
    if fields.pinned is not None:
        more["pinned"] = fields.pinned
    if fields.expires_at is not None:
        more["expires_at"] = fields.expires_at.isoformat()
    return proposal_of(source, fields, held.changes, rule=held.doubt.rule, reason=held.doubt.reason, more=more)

"""Preview an import or write it. An import is one change set per book; every memory is scanned, and a preview only
reads. Work is done in slices: entries are read, checked and scanned without a lock and written in short transactions.
If something fails or the client disconnects, what was written stays, is reported, and can be undone. Called by the API
and the command."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any
from uuid import UUID

from django.db import Error as DatabaseError

from memories.caller import UNLIMITED, KeyLimits
from memories.database.access import overloaded, vanished
from memories.database.batches import BatchSize, Slices, reads
from memories.errors import Conflict, DomainError, Overloaded
from memories.evidence import HeldWrites, Proposal, proposal_store
from memories.imports.book_state import BookImportState, check_entries
from memories.imports.contents import Conversation, Entry, ImportContents
from memories.imports.conversations import conversation_store, split_conversation
from memories.imports.files import Upload
from memories.imports.formats import AUTO, read_upload
from memories.imports.report import ImportReport
from memories.models import Book, ChangeSet, Memory, WriteOrigin
from memories.services import (
    BookWriter,
    Source,
    book_changed,
    book_get_or_create,
    book_writing,
    check_new_books,
    owner_lock,
    proposal_of,
    refusals_stored,
)

_PROPOSAL_BATCH = 10  # held entries that become one review, whose approval is one transaction
_LOOKUP_BATCH = 500  # conversations that one query looks up


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """The file to import, and how. `book` takes the conversations, and the memories that name no book."""

    upload: Upload
    format: str = AUTO
    book: str = "main"
    conversations: bool = True
    preview: bool = False


def import_slices(
    owner_id: UUID, request: ImportRequest, *, actor: str, limits: KeyLimits = UNLIMITED
) -> Slices[ImportReport]:
    """Import a file in slices. An unreadable file is refused before anything is written; an entry that the scan or a
    budget refuses is left out and listed. A preview returns the same report and writes nothing. The caller then makes
    the conversations searchable (`ConversationStore.index`), whose failure would not concern what is stored.

    Raises InvalidRequest, TooLarge, Conflict (too many books, no agent for the conversations, or a book that was
    cleared or forgotten meanwhile), NotFound if a line names a book that the key may not use, and Overloaded if the
    database fails."""
    contents = yield from read_upload(
        request.upload, format=request.format, book=request.book, with_conversations=request.conversations
    )
    names = sorted({entry.book for entry in contents.entries} | ({contents.book} if contents.conversations else set()))
    limits.require_books(names)
    check_new_books(owner_id, names)
    if contents.conversations:
        conversation_store().check(owner_id, contents.book, limits)
    report = ImportReport(formats=list(contents.formats))
    for refused in contents.refused:
        report.refuse(refused, refused.error)
    work = _ImportPreview(owner_id, report) if request.preview else _ImportWriter(owner_id, report, actor, limits)
    with refusals_stored():
        for name in names:
            yield from work.memories(name, [entry for entry in contents.entries if entry.book == name])
            if name == contents.book and contents.conversations:
                yield from work.conversations(contents)
    report.problems.sort(key=itemgetter("line"))
    report.waiting.sort(key=itemgetter("line"))
    report.rewordings.sort(key=itemgetter("line"))
    report.written = not request.preview
    return report


@dataclass(slots=True)
class _ImportPreview:
    owner_id: UUID
    report: ImportReport

    @reads
    def memories(self, name: str, entries: list[Entry]) -> Slices[None]:
        book = Book.objects.filter(owner_id=self.owner_id, name=name).first()
        state = yield from BookImportState.load(book, name)
        for batch in BatchSize().parts(entries):
            for row in (yield from check_entries(book, batch, state, self.report, entries)):
                state.apply(row, self.report, None)
            yield

    @reads
    def conversations(self, contents: ImportContents) -> Slices[None]:
        for batch in _conversation_batches(contents, BatchSize(initial=100)):
            for conversation in _new_conversations(self.owner_id, batch, self.report):
                self.report.add_conversation(conversation)
            yield


@dataclass(slots=True)
class _ImportWriter:
    owner_id: UUID
    report: ImportReport
    actor: str
    limits: KeyLimits
    _change_sets: dict[str, ChangeSet] = field(default_factory=dict)

    def memories(self, name: str, entries: list[Entry]) -> Slices[None]:
        if not entries:
            return
        book = book_get_or_create(self.owner_id, name)
        numbers: list[int] = []
        size = BatchSize()
        state: BookImportState | None = None
        try:
            for batch in size.parts(entries):
                if state is None:
                    state = yield from BookImportState.load(book, name)
                # Scanning is most of the work and holds no lock: others can write before and after it.
                rows = yield from check_entries(book, batch, state, self.report, entries)
                done = ImportReport()
                with size.measured(), self._writing(book) as writer:
                    unchanged = writer.book.generation == state.generation  # else somebody else wrote to the book
                    _write(writer, rows, state if unchanged else BookImportState.load_locked(writer.book, rows), done)
                if unchanged:
                    state.generation = writer.book.generation
                else:
                    state = None  # to be loaded again
                numbers += writer.numbers
                self.report.merge(done)
                while len(self.report.to_propose) >= _PROPOSAL_BATCH:
                    self._propose(book)
            self._propose(book)
        except DatabaseError as error:
            raise self._failed(error, book, batch[0].place, batch[0].line) from error
        except GeneratorExit:  # the client disconnected
            self._propose(book)
            raise
        finally:
            if numbers:
                book_changed(book, self._source, numbers)

    def conversations(self, contents: ImportContents) -> Slices[None]:
        """Store the new conversations. They are looked up under the owner's lock, since the same file may be imported
        twice at once, also into different books."""
        book = book_get_or_create(self.owner_id, contents.book)
        size = BatchSize(initial=100)
        try:
            for batch in _conversation_batches(contents, size):
                done = ImportReport()
                with size.measured(), self._writing(book) as writer:
                    owner_lock(self.owner_id)
                    if new := _new_conversations(self.owner_id, batch, done):
                        store = conversation_store()
                        store.add(self.owner_id, book.name, self.limits, writer.changes().pk, new)
                self.report.conversations_known += done.conversations_known
                for conversation in new:
                    self.report.add_conversation(conversation)
                yield
        except DatabaseError as error:
            raise self._failed(error, book, batch[0].place, batch[0].line) from error

    @contextmanager
    def _writing(self, book: Book) -> Iterator[BookWriter]:
        """Write to a book as part of its change set, in one transaction. Raises Conflict if the book was cleared or
        forgotten since the import began to write to it."""
        known = self._change_sets.get(book.name)
        with book_writing(book, self._source, change_set=known, silent=True) as writer:
            if writer.book.epoch != book.epoch:
                raise _cleared(book)
            yield writer
        if writer.change_set is not None and known is None:
            self._change_sets[book.name] = writer.change_set
            self.report.change_sets.append(str(writer.change_set.pk))

    @property
    def _source(self) -> Source:
        return Source(actor=self.actor, origin=WriteOrigin.IMPORT, kind=ChangeSet.Kind.IMPORT)

    def _propose(self, book: Book) -> None:
        """Store the next held entries as proposals. Undoing the import's change set withdraws them."""
        report = self.report
        held, report.to_propose = report.to_propose[:_PROPOSAL_BATCH], report.to_propose[_PROPOSAL_BATCH:]
        if not held:
            return
        step = HeldWrites(session_id=None, agent="", imported=self._change_sets[book.name].pk)
        by_proposal = {step.add(_proposal(self._source, entry, memory)): entry for entry, memory in held}
        for proposal_id, result in proposal_store().keep(book, step).items():
            if result.rejected:
                report.reject(by_proposal[proposal_id])

    def _failed(self, error: DatabaseError, book: Book, place: str, line: int) -> DomainError:
        if vanished(error):  # a forgetting that was already running erased the import's change set
            return _cleared(book)
        known = overloaded(error)  # busy, or its disk is full
        details: dict[str, Any] = {
            **self.report.counts(),
            **(known.details if known else {}),
            "change_sets": self.report.change_sets,
        }
        reason = f" {known}" if known else ""
        return Overloaded(
            f"The database failed at {place[:1].lower()}{place[1:]}.{reason} "
            f"{self.report.new + self.report.changed} memories and {self.report.conversations_new} conversations were "
            "imported before; an undo removes them, and the same import continues where it stopped.",
            line=line,
            **details,
        )


def _cleared(book: Book) -> Conflict:
    return Conflict(
        f"“{book.name}” was cleared or forgotten during the import, which ended it. Import again what you want to keep."
    )


def _write(writer: BookWriter, rows: Sequence[Entry], state: BookImportState, report: ImportReport) -> None:
    for row in rows:
        state.apply(row, report, writer)
    if report.held:
        writer.changes()  # proposals need a change set, so that an undo withdraws them


def _conversation_batches(contents: ImportContents, size: BatchSize) -> Iterator[list[Conversation]]:
    """Yield the conversations, split into parts, in batches of about `size.rows` messages and at most _LOOKUP_BATCH
    parts."""
    batch: list[Conversation] = []
    messages = 0
    for part in (part for conversation in contents.conversations for part in split_conversation(conversation)):
        if batch and (messages + len(part.messages) > size.rows or len(batch) == _LOOKUP_BATCH):
            yield batch
            batch, messages = [], 0
        batch.append(part)
        messages += len(part.messages)
    if batch:
        yield batch


def _new_conversations(owner_id: UUID, batch: Sequence[Conversation], report: ImportReport) -> list[Conversation]:
    """Return the conversations that are new, each once. The others are counted as known."""
    known = conversation_store().known(owner_id, [conversation.key for conversation in batch])
    new: dict[str, Conversation] = {}
    for conversation in batch:
        if conversation.key in known or conversation.key in new:
            report.conversations_known += 1
        else:
            new[conversation.key] = conversation
    return list(new.values())


def _proposal(source: Source, entry: Entry, memory: Memory | None) -> Proposal:
    fields, doubt = entry.fields, entry.doubt
    assert doubt is not None  # the entry is held
    more: dict[str, Any] = {"target": str(fields.target), "metadata": dict(fields.metadata or {})}
    if fields.pinned is not None:
        more["pinned"] = fields.pinned
    if fields.expires_at is not None:
        more["expires_at"] = fields.expires_at.isoformat()
    return proposal_of(source, fields, memory, rule=doubt.rule, reason=doubt.reason, more=more)

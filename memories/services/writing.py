"""Writing to a book: every change of a Memory, ChangeSet or Revision row goes through a BookWriter.

It holds the book's row lock and commits a group of changes, their revisions, the new generation and the notification in
one transaction."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memories.database.statements import Insert
from memories.entry_rules import check_hold, check_scan, content_key, said_already, scanned_words, set_verdict
from memories.errors import Conflict, NotFound
from memories.messaging import invalidation
from memories.messaging.outbox import next_numbers, notify
from memories.models import EVIDENCE_COLUMNS, Book, ChangeSet, Evidence, Memory, Notification, Revision
from memories.selectors import change_set_of_turn, live_in, only_keywords_added, undeleted
from memories.services.books import Budgets, generations_raise
from memories.services.refusals import refusals_stored
from memories.services.rows import (
    MemoryFields,
    Source,
    WriteResult,
    evidence_of,
    fields_cleaned,
    memory_change,
    memory_changes,
    memory_new,
    memory_state,
    revision_new,
    stored_state,
)

MAX_NAMED_MEMORIES = 500  # memories that one notification names; above this it names none
_CHANGING = (
    "target", "category", "content", "content_key", "keywords", "metadata", "pinned", "expires_at", "version",
    "scan_hash", "scan_rule", "scan_reason", "allowed_hash", "content_changed_at", "updated_at", "deleted_at",
    *EVIDENCE_COLUMNS,
)  # fmt: skip
_ADD: Insert[Memory] = Insert(Memory)
_CHANGE: Insert[Memory] = Insert(Memory, update_fields=_CHANGING)
_REVISE: Insert[Revision] = Insert(Revision)


@dataclass(slots=True)
class BookWriter:
    """A locked book, opened by `book_writing`. The methods raise DomainErrors before they change anything.

    `add`, `update` and `delete` look up one memory, check the write and store it. The `gather_…` methods collect
    checked writes of rows that the caller read under the book's lock. These are stored at the end of `book_writing`, or
    by `store`, in a number of statements that does not depend on the number of writes."""

    book: Book
    source: Source
    change_set: ChangeSet | None = None
    numbers: list[int] = field(default_factory=list)
    removed: bool = False  # a memory was deleted, so that caches must drop its text
    _added: list[Memory] = field(default_factory=list)
    _changed: dict[UUID, Memory] = field(default_factory=dict)  # by id, since a memory may be changed twice
    _revisions: list[Revision] = field(default_factory=list)

    def add(self, fields: MemoryFields, *, if_known: MemoryFields | None = None) -> WriteResult:
        """Store a new memory. If a live one has the same normalised content, that one is returned instead, updated by
        `if_known` except for its content.

        Raises InvalidRequest, TooLarge, BlockedByScan, WriteHeld, OverBudget."""
        cleaned = fields_cleaned(fields)
        content = str(cleaned.content)
        if known := self._known(content_key(content)):
            return self.update(known.number, replace(if_known or MemoryFields(), content=None))
        verdict = check_scan(content, cleaned.keywords or (), cleaned.metadata or {}, str(cleaned.category))
        check_hold(verdict, evidence_of(self.source, cleaned), self.source.hold)
        Budgets.of(self.book, self.book.name).take(str(cleaned.target), len(content))
        return self._stored(self.gather_added(cleaned, scan_hash=verdict.scan_hash))

    def update(self, number: int, fields: MemoryFields, *, version: int | None = None) -> WriteResult:
        """Change a live memory. `version` prevents lost updates. Another live memory with the same normalised content
        is a conflict.

        Raises NotFound, Conflict, InvalidRequest, TooLarge, BlockedByScan, WriteHeld, OverBudget."""
        memory = self._unchanged(number, version, "and repeat your change")
        changes = memory_changes(memory, fields)
        if not changes:
            return WriteResult(memory)
        key = content_key(changes.get("content", memory.content))
        if key != memory.content_key and (other := self._known(key)):
            raise said_already(other.number)
        words, target = scanned_words(memory, changes), changes.get("target", memory.target)
        if words != scanned_words(memory):
            check_hold(check_scan(*words), evidence_of(self.source, fields), self.source.hold)
        # Memories may become shorter even if the book is over its budget.
        freed, needed = len(memory.content), len(words[0])
        if target != memory.target or needed > freed:
            budgets = Budgets.of(self.book, self.book.name)
            budgets.take(target, needed, freed=freed, freed_target=memory.target)
        return self._stored(self._change(memory, changes, fields))

    def delete(self, number: int, *, version: int | None = None) -> WriteResult:
        """Turn a live memory into a tombstone, which can be restored until it is purged. Raises NotFound, Conflict."""
        return self._stored(self.gather_deleted(self._unchanged(number, version, "before you delete it")))

    def gather_added(self, fields: MemoryFields, *, scan_hash: str) -> Revision:
        """Add a memory with cleaned and scanned fields. The caller has checked for duplicates and the budget."""
        memory = memory_new(self.book, self.source, fields, scan_hash=scan_hash)
        self._added.append(memory)
        return self._revise(memory, Revision.Action.ADD, None)

    def gather_changed(self, memory: Memory, fields: MemoryFields) -> bool:
        """Change a memory; its new texts are stored even if the scan blocks them. Return False if nothing differs."""
        changes = memory_changes(memory, fields)
        if changes:
            self._change(memory, changes, fields)
        return bool(changes)

    def gather_deleted(self, memory: Memory, action: Revision.Action = Revision.Action.DELETE) -> Revision:
        """Turn a live memory into a tombstone."""
        before = memory_state(memory)
        memory.deleted_at = timezone.now()
        return self._gather(memory, action, before)

    def gather_allowed(self, memory: Memory) -> Revision:
        """Allow a blocked memory to be injected until its text changes."""
        before = memory_state(memory)
        set_verdict(memory)
        memory.allowed_hash = memory.scan_hash
        return self._gather(memory, Revision.Action.ALLOW, before)

    def gather_restored(self, memory: Memory, state: Mapping[str, Any], action: Revision.Action) -> WriteResult:
        """Restore an earlier state of a memory. Budgets are ignored, and blocked text is marked instead of refused. A
        past expiry is dropped, since the memory would expire again at once. One query if the content changes."""
        before, state = memory_state(memory), stored_state(state)
        expiry = state["expires_at"]
        if expiry and not state["deleted_at"] and datetime.fromisoformat(expiry) <= timezone.now():
            state["expires_at"] = None
        if state == before:
            return WriteResult(memory)
        for name, value in state.items():
            is_time = name in {"expires_at", "deleted_at"} and value
            setattr(memory, name, datetime.fromisoformat(value) if is_time else value)
        memory.content_key = content_key(memory.content)
        if memory.content != before["content"]:
            memory.content_changed_at = timezone.now()
            memory.evidence = _earlier_evidence(memory)
        set_verdict(memory)
        return WriteResult(memory, self._gather(memory, action, before))

    def store(self) -> None:
        """Store the gathered writes."""
        added, changed, revisions = self._added, list(self._changed.values()), self._revisions
        self._added, self._changed, self._revisions = [], {}, []
        if added:
            numbers = next_numbers(self.book.owner_id, "memory_seq", len(added))
            for number, memory in zip(numbers, added, strict=True):
                memory.number = number
        _ADD.execute(added)
        _CHANGE.execute(changed)
        _REVISE.execute(revisions)
        self.numbers = list(dict.fromkeys([*self.numbers, *(memory.number for memory in (*added, *changed))]))

    def memory(self, number: int) -> Memory:
        """Return the live memory of this book with this number. Raises NotFound, also for an expired one."""
        memory = live_in(self.book).filter(number=number).first()
        if memory is None:
            if number < 0:
                raise NotFound("There is no such memory: the id of a memory is a number, such as 42.")
            raise NotFound(f"There is no memory {number} in this book. It may have been deleted.")
        return memory

    def changes(self) -> ChangeSet:
        """Return the change set of this transaction, created at the first change. It includes changes of documents, and
        what earlier steps of the turn wrote."""
        source = self.source
        if self.change_set is None and source.kind == ChangeSet.Kind.TOOL and source.run_id:
            self.change_set = change_set_of_turn(self.book, source.run_id)
        if self.change_set is None:
            self.change_set = ChangeSet.objects.create(
                owner_id=self.book.owner_id,
                book=self.book,
                kind=source.kind,
                actor=source.actor,
                write_origin=source.origin,
                session_id=source.session_id,
                run_id=source.run_id,
                review_id=source.review_id,
                undoes_id=source.undoes,
            )
        return self.change_set

    def _known(self, key: str) -> Memory | None:
        """Return a live memory with this normalised content."""
        return next(iter(live_in(self.book).filter(content_key=key).order_by()[:1]), None)

    def _unchanged(self, number: int, version: int | None, advice: str) -> Memory:
        memory = self.memory(number)
        if version is not None and version != memory.version and not only_keywords_added(memory, version):
            text = f"Memory {number} was changed in the meantime. Read it again {advice}."
            raise Conflict(text, version=memory.version)
        return memory

    def _change(self, memory: Memory, changes: dict[str, Any], fields: MemoryFields) -> Revision:
        before = memory_state(memory)
        memory_change(memory, changes, evidence=evidence_of(self.source, fields))
        return self._gather(memory, Revision.Action.UPDATE, before)

    def _gather(self, memory: Memory, action: Revision.Action, before: dict[str, Any]) -> Revision:
        memory.version += 1
        memory.updated_at = timezone.now()
        self.removed = self.removed or memory.deleted_at is not None
        self._changed[memory.pk] = memory
        return self._revise(memory, action, before)

    def _revise(self, memory: Memory, action: Revision.Action, before: dict[str, Any] | None) -> Revision:
        revision = revision_new(memory, action, before=before, change_set=self.changes(), source=self.source)
        self._revisions.append(revision)
        return revision

    def _stored(self, revision: Revision) -> WriteResult:
        self.store()
        return WriteResult(revision.memory, revision)


def _earlier_evidence(memory: Memory) -> Evidence:
    """Return the evidence that a memory had when it had this content before. One query."""
    revisions = Revision.objects.filter(owner_id=memory.owner_id, memory=memory, after__content=memory.content)
    revision = revisions.order_by("-version").first()
    return revision.evidence if revision else Evidence()


@contextmanager
def book_writing(
    book: Book, source: Source, *, change_set: ChangeSet | None = None, silent: bool = False
) -> Iterator[BookWriter]:
    """Lock the book and write to it as one change set, in one transaction.

    On exit, the book's generation is raised, which outdates snapshots, and, last, the notification is stored. Work in
    several transactions passes its `change_set` on, is `silent`, and calls `book_changed` at its end."""
    with refusals_stored(), transaction.atomic():
        locked = Book.objects.select_for_update(no_key=True).get(pk=book.pk)
        writer = BookWriter(locked, source, change_set)
        yield writer
        writer.store()
        if writer.change_set is not change_set or writer.numbers:
            book_touch(locked)
            locked.generation += 1  # as in the database
            if not silent:
                book_changed(locked, source, writer.numbers)
            if writer.removed:
                invalidation.publish(invalidation.Kind.BOOK, owner_id=locked.owner_id, book_id=locked.pk)


@transaction.atomic
def book_changed(book: Book, source: Source, numbers: Sequence[int]) -> None:
    """Store the notification of a change. With too many memories it names none, so that clients reload all."""
    notify(
        owner_id=book.owner_id,
        kind=Notification.Kind.MEMORY_CHANGED,
        book=book.name,
        memory_numbers=numbers if len(numbers) <= MAX_NAMED_MEMORIES else (),
        review_id=source.review_id,
    )


def book_touch(book: Book, *, written: bool = True) -> None:
    """Raise the generation of a locked book, so that snapshots of an older one are rebuilt."""
    now = timezone.now()
    next_expiry = (
        undeleted(book).filter(expires_at__gt=now).order_by("expires_at").values_list("expires_at", flat=True).first()
    )
    last_write_at = now if written else book.last_write_at
    generations_raise([book.pk], last_write_at=last_write_at, next_expiry_at=next_expiry)


@transaction.atomic
def book_expiry_note(book: Book) -> Book:
    """Raise the generation of a book if a memory has expired, which the sweep later turns into a tombstone."""
    locked = Book.objects.select_for_update(no_key=True).get(pk=book.pk)
    if locked.next_expiry_at and locked.next_expiry_at <= timezone.now():
        book_touch(locked, written=False)
        locked.refresh_from_db()
    return locked


def session_unlink(owner_id: UUID, session_id: UUID) -> None:
    """Remove references to a session that is about to be deleted, and quotes of it, from memories and revisions. The
    caller has locked the owner's books: a concurrent write would store what it had read before."""
    Memory.objects.filter(owner_id=owner_id, session_id=session_id).update(session_id=None)
    cleared = {column: None for column in EVIDENCE_COLUMNS if column != "evidence_kind"} | {"evidence_quote": ""}
    for model in (Memory, Revision):
        model._default_manager.filter(owner_id=owner_id, evidence_session_id=session_id).update(**cleared)

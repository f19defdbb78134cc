"""Forgetting: physical, everywhere, not undoable; it leaves a receipt without content. (Delete and clear are
tombstones, undoable for some days: memories.services.) The apps above register what they have to erase when Django
starts. Raising the epoch of the books keeps background work from writing anything back."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from memories import invalidation
from memories.audit import SYSTEM, Action, Actor, audit_record
from memories.batches import BatchSize, Slices, finish
from memories.models import Book, ChangeSet, Memory, Notification, Owner, Revision, ThreadRecord
from memories.outbox import notify

# (owner, ids of the books) -> how many of what were erased; called inside the transaction, with the books locked.
Eraser = Callable[[UUID, Sequence[UUID]], dict[str, int]]
_erasers: list[Eraser] = []
# (owner, most) -> of what and how many rows of an owner who goes were erased, at most so many; called until that is 0.
BatchEraser = Callable[[UUID, int], tuple[str, int]]
_batch_erasers: list[BatchEraser] = []


def register_eraser(eraser: Eraser) -> None:
    """Register what an app above erases of an owner's memory; called from an AppConfig's ready()."""
    if eraser not in _erasers:
        _erasers.append(eraser)


def register_batch_eraser(eraser: BatchEraser) -> None:
    """Add rows of an app above that an owner may have very many of: they go in short transactions before the owner."""
    if eraser not in _batch_erasers:
        _batch_erasers.append(eraser)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What was erased, in numbers."""

    erased: dict[str, int]
    books: tuple[str, ...]
    at: datetime

    def as_json(self) -> dict[str, Any]:
        """As the API shows it."""
        return {"object": "receipt", "erased": self.erased, "books": list(self.books), "at": self.at}


def forget_memories(owner_id: UUID, *, book: str | None = None, by: Actor = SYSTEM) -> Receipt:
    """Erase everything that is remembered about an owner, or one book of it. Sessions and their transcripts stay.

    The first transaction raises the epoch of the books, so that nothing in the background writes to them any more, and
    erases what the apps above hold; memories and their history follow in short transactions. If it is interrupted
    between them, asking again erases the rest."""
    return finish(forget_slices(owner_id, book=book, by=by))


def forget_slices(owner_id: UUID, *, book: str | None = None, by: Actor = SYSTEM) -> Slices[Receipt]:
    """Erase what is remembered in slices, each a short transaction."""
    receipt = yield from _erase_memories(owner_id, book)
    owner = Owner.objects.select_related("user").get(pk=owner_id)
    audit_record(Action.FORGET, actor=by, kind="memory", owner=owner, count=receipt.erased["memories"])
    return receipt


def _erase_memories(owner_id: UUID, book: str | None) -> Slices[Receipt]:
    books, erased = _forget_begin(owner_id, book)
    yield
    ids = [row.pk for row in books]
    size = BatchSize()
    erased |= {"revisions": 0, "memories": 0}
    while True:
        began = time.monotonic()
        revisions, memories = _forget_batch(owner_id, books, size.rows)
        erased["revisions"] += revisions
        erased["memories"] += memories
        if not memories:
            break
        size.took(time.monotonic() - began)
        yield
    if book is None:
        erased["thread_records"] = yield from _erase_rows(ThreadRecord.objects.filter(owner_id=owner_id))
    with transaction.atomic():
        ChangeSet.objects.filter(owner_id=owner_id, book_id__in=ids).delete()
        Book.objects.filter(pk__in=ids).update(generation=F("generation") + 1, next_expiry_at=None, last_write_at=None)
        notify(owner_id=owner_id, kind=Notification.Kind.MEMORY_CHANGED, book=book or "")
        _leave_memory(owner_id, ids, whole=book is None)
    return Receipt(erased=erased, books=tuple(row.name for row in books), at=timezone.now())


@transaction.atomic
def _forget_begin(owner_id: UUID, book: str | None) -> tuple[list[Book], dict[str, int]]:
    rows = Book.objects.select_for_update().filter(owner_id=owner_id).order_by("pk")
    books = list(rows.filter(name=book) if book else rows)
    ids = [row.pk for row in books]
    erased: dict[str, int] = {}
    for eraser in _erasers:
        for name, count in eraser(owner_id, ids).items():
            erased[name] = erased.get(name, 0) + count
    if book is None:
        erased["notifications"] = Notification.objects.filter(owner_id=owner_id).delete()[0]
    else:
        Notification.objects.filter(owner_id=owner_id).update(text="", memory_numbers=[])
    Book.objects.filter(pk__in=ids).update(epoch=F("epoch") + 1, generation=F("generation") + 1)
    return books, erased


def _erase_rows(rows: "QuerySet[ThreadRecord]") -> Slices[int]:
    """Erase rows in short transactions; return how many."""
    erased, size = 0, BatchSize()
    while batch := list(rows.order_by("pk").values_list("pk", flat=True)[: size.rows]):
        began = time.monotonic()
        erased += rows.filter(pk__in=batch).delete()[1].get(rows.model._meta.label, 0)
        size.took(time.monotonic() - began)
        yield
    return erased


def _leave_memory(owner_id: UUID, books: Sequence[UUID], *, whole: bool) -> None:
    """Have every process drop what it keeps of these books; of everything of the owner, if it is `whole`."""
    if whole:
        invalidation.publish(invalidation.Kind.OWNER, owner_id=owner_id)
    else:
        for book_id in books:
            invalidation.publish(invalidation.Kind.BOOK, owner_id=owner_id, book_id=book_id)


@transaction.atomic
def _forget_batch(owner_id: UUID, books: Sequence[Book], most: int) -> tuple[int, int]:
    """Erase some memories with their history, under the lock of their books; return how many revisions and memories."""
    ids = [row.pk for row in books]
    list(Book.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk"))
    rows = Memory.objects.filter(owner_id=owner_id, book_id__in=ids).order_by("number").values_list("pk", flat=True)
    batch = list(rows[:most])
    revisions = Revision.objects.filter(owner_id=owner_id, memory_id__in=batch).delete()[0]
    counts = Memory.objects.filter(owner_id=owner_id, pk__in=batch).delete()[1]
    Book.objects.filter(pk__in=ids).update(generation=F("generation") + 1)
    return revisions, counts.get(Memory._meta.label, 0)


def forget_owner(owner: Owner, *, by: Actor = SYSTEM) -> Receipt:
    """Erase an owner with everything that hangs off it, sessions, keys and end users too; not the login. What may be
    very much goes first, in short transactions: if it is interrupted, asking again erases the rest."""
    receipt = finish(_erase_memories(owner.pk, None))
    batches = _erase_batches(owner.pk)
    with transaction.atomic():
        audit_record(Action.FORGET, actor=by, kind="owner", object_id=owner.pk, owner=owner)
        _, counts = owner.delete()
    erased = receipt.erased | {name.rpartition(".")[2].lower(): count for name, count in counts.items()}
    for name, count in batches.items():
        erased[name] = erased.get(name, 0) + count
    return Receipt(erased=erased, books=receipt.books, at=receipt.at)


def _erase_batches(owner_id: UUID) -> dict[str, int]:
    erased: dict[str, int] = {}
    for eraser in _batch_erasers:
        size = BatchSize()
        while True:
            began = time.monotonic()
            name, count = eraser(owner_id, size.rows)
            if not count:
                break
            erased[name] = erased.get(name, 0) + count
            size.took(time.monotonic() - began)
    return erased

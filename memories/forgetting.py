"""Forgetting: physical, everywhere, not undoable; it leaves a receipt without content.
(Delete and clear are tombstones, undoable for some days: memories.services.) The floors above register what they have
to erase when Django starts. Raising the epoch of the books keeps background work from writing anything back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from memories import invalidation
from memories.audit import SYSTEM, Action, Actor, audit_record
from memories.models import Book, ChangeSet, Memory, Notification, Owner, Revision, ThreadRecord
from memories.outbox import notify

# (owner, ids of the books) -> how many of what were erased; called inside the transaction, with the books locked.
Eraser = Callable[[UUID, Sequence[UUID]], dict[str, int]]
_erasers: list[Eraser] = []


def register_eraser(eraser: Eraser) -> None:
    """Add what a floor above holds of an owner's memory; called from an AppConfig's ready()."""
    if eraser not in _erasers:
        _erasers.append(eraser)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What was erased, in numbers."""

    erased: dict[str, int]
    books: tuple[str, ...]
    at: datetime

    def as_json(self) -> dict[str, Any]:
        """As the API shows it."""
        return {"object": "receipt", "erased": self.erased, "books": list(self.books), "at": self.at}


@transaction.atomic
def forget_memories(owner_id: UUID, *, book: str | None = None, by: Actor = SYSTEM) -> Receipt:
    """Erase everything that is remembered about an owner, or one book of it. Sessions and their transcripts stay."""
    receipt = _erase_memories(owner_id, book)
    owner = Owner.objects.select_related("user").get(pk=owner_id)
    audit_record(Action.FORGET, actor=by, kind="memory", owner=owner, count=receipt.erased["memories"])
    return receipt


def _erase_memories(owner_id: UUID, book: str | None) -> Receipt:
    rows = Book.objects.select_for_update().filter(owner_id=owner_id).order_by("pk")
    books = list(rows.filter(name=book) if book else rows)
    ids = [row.pk for row in books]
    erased: dict[str, int] = {}
    for eraser in _erasers:
        for name, count in eraser(owner_id, ids).items():
            erased[name] = erased.get(name, 0) + count
    if book is None:
        erased["thread_records"] = ThreadRecord.objects.filter(owner_id=owner_id).delete()[0]
        erased["notifications"] = Notification.objects.filter(owner_id=owner_id).delete()[0]
    else:
        Notification.objects.filter(owner_id=owner_id).update(text="", memory_numbers=[])
    erased["revisions"] = Revision.objects.filter(owner_id=owner_id, memory__book_id__in=ids).delete()[0]
    erased["memories"] = Memory.objects.filter(owner_id=owner_id, book_id__in=ids).delete()[0]
    ChangeSet.objects.filter(owner_id=owner_id, book_id__in=ids).delete()
    Book.objects.filter(pk__in=ids).update(
        epoch=F("epoch") + 1, generation=F("generation") + 1, next_expiry_at=None, last_write_at=None
    )
    notify(owner_id=owner_id, kind=Notification.Kind.MEMORY_CHANGED, book=book or "")
    _leave_memory(owner_id, ids, whole=book is None)
    return Receipt(erased=erased, books=tuple(row.name for row in books), at=timezone.now())


def _leave_memory(owner_id: UUID, books: Sequence[UUID], *, whole: bool) -> None:
    """Have every process drop what it keeps of these books; of everything of the owner, if it is `whole`."""
    if whole:
        invalidation.publish(invalidation.Kind.OWNER, owner_id=owner_id)
    else:
        for book_id in books:
            invalidation.publish(invalidation.Kind.BOOK, owner_id=owner_id, book_id=book_id)


@transaction.atomic
def forget_owner(owner: Owner, *, by: Actor = SYSTEM) -> Receipt:
    """Erase an owner with everything that hangs off it, sessions, keys and end users too; not the login."""
    receipt = _erase_memories(owner.pk, None)
    audit_record(Action.FORGET, actor=by, kind="owner", object_id=owner.pk, owner=owner)
    _, counts = owner.delete()
    erased = receipt.erased | {name.rpartition(".")[2].lower(): count for name, count in counts.items()}
    return Receipt(erased=erased, books=receipt.books, at=receipt.at)

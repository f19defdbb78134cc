"""Forgetting: the physical erasure of everything about an owner or a book. It cannot be undone, and leaves a receipt
without content. (Delete and clear only create tombstones, which can be undone for some days: memories.services.)

A forgetting runs in short transactions. First, existing conversations are marked as processed; then the epoch of the
books is raised, so that background work writes nothing back; then rows are deleted, children first, the owner's own row
and the login last. An `Erasure` row records the request and is updated in each transaction: if the process dies or the
client disconnects, the sweep finishes the work. Apps of higher layers register erasers for their own rows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memories.audit.log import SYSTEM, Action, Actor, audit_record
from memories.clocks import lease_over
from memories.database.batches import Slices, in_batches, run_slices_within
from memories.messaging import invalidation
from memories.messaging.outbox import notify
from memories.models import Book, ChangeSet, Erasure, Memory, MemoryVector, Notification, Owner, Revision, ThreadRecord
from memories.models.erasures import LEASE_SECONDS, lease_end
from memories.services import books_lock, generations_raise, is_only_administrator, owner_delete
from memories.services.erasing import ErasureStep, deleting, owner_steps, updating, without_revisions

Scope = Erasure.Scope
SWEEP_SECONDS = 5.0  # how long one sweep continues interrupted forgettings before other sweeps run
DELETE_SECONDS = 3.0  # how long a page waits for a deletion; the sweep does the rest
RECEIPT_LIFETIME = timedelta(days=1)  # how long the receipt of a finished forgetting is kept

Steps = Callable[[UUID, Sequence[UUID]], Iterable[ErasureStep]]
"""Returns the steps for an owner and the ids of books."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eraser:
    """The erasure steps of an app of a higher layer. `mark_processed` marks existing conversations as processed, before
    the epoch of the books is raised; `erase` erases what was remembered, after that. `erase_owner` erases the rows of a
    deleted owner in tables without an `owner_id`."""

    erase: Steps
    mark_processed: Steps = lambda owner_id, books: ()
    erase_owner: Steps = lambda owner_id, books: ()


_erasers: list[Eraser] = []
register_eraser = _erasers.append
"""Registers the eraser of an app of a higher layer; called from AppConfig.ready()."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The number of erased rows by kind, and the names of the books."""

    erased: dict[str, int]
    books: tuple[str, ...]
    at: datetime

    def as_json(self) -> dict[str, Any]:
        """Return the API representation."""
        return {"object": "receipt", "erased": self.erased, "books": list(self.books), "at": self.at}


def forget_slices(owner_id: UUID, *, book: str | None = None, by: Actor = SYSTEM) -> Slices[Receipt]:
    """Erase all that is remembered about an owner, or one book, in slices. Sessions and their transcripts stay."""
    return (yield from erasure_slices(erasure_begin(owner_id, Scope.MEMORIES, book=book or "", by=by)))


@transaction.atomic
def erasure_begin(owner_id: UUID, scope: Scope, *, book: str = "", by: Actor = SYSTEM) -> Erasure:
    """Record a forgetting. From then on it will be completed, whatever happens to this process.

    For an ACCOUNT, the login is deactivated at once, unless it belongs to the only administrator."""
    user = Owner.objects.select_related("user").get(pk=owner_id).user
    if scope == Scope.ACCOUNT and user is not None and not is_only_administrator(user, lock=True):
        user.is_active = False
        user.save(update_fields=["is_active"])
    return Erasure.objects.create(owner_id=owner_id, scope=scope, book=book, actor=by.name[:255], actor_id=by.id[:80])


def erasure_slices(erasure: Erasure) -> Slices[Receipt]:
    """Run a forgetting, or the rest of it, in slices, each a short transaction."""
    owner_id = erasure.owner_id
    if owner_id is None or not Owner.objects.filter(pk=owner_id).exists():
        return _finish(erasure)
    rows = Book.objects.filter(owner_id=owner_id).order_by("pk")
    books = list(rows.filter(name=erasure.book) if erasure.book else rows)
    ids = [book.pk for book in books]
    owner_stays = erasure.scope == Scope.MEMORIES  # else every row of the owner is deleted, without erasers
    try:
        if not erasure.stopped:
            if owner_stays:
                yield from _run_steps(
                    erasure, (step for eraser in _erasers for step in eraser.mark_processed(owner_id, ids))
                )
            _stop_background(erasure, ids)
            yield
        if owner_stays:
            yield from _run_steps(erasure, (step for eraser in _erasers for step in eraser.erase(owner_id, ids)))
        yield from _run_steps(erasure, _memory_steps(erasure, owner_id, ids))
        if not owner_stays:
            yield from _run_steps(erasure, (step for eraser in _erasers for step in eraser.erase_owner(owner_id, ids)))
            yield from _run_steps(erasure, owner_steps(owner_id))
    except GeneratorExit:
        # The client disconnected: let the sweep continue without waiting for the lease to expire.
        Erasure.objects.filter(pk=erasure.pk).update(leased_until=timezone.now())
        raise
    if owner_stays:
        return _end_memories(erasure, owner_id, books)
    return _end_owner(erasure, owner_id)


def forgetting_sweep() -> None:
    """Finish interrupted forgettings and delete old receipts. Idempotent; safe in several workers."""
    now = timezone.now()
    Erasure.objects.filter(finished_at__lt=now - RECEIPT_LIFETIME).delete()
    until = monotonic() + SWEEP_SECONDS
    lapsed = lease_over("leased_until", now, lease=timedelta(seconds=LEASE_SECONDS))
    for erasure in Erasure.objects.filter(lapsed, finished_at=None).order_by("leased_until"):
        if monotonic() >= until:
            return
        unclaimed = Erasure.objects.filter(pk=erasure.pk, finished_at=None, leased_until=erasure.leased_until)
        if unclaimed.update(leased_until=lease_end()):
            run_slices_within(erasure_slices(erasure), until - monotonic())


def _run_steps(erasure: Erasure, steps: Iterable[ErasureStep]) -> Slices[None]:
    for step in steps:
        yield from in_batches(partial(_run_batch, erasure, step))


def _run_batch(erasure: Erasure, step: ErasureStep, limit: int) -> int:
    """Erase one batch of a step, count it in the same transaction, and return the number of rows."""
    erased = dict(erasure.erased)
    with transaction.atomic():
        count = step.batch(limit)
        if count:
            if step.name:
                erased[step.name] = erased.get(step.name, 0) + count
            Erasure.objects.filter(pk=erasure.pk).update(erased=erased, leased_until=lease_end())
    erasure.erased = erased
    return count


@transaction.atomic
def _stop_background(erasure: Erasure, books: Sequence[UUID]) -> None:
    """Raise the epoch of the books, so that background work that read them before cannot write to them."""
    books_lock(books)
    generations_raise(books, epoch=True)
    Erasure.objects.filter(pk=erasure.pk).update(stopped=True)
    erasure.stopped = True


def _memory_steps(erasure: Erasure, owner_id: UUID, books: Sequence[UUID]) -> Iterable[ErasureStep]:
    yield ErasureStep("revisions", deleting(Revision.objects.filter(owner_id=owner_id, memory__book__in=books)))
    yield ErasureStep("", deleting(MemoryVector.objects.filter(owner_id=owner_id, book__in=books)))
    memories = Memory.objects.filter(owner_id=owner_id, book__in=books)
    lock, outdate = partial(books_lock, books), lambda _: generations_raise(books)  # older views become stale
    yield ErasureStep("memories", deleting(memories, before=lock, after=outdate))
    # A change set that is written to meanwhile has revisions, and stays.
    yield ErasureStep("", deleting(without_revisions(ChangeSet.objects.filter(owner_id=owner_id, book__in=books))))
    notifications = Notification.objects.filter(owner_id=owner_id)
    if erasure.book:
        yield ErasureStep("", updating(notifications.filter(book=erasure.book), text="", memory_numbers=[]))
    else:
        yield ErasureStep("thread_records", deleting(ThreadRecord.objects.filter(owner_id=owner_id)))
        yield ErasureStep("notifications", deleting(notifications))


@transaction.atomic
def _end_memories(erasure: Erasure, owner_id: UUID, books: Sequence[Book]) -> Receipt:
    ids = [book.pk for book in books]
    owner = Owner.objects.select_related("user").get(pk=owner_id)
    generations_raise(ids, next_expiry_at=None, last_write_at=None)
    notify(owner_id=owner.pk, kind=Notification.Kind.MEMORY_CHANGED, book=erasure.book)
    for name in ("revisions", "memories"):
        erasure.erased.setdefault(name, 0)
    audit_record(Action.FORGET, actor=_actor(erasure), kind="memory", owner=owner, count=erasure.erased["memories"])
    if erasure.book:
        for book_id in ids:
            invalidation.publish(invalidation.Kind.BOOK, owner_id=owner.pk, book_id=book_id)
    else:
        invalidation.publish(invalidation.Kind.OWNER, owner_id=owner.pk)
    return _finish(erasure, books=tuple(book.name for book in books))


@transaction.atomic
def _end_owner(erasure: Erasure, owner_id: UUID) -> Receipt:
    owner = Owner.objects.select_related("user").get(pk=owner_id)
    user = owner.user if erasure.scope == Scope.ACCOUNT else None
    if user is not None and is_only_administrator(user, lock=True):
        erasure.scope, user = Scope.OWNER, None
    audit_record(Action.FORGET, actor=_actor(erasure), kind="owner", object_id=owner.pk, owner=owner)
    # This includes rows that were written after their table was emptied.
    for name, count in owner_delete(owner).items():
        erasure.erased[name] = erasure.erased.get(name, 0) + count
    invalidation.publish(invalidation.Kind.OWNER, owner_id=owner_id)
    if user is not None:
        user.delete()
    return _finish(erasure)


def _actor(erasure: Erasure) -> Actor:
    return Actor(erasure.actor, erasure.actor_id)


def _finish(erasure: Erasure, *, books: tuple[str, ...] = ()) -> Receipt:
    """Mark a forgetting as finished and return its receipt. Only the numbers stay in the row."""
    erasure.finished_at = at = erasure.finished_at or timezone.now()
    erasure.owner_id, erasure.book, erasure.actor, erasure.actor_id = None, "", "", ""
    erasure.save()
    return Receipt(erased=erasure.erased, books=books, at=at)

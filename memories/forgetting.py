"""Forgetting: physical, everywhere, not undoable; it leaves a receipt without content.
(Delete and clear are tombstones, undoable for some days: memories.services.)

A forgetting goes in short transactions. First the conversations so far count as dealt with; then the epoch of the books
is raised, so that nothing in the background writes anything back; then the rows go, children first, an owner's own row
and the login last. A row of `Erasure` says what was asked for and is renewed with each transaction: when the process
dies or the client goes away, the sweep finishes the work. The apps above register what they have of an owner."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from memories.audit.log import SYSTEM, Action, Actor, audit_record
from memories.database.batches import BatchSize, Slices, run_slices_within
from memories.messaging import invalidation
from memories.messaging.outbox import notify
from memories.models import (
    Book,
    ChangeSet,
    Erasure,
    Memory,
    MemoryVector,
    Notification,
    Owner,
    Revision,
    ThreadRecord,
)
from memories.models.erasures import LEASE_SECONDS
from memories.services import books_lock, generations_raise, is_only_administrator, owner_delete
from memories.services.erasing import ErasureStep, deleting, owner_steps, updating, without_revisions

Scope = Erasure.Scope
SWEEP_SECONDS = 5.0  # how long a sweep goes on with what was interrupted, before other sweeps have their turn
DELETE_SECONDS = 3.0  # how long a page goes on with a deletion; the sweep does the rest
KEPT = timedelta(days=1)  # how long the numbers of a finished forgetting can be seen

Steps = Callable[[UUID, Sequence[UUID]], Iterable[ErasureStep]]
"""Given an owner and the ids of books: what is to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eraser:
    """What an app above holds of an owner's memory. `pass_over` makes the conversations so far count as dealt with,
    before the epoch of the books is raised; `erase` takes the words, after it. `leave` takes what an owner who goes has
    in tables without an `owner_id`."""

    erase: Steps
    pass_over: Steps = lambda owner_id, books: ()
    leave: Steps = lambda owner_id, books: ()


_erasers: list[Eraser] = []


def register_eraser(eraser: Eraser) -> None:
    """Register what an app above erases of an owner's memory; called from an AppConfig's ready()."""
    if eraser not in _erasers:
        _erasers.append(eraser)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What was erased, in numbers."""

    erased: dict[str, int]
    books: tuple[str, ...]
    at: datetime

    def as_json(self) -> dict[str, Any]:
        """Return what the API shows."""
        return {"object": "receipt", "erased": self.erased, "books": list(self.books), "at": self.at}


def forget_slices(owner_id: UUID, *, book: str | None = None, by: Actor = SYSTEM) -> Slices[Receipt]:
    """Erase everything that is remembered about an owner, or one book of it, in slices. Sessions and
    their transcripts stay."""
    return (yield from erasure_slices(erasure_begin(owner_id, Scope.MEMORIES, book=book or "", by=by)))


@transaction.atomic
def erasure_begin(owner_id: UUID, scope: Scope, *, book: str = "", by: Actor = SYSTEM) -> Erasure:
    """Note what is to be forgotten. From here on it will be, whatever happens to this process.

    The login of an ACCOUNT is closed at once, unless it is that of the only administrator: nobody could look after the
    rest."""
    user = Owner.objects.select_related("user").get(pk=owner_id).user
    if scope == Scope.ACCOUNT and user is not None and not is_only_administrator(user):
        user.is_active = False
        user.save(update_fields=["is_active"])
    return Erasure.objects.create(owner_id=owner_id, scope=scope, book=book, actor=by.name[:255], actor_id=by.id[:80])


def erasure_slices(erasure: Erasure) -> Slices[Receipt]:
    """Do it, or what is left of it, in slices, each a short transaction."""
    owner_id = erasure.owner_id
    if owner_id is None or not Owner.objects.filter(pk=owner_id).exists():
        return _over(erasure)
    rows = Book.objects.filter(owner_id=owner_id).order_by("pk")
    books = list(rows.filter(name=erasure.book) if erasure.book else rows)
    ids = [book.pk for book in books]
    stays = erasure.scope == Scope.MEMORIES  # of an owner who goes every row does, whatever it says
    try:
        if not erasure.stopped:
            if stays:
                yield from _do(erasure, (step for eraser in _erasers for step in eraser.pass_over(owner_id, ids)))
            _stop_background(erasure, ids)
            yield
        if stays:
            yield from _do(erasure, (step for eraser in _erasers for step in eraser.erase(owner_id, ids)))
        yield from _do(erasure, _memory_steps(erasure, owner_id, ids))
        if not stays:
            yield from _do(erasure, (step for eraser in _erasers for step in eraser.leave(owner_id, ids)))
            yield from _do(erasure, owner_steps(owner_id))
    except GeneratorExit:
        # The client has gone. The sweep need not wait for the lease.
        Erasure.objects.filter(pk=erasure.pk).update(leased_until=timezone.now())
        raise
    if stays:
        return _end_memories(erasure, owner_id, books)
    return _end_owner(erasure, owner_id)


def forgetting_sweep() -> None:
    """Finish the forgettings that were interrupted, and drop the numbers of old ones. Idempotent; safe in several
    workers."""
    now = timezone.now()
    Erasure.objects.filter(finished_at__lt=now - KEPT).delete()
    until = monotonic() + SWEEP_SECONDS
    # A lease that ends much later was taken while the clock was ahead.
    lapsed = Q(leased_until__lte=now) | Q(leased_until__gt=now + 2 * timedelta(seconds=LEASE_SECONDS))
    for erasure in Erasure.objects.filter(lapsed, finished_at=None).order_by("leased_until"):
        if monotonic() >= until:
            return
        mine = Erasure.objects.filter(pk=erasure.pk, finished_at=None, leased_until=erasure.leased_until)
        if mine.update(leased_until=_lease()):
            run_slices_within(erasure_slices(erasure), until - monotonic())


def _lease() -> datetime:
    return timezone.now() + timedelta(seconds=LEASE_SECONDS)


def _do(erasure: Erasure, steps: Iterable[ErasureStep]) -> Slices[None]:
    for step in steps:
        size = BatchSize()
        while _batch(erasure, step, size):
            yield


def _batch(erasure: Erasure, step: ErasureStep, size: BatchSize) -> int:
    """Erase some rows of a step and count them in the same transaction. Returns how many."""
    erased = dict(erasure.erased)
    with size.measured(), transaction.atomic():
        count = step.batch(size.rows)
        if count:
            if step.name:
                erased[step.name] = erased.get(step.name, 0) + count
            Erasure.objects.filter(pk=erasure.pk).update(erased=erased, leased_until=_lease())
    erasure.erased = erased
    return count


@transaction.atomic
def _stop_background(erasure: Erasure, books: Sequence[UUID]) -> None:
    """Raise the epoch of the books, so that background work which read them before writes nothing to them."""
    books_lock(books)
    generations_raise(books, epoch=True)
    Erasure.objects.filter(pk=erasure.pk).update(stopped=True)
    erasure.stopped = True


def _memory_steps(erasure: Erasure, owner_id: UUID, books: Sequence[UUID]) -> Iterable[ErasureStep]:
    yield ErasureStep("revisions", deleting(Revision.objects.filter(owner_id=owner_id, memory__book__in=books)))
    yield ErasureStep("", deleting(MemoryVector.objects.filter(owner_id=owner_id, book__in=books)))
    yield ErasureStep("memories", _memories_deleting(owner_id, books))
    # A group that somebody writes to meanwhile has revisions, and stays.
    yield ErasureStep("", deleting(without_revisions(ChangeSet.objects.filter(owner_id=owner_id, book__in=books))))
    told = Notification.objects.filter(owner_id=owner_id)
    if erasure.book:
        yield ErasureStep("", updating(told, text="", memory_numbers=[]))
    else:
        yield ErasureStep("thread_records", deleting(ThreadRecord.objects.filter(owner_id=owner_id)))
        yield ErasureStep("notifications", deleting(told))


def _memories_deleting(owner_id: UUID, books: Sequence[UUID]) -> Callable[[int], int]:
    """Delete memories under the lock of their books: a view that was read before is not used after it."""
    delete = deleting(Memory.objects.filter(owner_id=owner_id, book__in=books))

    def batch(most: int) -> int:
        books_lock(books)
        count = delete(most)
        if count:
            generations_raise(books)
        return count

    return batch


@transaction.atomic
def _end_memories(erasure: Erasure, owner_id: UUID, books: Sequence[Book]) -> Receipt:
    ids = [book.pk for book in books]
    owner = Owner.objects.select_related("user").get(pk=owner_id)
    generations_raise(ids, next_expiry_at=None, last_write_at=None)
    notify(owner_id=owner.pk, kind=Notification.Kind.MEMORY_CHANGED, book=erasure.book)
    for kept in ("revisions", "memories"):
        erasure.erased.setdefault(kept, 0)
    audit_record(Action.FORGET, actor=_actor(erasure), kind="memory", owner=owner, count=erasure.erased["memories"])
    if erasure.book:
        for book_id in ids:
            invalidation.publish(invalidation.Kind.BOOK, owner_id=owner.pk, book_id=book_id)
    else:
        invalidation.publish(invalidation.Kind.OWNER, owner_id=owner.pk)
    return _over(erasure, books=tuple(book.name for book in books))


@transaction.atomic
def _end_owner(erasure: Erasure, owner_id: UUID) -> Receipt:
    owner = Owner.objects.select_related("user").get(pk=owner_id)
    user = owner.user
    audit_record(Action.FORGET, actor=_actor(erasure), kind="owner", object_id=owner.pk, owner=owner)
    invalidation.publish(invalidation.Kind.OWNER, owner_id=owner.pk)
    # What others wrote since its table was emptied goes too.
    for name, count in owner_delete(owner).items():
        erasure.erased[name] = erasure.erased.get(name, 0) + count
    if erasure.scope == Scope.ACCOUNT and user is not None:
        if is_only_administrator(user):
            erasure.scope = Scope.OWNER
        else:
            user.delete()
    return _over(erasure)


def _actor(erasure: Erasure) -> Actor:
    return Actor(erasure.actor, erasure.actor_id)


def _over(erasure: Erasure, *, books: tuple[str, ...] = ()) -> Receipt:
    """Mark a forgetting as finished and return its receipt. Only numbers are kept of it."""
    erasure.finished_at = at = erasure.finished_at or timezone.now()
    erasure.owner_id, erasure.book, erasure.actor, erasure.actor_id = None, "", "", ""
    erasure.save()
    return Receipt(erased=erasure.erased, books=books, at=at)

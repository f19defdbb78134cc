"""Reading of memories, always of one owner. Writers are in memories.services."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Count, Exists, Expression, F, Model, OuterRef, Q, QuerySet
from django.utils import timezone

from memories.caller import DEFAULT_BOOK, UNLIMITED, KeyLimits
from memories.errors import Conflict, NotFound
from memories.ids import parse_uuid
from memories.models import Book, ChangeSet, Memory, Revision, WriteOrigin
from memories.pagination import parse_number

Row = TypeVar("Row", bound=Model)
MAX_UNDO_CHAIN = 100  # undos of undos that are followed
PAGE = 500  # rows of a page of `paged`


def row_by_id(rows: QuerySet[Row], given: str | UUID | None) -> Row | None:
    """Return the row with this UUID, or None if there is none or the value is not a UUID."""
    key = parse_uuid(given)
    return rows.filter(pk=key).first() if key else None


def count_by(rows: "QuerySet[Any]", column: str) -> dict[Any, int]:
    """Return the number of rows for each value of a column. One query."""
    return dict(rows.order_by().values_list(column).annotate(Count("pk")))


def of_active_accounts() -> Q:
    """Return the condition for rows whose owner's account, or that of the end user's application, was not deactivated.
    No background work is done for others."""
    return ~(Q(owner__user__is_active=False) | Q(owner__parent__user__is_active=False))


def require_active_account(rows: "QuerySet[Any]") -> None:
    """Raise Conflict if the account that these rows belong to was deactivated: work for it would wait silently."""
    if not rows.order_by().filter(of_active_accounts()).exists():
        raise Conflict("This account is deactivated. No background work is done for it until it is active again.")


def undeleted(book: Book) -> QuerySet[Memory]:
    """Return the memories of a book that are not deleted, including expired and blocked ones, unordered."""
    return Memory.objects.filter(owner_id=book.owner_id, book_id=book.pk, deleted_at__isnull=True)


def live_in(book: Book) -> QuerySet[Memory]:
    """Return the live memories of a book, neither deleted nor expired, unordered, including blocked ones: those that
    can be changed and that count against its budget."""
    return undeleted(book).filter(unexpired(timezone.now()))


def live_condition() -> Q:
    """Return the condition for memories that are neither deleted nor expired, which lists, searches and counts include.
    The sweep turns expired ones into tombstones later."""
    return Q(deleted_at__isnull=True) & unexpired(timezone.now())


def unexpired(now: datetime | Expression) -> Q:
    """Return the condition for memories that have not expired."""
    return Q(expires_at__isnull=True) | Q(expires_at__gt=now)


def blocked_condition() -> Q:
    """Return `Memory.blocked` as a query condition."""
    return ~Q(scan_rule="") & ~Q(allowed_hash=F("scan_hash"))


def require_book(owner_id: UUID, name: str) -> None:
    """Raise NotFound if the owner has no such book. `main` counts as existing even before its first use."""
    if name != DEFAULT_BOOK:
        book_get(owner_id, name)


def memory_get(owner_id: UUID, number: str | int, *, deleted: bool = False, limits: KeyLimits = UNLIMITED) -> Memory:
    """Return the owner's memory with this number. Raises NotFound; `deleted` allows deleted and expired ones."""
    rows = limits.filter(Memory.objects.select_related("book").filter(owner_id=owner_id), book="book__name")
    found = number if isinstance(number, int) else parse_number(number)
    memory = rows.filter(number=found).first() if found is not None else None
    if memory is None or ((memory.deleted_at or memory.expired) and not deleted):
        raise NotFound("There is no such memory. It may have been deleted.")
    return memory


def categories_of(book: Book) -> list[str]:
    """Return the distinct categories of a book's live memories, sorted."""
    return list(live_in(book).order_by("category").values_list("category", flat=True).distinct())


def book_named(owner_id: UUID, name: str) -> Book | None:
    """Return the owner's book with this name, or None."""
    return Book.objects.filter(owner_id=owner_id, name=name).first()


def book_get(owner_id: UUID, name: str) -> Book:
    """Return the owner's book with this name. Raises NotFound."""
    book = book_named(owner_id, name)
    if book is None:
        raise NotFound("There is no such book.")
    return book


def undo_steps(owner_id: UUID, sets: Iterable[UUID]) -> Iterator[tuple[UUID, ChangeSet, int]]:
    """Yield the undos of these change sets, the undos of those, and so on, as `(original, undo, distance)`. One query
    for each distance."""
    root_of = {pk: pk for pk in sets}
    for distance in range(1, MAX_UNDO_CHAIN + 1):
        if not root_of:
            return
        steps = ChangeSet.objects.filter(owner_id=owner_id, undoes_id__in=list(root_of))
        root_of = {step.pk: root_of[step.undoes_id] for step in steps if step.undoes_id}
        for step in steps:
            yield root_of[step.pk], step, distance


def is_in_effect(steps: list[tuple[UUID, UUID | None, bool]], family: Collection[UUID]) -> bool:
    """Return True if a revision of the family, a change set with its undos and theirs, is in effect. `steps` are the
    revisions of a memory or document, oldest first, each as its change set, the set that this one undoes, and whether
    the background job made it. An undo restores the state before the first revision of the set that it undoes, so the
    search continues there; it continues before a job's, too."""
    while steps:
        step, undoes, by_job = steps.pop()
        if step in family:
            return True
        if not by_job:
            first = next((place for place, (earlier, *_) in enumerate(steps) if earlier == undoes), None)
            if first is None:
                return False
            steps = steps[:first]
    return False


def change_set_of_turn(book: Book, run_id: UUID) -> ChangeSet | None:
    """Return the change set of what earlier steps of a turn wrote, also before it waited for the client's tools. None
    if there is none, or if others changed one of its memories or undid it since: an undo would undo that."""
    later = Revision.objects.filter(
        memory__revisions__change_set=OuterRef("pk"), version__gt=F("memory__revisions__version")
    )
    by_others = later.exclude(change_set=OuterRef("pk")).exclude(write_origin=WriteOrigin.SYSTEM)
    of_run = ChangeSet.objects.filter(owner_id=book.owner_id, run_id=run_id, kind=ChangeSet.Kind.TOOL)
    return of_run.filter(~Exists(by_others), book=book).order_by("id").last()


def only_keywords_added(memory: Memory, version: int) -> bool:
    """Return True if only the keyword job has changed a memory since a version: a person who read it then lost nothing
    that they saw. One query."""
    later = Revision.objects.filter(owner_id=memory.owner_id, memory=memory, version__gt=version)
    return later.filter(write_origin=WriteOrigin.SYSTEM).count() == memory.version - version


def live_rows(book: Book, *, numbers: Sequence[int]) -> dict[int, Memory]:
    """Return the live memories of a book among these numbers, by number."""
    return {memory.number: memory for memory in live_in(book).filter(number__in=numbers)}


def paged(rows: "QuerySet[Row]", *keys: str) -> Iterator[Row]:
    """Yield the rows ordered by the columns `keys`, which are unique together, reading page by page. No statement is
    open between pages, so the next one may be read in another thread."""
    rows = rows.order_by(*keys)
    page = list(rows[:PAGE])
    while page:
        yield from page
        if len(page) < PAGE:
            return
        page = list(rows.filter(_after(page[-1], keys))[:PAGE])


def _after(row: Model, keys: Sequence[str]) -> Q:
    """Return the condition for rows after this one in the order of `keys`."""
    first, *others = keys
    value = getattr(row, first)
    behind = Q(**{f"{first}__gt": value})
    return behind | (Q(**{first: value}) & _after(row, others)) if others else behind

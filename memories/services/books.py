"""Books, their limits and what is left of these, and the counters that reveal changes: the generation of a book is
raised with every change of what may be injected, and its epoch when the book is cleared or forgotten."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Length

from memories.caller import check_book_name
from memories.errors import Conflict, OverBudget
from memories.models import Book, BookLimits, Target
from memories.selectors import book_named, live_in
from memories.services.owners import owner_lock

# The defaults of an agent's settings, which also apply to books that no agent names.
DEFAULT_LIMITS = {Target.USER: 1375, Target.MEMORY: 2200}
NEARLY_FULL = 0.9  # the share of a limit from which people and models are warned


def book_get_or_create(owner_id: UUID, name: str) -> Book:
    """Return the owner's book of that name, created if missing.

    Raises InvalidRequest for an invalid name, Conflict if the owner has as many books as the settings allow; books that
    an agent names can always be created."""
    check_book_name(name)
    return book_named(owner_id, name) or _book_create(owner_id, name)


@transaction.atomic
def _book_create(owner_id: UUID, name: str) -> Book:
    owner_lock(owner_id)  # two requests must not both create the last allowed book
    book = book_named(owner_id, name)
    if book is None:
        check_new_books(owner_id, [name])
        book = Book.objects.create(owner_id=owner_id, name=name)
    return book


def check_new_books(owner_id: UUID, names: Collection[str]) -> None:
    """Raise InvalidRequest or Conflict if the owner cannot have books with all these names, existing or new."""
    for name in names:
        check_book_name(name)
    existing = Book.objects.filter(owner_id=owner_id)
    known = {*existing.filter(name__in=names).values_list("name", flat=True)}
    new = {*names} - known
    if new and existing.count() + len(new) > settings.BOOKS_PER_OWNER:
        free = BookLimits.objects.filter(name__in=new).values_list("name", flat=True)
        if existing.count() + len(new - {*free}) > settings.BOOKS_PER_OWNER and new - {*free}:
            raise Conflict(
                f"There can be at most {settings.BOOKS_PER_OWNER} books. Use an existing one.",
                limit=settings.BOOKS_PER_OWNER,
            )


def book_limits(name: str) -> dict[Target, int]:
    """Return the limits of books with this name, in characters by target; 0 = no limit."""
    return limits_of_books([name])[name]


def limits_of_books(names: Collection[str]) -> dict[str, dict[Target, int]]:
    """Return the limits of books by name, in one query."""
    rows = {
        row.name: {Target.USER: row.user_char_limit, Target.MEMORY: row.memory_char_limit}
        for row in BookLimits.objects.filter(name__in=names)
    }
    return {name: rows.get(name) or dict(DEFAULT_LIMITS) for name in names}


def book_limits_set(limits: dict[str, tuple[int, int]]) -> None:
    """Replace all limits: `{book name: (user, memory)}` in characters, 0 = no limit."""
    BookLimits.objects.exclude(name__in=limits).delete()
    for name, (user, memory) in limits.items():
        BookLimits.objects.update_or_create(name=name, defaults={"user_char_limit": user, "memory_char_limit": memory})


@dataclass(slots=True)
class Budgets:
    """The limits of a book and the characters in use, by target, updated as memories are added and removed."""

    limits: dict[Target, int]
    used: dict[str, int]

    @classmethod
    def of(cls, book: Book | None, name: str) -> "Budgets":
        """Return the budgets of a book, which may not exist yet. Characters are only counted if there is a limit."""
        limits = book_limits(name)
        return cls(limits, characters_used(book) if book and any(limits.values()) else {})

    def take(self, target: str, needed: int, *, freed: int = 0, freed_target: str = "") -> None:
        """Reserve `needed` characters for a memory; `freed` is the length of its former text, if any. Raises
        OverBudget, unless the memory uses no more of this target than before."""
        had = freed if freed_target == target else 0
        used, limit = self.used.get(target, 0) - had, self.limits[Target(target)]
        if limit and needed > had and used + needed > limit:
            raise OverBudget(
                f"No room: this needs {needed} characters and {max(0, limit - used)} are left in "
                f"“{Target(target).label}”. Edit or delete something first.",
                target=str(target),
                used=used,
                limit=limit,
                needed=needed,
            )
        if freed_target and freed_target != target:
            self.used[freed_target] = self.used.get(freed_target, 0) - freed
        self.used[target] = used + needed

    def release(self, target: str, freed: int) -> None:
        """Release the `freed` characters of a deleted memory."""
        self.used[target] -= freed


def characters_used(book: Book) -> dict[str, int]:
    """Return the number of characters of a book's live memories, by target."""
    return dict(live_in(book).order_by().values_list("target").annotate(sum=Sum(Length("content"))))


def books_lock(book_ids: Collection[UUID]) -> None:
    """Lock the rows of books for the rest of the transaction, ordered by id to avoid deadlocks."""
    _lock(Book.objects.filter(pk__in=book_ids))


def books_of_owner_lock(owner_id: UUID) -> None:
    """Lock all books of an owner for the rest of the transaction."""
    _lock(Book.objects.filter(owner_id=owner_id))


def _lock(books: "QuerySet[Book]") -> None:
    list(books.select_for_update(no_key=True).order_by("pk").values_list("pk"))


def generations_raise(book_ids: Collection[UUID], *, epoch: bool = False, **values: Any) -> None:
    """Raise the generation of locked books, optionally with the epoch and further columns. No revision is written."""
    if epoch:
        values["epoch"] = F("epoch") + 1
    Book.objects.filter(pk__in=book_ids).update(generation=F("generation") + 1, **values)

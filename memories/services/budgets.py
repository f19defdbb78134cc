"""Book budgets: the characters that live memories use, and the limits that the book's agents set."""

from dataclasses import dataclass

from django.db.models import Sum
from django.db.models.functions import Length

from memories.errors import OverBudget
from memories.models import Book, Target
from memories.selectors import live_in
from memories.services.books import book_limits


@dataclass(slots=True)
class Budgets:
    """The limits of a book and the characters in use, by target, updated as memories are added and removed."""

    limits: dict[Target, int]
    used: dict[str, int]

    @classmethod
    def of(cls, book: Book | None, name: str) -> "Budgets":
        """Return the current budgets of a book, which may not exist yet. Characters are counted only if there is a
        limit."""
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

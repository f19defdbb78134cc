"""How full a book is: the characters that its live memories take, beside what its agents allow it to hold."""

from dataclasses import dataclass

from django.db.models import Sum
from django.db.models.functions import Length

from memories.errors import OverBudget
from memories.models import Book, Target
from memories.selectors import live_in
from memories.services.books import book_limits


@dataclass(slots=True)
class Budgets:
    """Characters that live memories of a book take, by target, kept up to date while memories come and go."""

    limits: dict[Target, int]
    used: dict[str, int]

    @classmethod
    def of(cls, book: Book | None, name: str) -> "Budgets":
        """Return the budgets of a book as they are now, also of one that does not exist yet. Characters are counted
        only where there is a limit."""
        limits = book_limits(name)
        return cls(limits, characters_used(book) if book and any(limits.values()) else {})

    def take(self, target: str, needed: int, *, freed: int = 0, freed_target: str = "") -> None:
        """Note a memory of `needed` characters; `freed` is what its former text took. Raises OverBudget, unless it
        takes no more of this target than before."""
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
        """Note that a memory of `freed` characters is gone."""
        self.used[target] -= freed


def characters_used(book: Book) -> dict[str, int]:
    """Return the characters that the live memories of a book take, by target."""
    return dict(live_in(book).order_by().values_list("target").annotate(sum=Sum(Length("content"))))

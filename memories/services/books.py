"""Books and their limits."""

from uuid import UUID

from memories.errors import InvalidRequest
from memories.models import (
    Book,
    BookLimits,
    Target,
)

# What an agent's settings say when nobody changed them; a book that no agent names has these limits.
DEFAULT_LIMITS = {Target.USER: 1375, Target.MEMORY: 2200}


def book_get_or_create(owner_id: UUID, name: str) -> Book:
    """The owner's book of that name, made at first use."""
    if not name.strip() or len(name) > 64 or not name.isprintable():
        raise InvalidRequest("A book's name has 1 to 64 printable characters.", param="book")
    book, _ = Book.objects.get_or_create(owner_id=owner_id, name=name)
    return book


def book_limits(name: str) -> dict[Target, int]:
    """Budgets of every book of that name in characters; 0 = no limit."""
    row = BookLimits.objects.filter(name=name).first()
    if row is None:
        return dict(DEFAULT_LIMITS)
    return {Target.USER: row.user_char_limit, Target.MEMORY: row.memory_char_limit}


def book_limits_set(limits: dict[str, tuple[int, int]]) -> None:
    """Replace all limits: `{book name: (user, memory)}` in characters, 0 = no limit."""
    BookLimits.objects.exclude(name__in=limits).delete()
    for name, (user, memory) in limits.items():
        BookLimits.objects.update_or_create(name=name, defaults={"user_char_limit": user, "memory_char_limit": memory})
